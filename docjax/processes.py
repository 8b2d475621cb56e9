"""Where the processes of a run wait for each other."""

import jax
from jax.experimental import multihost_utils


def wait(what: str) -> None:
    """Returns when every process has come here; `what` names the place."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)
