"""How the processes of a run find each other, and where they wait."""

import jax
from jax.experimental import multihost_utils

from docjax.errors import UserError


def join_cluster() -> None:
    """Finds the cluster that this process is part of, and the other processes.

    Raises:
      UserError: if there is none.
    """
    try:
        jax.distributed.initialize()
    except ValueError as error:
        raise UserError(
            f"--distributed: no cluster is found here ({error}); number the processes "
            "by hand (see --help)"
        ) from None


def wait(what: str) -> None:
    """Returns when every process has come here; `what` names the place."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)
