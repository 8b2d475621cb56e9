"""Checkpoints: exact, verified, and walked back from damage."""

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.storage import checkpoint
from docjax.storage.checkpoint import (
    MANIFEST,
    Checkpointer,
    newest_good,
    restore_params,
)


def state(step: int) -> tuple:
    """Parameters, the rest, and progress, different at each step."""
    generator = np.random.default_rng(step)
    draw = lambda *shape: jnp.asarray(generator.normal(size=shape), jnp.float32)
    params = {"segment": {"kernel": draw(40, 3), "bias": draw(3)}, "head": draw(2, 2)}
    rest = {"step": jnp.int32(step), "optimizer": (draw(5), jnp.int32(7))}
    return params, rest, {"data": {"next_index": step}, "best": -float("inf")}


def save(folder: Path, *steps: int, keep: int = 2) -> None:
    checkpointer = Checkpointer(folder, keep)
    for step in steps:
        checkpointer.save(step, *state(step))
    checkpointer.close()


def restore(folder: Path) -> tuple | None:
    shapes = jax.eval_shape(lambda: state(0)[:2])
    checkpointer = Checkpointer(folder)
    found = checkpointer.restore(*jax.tree.map(like, shapes))
    checkpointer.close()
    return found


def like(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=one)


def step_of(found: tuple) -> int:
    """The step whose state was restored, and nothing of another's."""
    step = int(found[1]["step"])
    params, rest, progress = state(step)
    same = jax.tree.map(np.array_equal, (params, rest), found[:2])
    assert all(jax.tree.leaves(same))
    assert found[2] == progress
    return step


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A run with good checkpoints of the steps 1 and 2."""
    run = tmp_path_factory.mktemp("saved")
    save(run / "checkpoints", 1, 2)
    return run


@pytest.fixture
def run(saved, tmp_path) -> Path:
    """A copy to damage."""
    shutil.copytree(saved, tmp_path / "run")
    return tmp_path / "run"


def files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_what_was_saved_comes_back_exactly(run):
    assert step_of(restore(run / "checkpoints")) == 2
    assert not (run / "damaged").exists()


def test_a_run_without_checkpoints_begins_anew(tmp_path):
    assert restore(tmp_path / "checkpoints") is None


def test_the_newest_are_kept(tmp_path):
    save(tmp_path / "checkpoints", 1, 2, 3)
    names = {p.name for p in (tmp_path / "checkpoints").iterdir()}
    assert names == {"2", "3"}


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_to_any_file_is_seen(run, damage):
    folder = run / "checkpoints"
    newest = [path for path in files(folder / "2") if path.name != MANIFEST]
    assert len(newest) > 5
    generator = np.random.default_rng(0)
    for path in newest:
        content = path.read_bytes()
        if damage == "remove":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(content[:-1])
        elif content:
            flip(path, int(generator.integers(8 * len(content))))
        intact = damage != "remove" and path.read_bytes() == content  # it was empty
        assert newest_good(folder) == (2 if intact else 1), path
        path.write_bytes(content)
    assert newest_good(folder) == 2


def test_any_flipped_bit_of_the_manifest_does_no_harm(run):
    """Either it says something else than the files, or the same with other spaces."""
    folder = run / "checkpoints"
    manifest, generator = folder / "2" / MANIFEST, np.random.default_rng(0)
    content = manifest.read_bytes()
    expected = json.loads(content)
    for bit in generator.integers(8 * len(content), size=200):
        flip(manifest, int(bit))
        same = checkpoint.check(folder / "2") is None
        assert not same or json.loads(manifest.read_bytes()) == expected
        manifest.write_bytes(content)


def test_a_restore_walks_back_and_sets_the_damaged_one_aside(run):
    target = max(files(run / "checkpoints" / "2"), key=lambda path: path.stat().st_size)
    flip(target, 8 * (target.stat().st_size // 2))
    assert step_of(restore(run / "checkpoints")) == 1
    assert [path.name.split("-")[0] for path in (run / "damaged").iterdir()] == ["2"]
    assert not (run / "checkpoints" / "2").exists()
    save(run / "checkpoints", 2)  # the run comes to this step again
    assert step_of(restore(run / "checkpoints")) == 2


def test_a_checkpoint_without_manifest_is_one_that_was_being_saved(run):
    (run / "checkpoints" / "2" / MANIFEST).unlink()
    assert step_of(restore(run / "checkpoints")) == 1


def test_a_run_killed_in_its_first_save_begins_anew(run):
    shutil.rmtree(run / "checkpoints" / "1")
    (run / "checkpoints" / "2" / MANIFEST).unlink()
    assert restore(run / "checkpoints") is None
    assert len(list((run / "damaged").iterdir())) == 1
    save(run / "checkpoints", 2)
    assert step_of(restore(run / "checkpoints")) == 2


def test_a_step_whose_save_was_killed_is_saved_again(run):
    (run / "checkpoints" / "2" / MANIFEST).unlink()
    save(run / "checkpoints", 2)
    assert step_of(restore(run / "checkpoints")) == 2


def test_a_good_step_is_not_saved_twice(run):
    before = {path: path.stat().st_mtime_ns for path in files(run)}
    save(run / "checkpoints", 2)
    assert {path: path.stat().st_mtime_ns for path in files(run)} == before


def test_with_none_good_the_error_names_a_file_and_the_mend(run):
    broken = []
    for step in ("1", "2"):
        broken += [files(run / "checkpoints" / step)[0]]
        flip(broken[-1], 0)
    for fails in (restore, newest_good):
        with pytest.raises(UserError) as error:
            fails(run / "checkpoints")
        text = str(error.value)
        assert "none of the 2 checkpoints is good" in text and "\n" not in text
        assert f"{broken[1]} differs from what was saved" in text
        assert "restore them from a copy, or train again" in text
    assert len(files(run)) > 10  # nothing was thrown away


def test_parameters_are_those_of_the_newest_good_checkpoint(run):
    shapes = jax.eval_shape(lambda: state(0)[0])
    found = restore_params(run, jax.tree.map(like, shapes))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, found, state(2)[0])))
    flip(files(run / "checkpoints" / "2" / "params")[-1], 5)
    found = restore_params(run, jax.tree.map(like, shapes))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, found, state(1)[0])))


def test_parameters_are_those_of_the_best_step_where_one_was_selected(run):
    save(run / "best", 1, keep=1)
    shapes = jax.eval_shape(lambda: state(0)[0])
    found = restore_params(run, jax.tree.map(like, shapes))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, found, state(1)[0])))


def test_a_run_without_any_checkpoint_has_no_parameters(tmp_path):
    with pytest.raises(UserError, match="has no checkpoint yet; train it first"):
        restore_params(tmp_path, {})


def test_a_save_without_room_is_told(tmp_path, monkeypatch):
    def full(folder):
        raise OSError(28, "No space left on device")

    saved = checkpoint.Checkpointer(tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoint.manifest, "seal", full)
    saved.save(1, {"a": jnp.ones(3)}, {"b": jnp.ones(2)}, {})
    with pytest.raises(UserError, match="No space left on device.*make room"):
        saved.close()
    monkeypatch.undo()
    saved.close()
