"""AdamW with linear warm-up and decay, RMSprop whose rate falls in steps, and what docjax
does around any optimizer of optax."""

from collections.abc import Sequence

import jax.numpy as jnp
import optax

from docjax.encoders.weight_decay import decays
from docjax.errors import UserError


def adamw(
    steps: int,
    *,
    learning_rate: float = 5e-5,
    warmup: float = 0.1,
    weight_decay: float = 0.0,
    clip: float = 1.0,
    decay: bool = True,
) -> optax.GradientTransformation:
    """AdamW whose learning rate rises over the share `warmup` of `steps`, then falls.

    The learning rate falls to 0 at the last step; `decay` False keeps it constant after
    the warm-up. Gradients are clipped to the global norm `clip`. Biases, layer norms and
    the rotation to principal components have no weight decay.
    """
    if not 0 <= warmup < 1 or learning_rate <= 0 or clip <= 0:
        raise UserError(
            f"adamw has learning_rate {learning_rate} (must be > 0), warmup {warmup} "
            f"(must be >= 0 and < 1) and clip {clip} (must be > 0): "
            "mend --config.optimizer"
        )
    rise, last = round(warmup * steps), 0.0 if decay else learning_rate
    schedule = optax.join_schedules(
        [
            optax.linear_schedule(learning_rate / max(rise, 1), learning_rate, rise),
            optax.linear_schedule(learning_rate, last, max(steps - rise, 1)),
        ],
        [rise],
    )
    return optax.chain(
        optax.clip_by_global_norm(clip),
        optax.adamw(schedule, weight_decay=weight_decay, mask=decays),
    )


def around(
    steps: int,
    *,
    optimizer: optax.GradientTransformation | None = None,
    clip: float | None = 1.0,
) -> optax.GradientTransformation:
    """An optimizer of optax, whose gradients are clipped to the global norm `clip`.

    A config names the optimizer itself, `dict(fn="optax.lion", ...)`, with `clip` beside
    its own keywords; None does not clip. Its schedules count the steps themselves.
    """
    del steps
    if clip is None:
        return optimizer
    if clip <= 0:
        raise UserError(
            f"optimizer.clip {clip}: give a number above 0, or None for no clipping"
        )
    return optax.chain(optax.clip_by_global_norm(clip), optimizer)


def rmsprop(
    steps: int,
    *,
    learning_rates: Sequence[float] = (1e-5, 8e-6, 6e-6, 4e-6, 2e-6),
    every: int = 500,
) -> optax.GradientTransformation:
    """RMSprop with the next of `learning_rates` after each `every` steps.

    The last learning rate stays. Contrastive Tension's values, which do not depend on
    the length of training; the mean square decays by 0.9 a step, as Keras has it.
    """
    del steps
    if not learning_rates or min(learning_rates) <= 0 or every < 1:
        raise UserError(
            f"rmsprop has learning_rates {list(learning_rates)} (give at least one, all "
            f"> 0) and every {every} (must be >= 1): mend --config.optimizer"
        )
    rates = jnp.array(learning_rates, jnp.float32)
    schedule = lambda count: rates[jnp.minimum(count // every, len(rates) - 1)]
    return optax.rmsprop(schedule, decay=0.9, eps=1e-7, eps_in_sqrt=False)
