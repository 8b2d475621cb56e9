"""configs/docsplit.py and the configs that start from it: what their docstrings promise."""

import pytest

import docjax
from docjax.errors import UserError


@pytest.mark.parametrize(
    ("name", "batch", "rate", "temperature", "weight"),
    [
        ("docsplit", 36, 5e-5, 0.05, 0.1),
        ("docsplit:longformer", 12, 5e-5, 0.05, 0.1),
        ("simlte", 36, 5e-5, 0.05, 0.1),
        ("simcse", 64, 3e-5, 0.05, None),
        ("simcse:long", 36, 5e-5, 0.05, 0.1),
        ("contriever", 2048, 5e-5, 0.05, None),
        ("masked_lm", 16, 5e-5, None, 1.0),
        ("contrastive_tension", 16, None, None, None),
    ],
)
def test_the_values_are_those_of_the_papers(name, batch, rate, temperature, weight):
    config = docjax.config.load(name)
    objective = config.objective
    contrast = objective.get("contrastive", objective)
    assert config.batch == batch and config.optimizer.get("learning_rate") == rate
    assert (contrast or {}).get("temperature") == temperature
    assert objective.get("weight") == weight
    if weight:
        assert objective.rate == 0.15 and config.encoder.segment.masked_lm
    if few := config.tasks.get("few_shot"):
        probe = config.tasks.classification
        assert (probe.batch, probe.epochs, probe.held_out) == (8, 10, 0.1)
        assert (few.shots, few.repeats, few.classifier.epochs) == (10, 10, 100)


def test_contriever_and_contrastive_tension_have_what_their_papers_say():
    contriever = docjax.config.load("contriever")
    assert contriever.steps == 500_000 and contriever.optimizer.warmup == 0.04
    queue, crops = contriever.objective, contriever.views
    assert queue.batches * contriever.batch == 131_072 and queue.momentum == 0.9995
    assert (crops.span, crops.shortest, crops.longest) == (256, 0.05, 0.5)
    assert crops.deletion == 0.1 and contriever.limits.training_tokens == 128
    tension = docjax.config.load("contrastive_tension")
    assert tension.optimizer.learning_rates == (1e-5, 8e-6, 6e-6, 4e-6, 2e-6)
    assert tension.objective.negatives == 7 and tension.steps == 5000


@pytest.mark.parametrize(
    "name", ["docsplit", "simlte", "simcse", "contriever", "contrastive_tension"]
)
@pytest.mark.parametrize("other", ["small", "demo"])
def test_five_examples_stay_five_beside_another_variant(name, other):
    config = docjax.config.load(name, f"five,{other}")
    assert config.tasks.few_shot.shots == 5


@pytest.mark.parametrize(
    "variant", ["longformer,small", "bigbird,smoke", "demo,modernbert", "small,roberta"]
)
def test_a_backbone_has_no_small_form(variant):
    with pytest.raises(UserError, match="both choose the encoder: give one of them"):
        docjax.config.load("docsplit", variant)
