"""How many devices a CPU is made, in processes of their own."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax
from docjax.training import sharding
sharding._cores = lambda: {cores}
sharding.use_cores({replicas!r})
print(jax.device_count())
"""


def devices(cores: int, replicas: object, **environment: str) -> int:
    program = PROGRAM.format(cores=cores, replicas=replicas)
    found = {**os.environ, "XLA_FLAGS": "", **environment}
    command = [sys.executable, "-c", program]
    return int(subprocess.check_output(command, env=found, text=True))


@pytest.mark.parametrize(
    "cores, replicas, expected",
    [(1, 4, 1), (3, 4, 2), (64, 4, 4), (64, 1, 1), (64, "4", 1)],
)
def test_a_cpu_is_as_many_devices_as_cores_and_replicas_allow(
    cores, replicas, expected
):
    assert devices(cores, replicas) == expected


@pytest.mark.parametrize(
    "setting",
    [
        {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"},
        {"JAX_NUM_CPU_DEVICES": "3"},
    ],
)
def test_a_number_of_devices_that_is_set_stays(setting):
    assert devices(2, 2, **setting) == 3
