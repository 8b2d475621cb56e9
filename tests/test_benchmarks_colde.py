"""The comparison of CoLDE with its ablations: its configs, its pairs and its table."""

import argparse

import jax
import pytest

from benchmarks import colde, runs
from docjax import config as configs
from docjax.data.pairs import Pair, read_pairs, write_pairs
from docjax.encoders.document import fresh_params
from docjax.encoders.longformer import Longformer
from docjax.parts import named


@pytest.mark.parametrize("encoder", ["minilm", "small"])
def test_every_system_has_an_encoder_that_can_be_made(encoder):
    systems = colde.systems(encoder)
    assert {*colde.COLDE, "S-BERT"} <= set(systems)
    for system in systems.values():
        config = configs.load(system.config, variant=system.variant)
        config.update_from_flattened_dict(dict(system.fields))
        nodes = named.plain(config)["encoder"]
        nodes["segment"] |= {"pooling": "mean"}  # `init` says which
        made = named.build(nodes)
        jax.eval_shape(lambda made=made: fresh_params(made, 0))
        named.build(named.plain(config)["objective"])


def test_s_long_is_a_longformer_that_reads_4096_tokens():
    system = colde.systems("small")["S-LONG"]
    config = configs.load(system.config, variant=system.variant)
    config.update_from_flattened_dict(dict(system.fields))
    segment = named.build(named.plain(config)["encoder"]).segment
    assert isinstance(segment, Longformer)
    assert config.limits.segment_tokens == segment.positions - segment.position_offset


def given(data, train, scored, uniform):
    """The tables of the data."""
    (data / "acl").mkdir()
    write_pairs(data / "acl/pairs.tsv", {"train": train, "dev": scored})
    write_pairs(data / "acl/pairs_uniform.tsv", {"train": train, "dev": uniform})


def test_a_tenth_of_the_training_pairs_chooses_and_no_pair_is_lost(tmp_path):
    train = [Pair(f"a{i}", f"b{i}", i % 2 == 0) for i in range(40)]
    scored = [Pair("x", "y", True), Pair("x", "z", False)]
    uniform = [Pair("x", "y", True), Pair("x", "b1", False)]
    given(tmp_path, train, scored, uniform)
    pairs = colde.tables(tmp_path, tmp_path / "run")
    assert read_pairs(tmp_path / "run/pairs.tsv") == pairs
    written = read_pairs(tmp_path / "run/uniform.tsv")
    assert written == {"dev": pairs["dev"], "test": uniform}
    assert pairs["test"] == scored and len(pairs["dev"]) == 4
    assert sorted(pairs["train"] + pairs["dev"]) == sorted(train)


def test_pairs_that_are_scored_or_choose_are_not_trained_on(tmp_path):
    train = [Pair(f"a{i}", f"b{i}", i % 2 == 0) for i in range(20)]
    train[3] = Pair("b9", "a9", False)  # chooses, the other way round
    scored = [Pair("b0", "a0", True), Pair("a19", "b19", False), Pair("x", "y", True)]
    given(tmp_path, train, scored, [Pair("b4", "a4", True)])
    pairs = colde.tables(tmp_path, tmp_path / "run")
    assert pairs["dev"] == [train[9]] and pairs["test"] == scored
    left = [train[i] for i in range(20) if i not in (0, 3, 4, 9, 19)]
    assert pairs["train"] == left


def test_a_run_has_the_vectors_of_an_earlier_one_and_is_not_repeated(
    tmp_path, monkeypatch
):
    calls = []
    monkeypatch.setattr(runs, "trained", lambda *given: calls.append(given))
    known = tmp_path / "minilm/any"
    (known / "corpus").mkdir(parents=True)
    (known / "corpus/vectors.npy").write_bytes(b"vectors")
    (known / "baselines.json").write_text("{}")
    flags = argparse.Namespace(
        data=tmp_path, workdir=tmp_path, encoder="minilm", init="minilm", set=[]
    )
    name = "CoLDE w/o LSTM"
    folder = colde.run(colde.systems("minilm")[name], name, 3, flags)
    [(config, given)] = calls
    assert folder == given == tmp_path / "minilm/CoLDE_wo_LSTM-3"
    assert (folder / "corpus/vectors.npy").read_bytes() == b"vectors"
    assert (folder / "baselines.json").exists()
    assert (config.seed, config.init) == (3, "minilm")
    assert config.source.without == colde.LEFT_OUT
    table = str(tmp_path / "pairs.tsv")
    assert (config.examples.path, config.tasks.matching.path) == (table, table)
    assert config.tasks.uniform.path == str(tmp_path / "uniform.tsv")
    (folder / "report").mkdir()
    (folder / "report/index.html").write_text("")
    assert colde.run(colde.systems("minilm")[name], name, 3, flags) == folder
    assert len(calls) == 1


def test_the_gain_is_paired_over_seeds():
    row = lambda *f1: [{name: x for name in colde.MEASURES} for x in f1]
    of_systems = {
        "TF-IDF cosine": row(0.5),
        colde.BEST: row(0.7, 0.9),
        "S-BERT": row(0.6, 0.8),
    }
    lines = colde.table(of_systems).splitlines()
    # The t-test of 2 seeds: 12.706 times a deviation of .1414, divided by 2 ** .5.
    assert lines[2].startswith(
        "| TF-IDF cosine | 0.500 | 0.500 | 0.500 | 0.500 |  |  |"
    )
    assert lines[2].endswith("| +0.300 (-0.971 to +1.571) |")
    assert lines[3].endswith("| 0.800 +- 0.141 |  |  |  |")
    assert lines[4].endswith("| +0.100 (+0.100 to +0.100) |")
