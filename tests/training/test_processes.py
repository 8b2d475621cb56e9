"""Two processes of four devices take the gradient and the step of words of one device.

The file is also the program that each process runs.
"""

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from configs import deca
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.training import gradient_cache, sharding
from docjax.training.word_trainer import WordTrainer

PROCESSES, DEVICES, SECONDS = 2, 4, 600
# One of each way in which devices speak with each other; one process of eight devices
# takes the gradients of all other problems.
PROBLEMS = "one against rest", "relations", "masked tokens", "two towers", "queue"


@pytest.fixture(scope="module")
def gradients(tmp_path_factory) -> Path:
    """The folder in which process 0 left the gradient of each problem."""
    folder = tmp_path_factory.mktemp("gradients")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [start(number, port, folder) for number in range(PROCESSES)]
    try:
        outputs = [process.communicate(timeout=SECONDS)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(outputs)
    return folder


def start(number: int, port: int, folder: Path) -> subprocess.Popen:
    root = str(Path(__file__).resolve().parents[2])
    environment = os.environ | {"PYTHONPATH": root, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", __file__, str(number), str(port), str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gradient_is_that_of_one_device(gradients, plain, worst_error, name):
    expected, exact = plain(name, True)
    saved = np.load(gradients / f"{name}.npz")
    leaves, tree = jax.tree.flatten(expected)
    found = jax.tree.unflatten(tree, [saved[str(i)] for i in range(len(leaves))])
    assert worst_error(found, expected) <= 5e-6
    np.testing.assert_allclose(saved["loss"], exact["loss"], rtol=2e-6)


def step_of_words(run: Path, mesh: jax.sharding.Mesh) -> dict[str, np.ndarray]:
    """The tables and the loss after a step of eight replicas."""
    config = deca.get_config("smoke")
    config.objective.replicas = 8
    prepared = prepare(config, run)
    objective = prepared.config.objective.built
    trainer = WordTrainer(prepared, objective, mesh)
    batch = trainer.put(trainer.dataset[0][0])
    state = trainer.begin(initial_params(prepared.config, prepared.encoder))
    state = sharding.replicate(state, mesh)
    state, metrics = trainer.step(state, batch, jax.random.key(0))
    found = state.params["segment"] | {"loss": metrics["loss"]}
    return {name: np.asarray(array) for name, array in found.items()}


def test_a_step_of_words_is_that_of_one_device(gradients, tmp_path):
    one = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    saved = np.load(gradients / "words.npz")
    for name, expected in step_of_words(tmp_path / "run", one).items():
        np.testing.assert_allclose(saved[name], expected, rtol=1e-4, atol=1e-6)


def main(number: int, port: int, folder: Path) -> None:
    """One process: takes every problem's gradient with dropout."""
    gradient_cache.BLOCK = 1  # two blocks, of a document of each device
    jax.config.update("jax_num_cpu_devices", DEVICES)
    jax.distributed.initialize(f"127.0.0.1:{port}", PROCESSES, number)
    path = Path(__file__).with_name("conftest.py")
    spec = importlib.util.spec_from_file_location("problems", path)
    problems = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(problems)
    assert jax.device_count() == PROCESSES * DEVICES != jax.local_device_count()
    for name in PROBLEMS:
        keep = 99 if name in ("masked tokens", "two towers") else 0
        gradient, metrics = problems.problem(name).gradient(
            16, problems.mesh(PROCESSES * DEVICES), jax.random.key(1), keep=keep
        )
        if number == 0:
            arrays = {str(i): leaf for i, leaf in enumerate(jax.tree.leaves(gradient))}
            np.savez(folder / f"{name}.npz", loss=metrics["loss"], **arrays)
    found = step_of_words(folder / "run", sharding.mesh())
    if number == 0:
        np.savez(folder / "words.npz", **found)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
