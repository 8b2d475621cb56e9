"""How a run goes on with its config."""

import json

import pytest

from configs import graph_roberta, graph_roberta_classify
from docjax.errors import UserError
from docjax.parts.named import plain
from docjax.run import continued, fields, from_data

SMOKE = plain(graph_roberta.get_config("smoke"))
CLASSIFIER = plain(graph_roberta_classify.get_config("smoke"))


def begin(run, config: fields.RunConfig) -> None:
    (run / "config.json").write_text(json.dumps(config.to_json()))
    (run / "metrics.jsonl").write_text("")


def check_same(config: fields.RunConfig, run) -> None:
    continued.check_same(config, run, fields.begun_with(run))


def test_a_begun_run_goes_on_with_the_same_config_and_other_reports(tmp_path):
    begin(tmp_path, fields.resolve(SMOKE))
    free = {"log_every": 7, "evaluate_every": 9, "tensorboard": True}
    check_same(fields.resolve(SMOKE | free), tmp_path)


def test_a_begun_run_does_not_go_on_with_another_config(tmp_path):
    begin(tmp_path, fields.resolve(SMOKE))
    other = fields.resolve(SMOKE | {"batch": 8, "seed": 3})
    with pytest.raises(
        UserError, match=r"another config: seed, batch differ \(seed was 0"
    ):
        check_same(other, tmp_path)
    (tmp_path / "metrics.jsonl").unlink()  # nothing is trained yet
    check_same(other, tmp_path)


def test_a_begun_run_goes_on_with_the_classes_of_its_documents(tmp_path):
    asked = fields.resolve(CLASSIFIER)
    begin(tmp_path, from_data.fill_classes(asked, ["a", "b", "c"]))
    check_same(asked, tmp_path)
    four = from_data.fill_classes(asked, ["a", "b", "c", "d"])
    with pytest.raises(UserError, match="another config: encoder differ"):
        check_same(four, tmp_path)


def test_a_run_to_compare_with_must_be_there(tmp_path):
    config = fields.resolve(SMOKE | {"report": {"compare": [str(tmp_path)]}})
    with pytest.raises(UserError, match="no run is there; train it first"):
        continued.check_compared(config)
    (tmp_path / "metrics.jsonl").write_text("")
    continued.check_compared(config)


@pytest.mark.parametrize("config", [SMOKE, CLASSIFIER])
def test_the_shipped_encoders_fit(config):
    continued.check_encoder(fields.resolve(config))


@pytest.mark.parametrize(
    "sizes", [{"heads": 0}, {"heads": 5}, {"layers": 10**8}, {"pooling": "x"}]
)
def test_sizes_that_do_not_fit_are_found_before_the_corpus_is_read(sizes):
    encoder = SMOKE["encoder"] | {"segment": SMOKE["encoder"]["segment"] | sizes}
    with pytest.raises(UserError) as error:
        continued.check_encoder(fields.resolve(SMOKE | {"encoder": encoder}))
    assert "\n" not in str(error.value)


def test_the_vocabulary_of_towers_may_be_that_of_the_documents():
    segment = SMOKE["encoder"]["segment"] | {"vocabulary": 0}
    towers = {"fn": "docjax.encoders.towers.Towers", "encoder": segment}
    config = fields.resolve(SMOKE | {"encoder": SMOKE["encoder"] | {"segment": towers}})
    continued.check_encoder(config)


ENCODER = """
import flax.linen as nn
import jax.numpy as jnp
from docjax.encoders.document_defaults import DocumentDefaults
from docjax.encoders.segment_defaults import SegmentDefaults


class Mean(DocumentDefaults):
    def query(self, vectors): return vectors

    def __call__(self, vectors, lengths, places, graphs):
        weights = lengths / lengths.sum(-1, keepdims=True)
        return (vectors * weights[..., None]).sum(-2)


class Padded(Mean):
    def __call__(self, vectors, lengths, places, graphs): return vectors.mean(-2)


class Unlike(Mean):
    def __call__(self, vectors, lengths, places, graphs):
        return vectors.reshape(*vectors.shape[:-2], -1)


class More(Mean):
    def query(self, vectors, more): return vectors


class Segments(Mean):
    def __call__(self, vectors, lengths, places, graphs): return vectors


class Wide(Mean):
    def query(self, vectors): return jnp.concatenate([vectors, vectors], -1)


class Fails(Mean):
    def query(self, vectors): return vectors @ vectors


class Counts(Mean):
    @nn.compact
    def query(self, vectors):
        return nn.BatchNorm(use_running_average=True)(vectors)

    def __call__(self, vectors, lengths, places, graphs):
        return self.query(super().__call__(vectors, lengths, places, graphs))


class Tokens(SegmentDefaults):
    vocabulary: int = 8

    def __call__(self, tokens): return tokens
"""


@pytest.mark.parametrize(
    "name, line",
    [
        ("Mean", ""),
        ("More", r"document More: query takes \(vectors, more\), not \(vectors\)"),
        ("Segments", r"document Segments gives \[2, 2, 32\] for 2 documents"),
        ("Padded", r"document Padded reads padding: .* by up to \d.*mask"),
        ("Unlike", r"document Unlike gives \[2, 64\] for 2 documents"),
        ("Wide", r"Wide gives \[2, 32\] .* and \[2, 64\] for 2 queries"),
        ("Counts", "document Counts fails: ScopeCollectionNotFound"),
        ("Fails", "document Fails fails: TypeError"),
        ("Tokens", r"segment Tokens: __call__ takes \(tokens\), not \(tokens, lengths"),
    ],
)
def test_an_encoder_from_outside_is_checked_before_documents_are_read(
    name, line, tmp_path, monkeypatch
):
    (tmp_path / "encoders_of_hers.py").write_text(ENCODER)
    monkeypatch.syspath_prepend(tmp_path)
    kind = "segment" if name == "Tokens" else "document"
    encoder = SMOKE["encoder"] | {kind: {"fn": f"encoders_of_hers.{name}"}}
    config = fields.resolve(SMOKE | {"encoder": encoder}, "encoders_of_hers.")
    if not line:
        continued.check_encoder(config)
        return
    with pytest.raises(UserError, match=line) as error:
        continued.check_encoder(config)
    assert "\n" not in str(error.value)


def test_a_branch_from_outside_is_checked_beside_the_mean(tmp_path, monkeypatch):
    (tmp_path / "branches_of_hers.py").write_text(ENCODER)
    monkeypatch.syspath_prepend(tmp_path)
    document = {"fn": "docjax.encoders.from_mean.FromMean"}
    document["branch"] = {"fn": "branches_of_hers.Padded"}
    encoder = SMOKE["encoder"] | {"document": document}
    config = fields.resolve(SMOKE | {"encoder": encoder}, "branches_of_hers.")
    with pytest.raises(UserError, match="document.branch Padded reads padding"):
        continued.check_encoder(config)
