"""AdamW with linear warm-up and decay."""

from typing import Any

import jax
import optax

from docjax.errors import UserError

COMPONENTS = "components"  # a rotation of `FromMean`, which stays as it is


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
        optax.adamw(
            schedule,
            b1=0.9,
            b2=0.999,
            eps=1e-8,
            weight_decay=weight_decay,
            mask=_decays,
        ),
    )


def _decays(params: Any) -> Any:
    def decays(path: tuple, array: Any) -> bool:
        return array.ndim > 1 and path[-1].key != COMPONENTS

    return jax.tree_util.tree_map_with_path(decays, params)
