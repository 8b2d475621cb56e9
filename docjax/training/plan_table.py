"""A plan as lines for a reader; `plan.py` makes the plan."""

from typing import Any

from docjax.run.duration import shown

BYTES = {  # of the plan's memory -> words
    "parameters": "parameters",
    "optimizer": "optimizer",
    "objective": "what the objective remembers",
    "activations": "activations that a step keeps",
    "microbatch": "largest pass of a micro-batch, with parameters and gradient",
    "second_pass": "second pass, over the vectors of a batch",
    "step": "whole step",
    "largest": "most at a time",
    "available": "available",
}

LEFT_OUT = "without compiling, evaluations and report"


def table(plan: dict[str, Any]) -> str:
    """The plan in about twelve lines: what steps read, bytes a device, and time."""
    memory, step = plan["memory"], f"{plan['seconds_a_step']:.3g} s a step"
    lines = [
        *_counted(plan),
        ("memory a device", ""),
        *(
            (f"  {BYTES[name]}", _bytes(memory[name]))
            for name in BYTES
            if name in memory
        ),
        ("time", f"about {shown(plan['seconds'])}, {step}, {LEFT_OUT}"),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in lines)


def _counted(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """What the steps read."""
    over = f"over the first {plan['counted_over_steps']} steps"
    if plan["masked_copies"]:
        over += ", and as many with some of them masked"
    return [
        ("steps", f"{plan['steps']:,}, {plan['epochs']:.3g} epochs"),
        ("documents a step", f"{plan['documents_a_step']:,.0f}"),
        ("tokens a step", f"{plan['tokens_a_step']:,.0f} {over}"),
        ("padding", f"{plan['padding']:.1%} of {plan['positions_a_step']:,.0f} places"),
        ("tokens that limits cut off", f"{plan['cut']:.1%}"),
    ]


def _bytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
