"""How the processes of a run find each other and wait for each other."""

import jax
import numpy as np
from jax.experimental import multihost_utils

from docjax.errors import UserError


def join_cluster() -> None:
    """Joins the cluster that this process is part of. Raises UserError if there is no
    cluster."""
    try:
        jax.distributed.initialize()
    except ValueError as error:
        raise UserError(
            f"--distributed: no cluster found ({error}); number the processes by "
            "hand (see --help)"
        ) from None


def wait(what: str) -> None:
    """Returns when every process has called `wait(what)`."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)


def least(value: int) -> int:
    """The least of the values that the processes have."""
    if jax.process_count() == 1:
        return value
    return int(multihost_utils.process_allgather(np.array(value)).min())


def of_first(value: bool) -> bool:
    """The value that process 0 has, on every process."""
    if jax.process_count() == 1:
        return value
    return bool(multihost_utils.broadcast_one_to_all(np.array(value)))
