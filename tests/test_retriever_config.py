"""configs/retriever.py: what its docstring promises."""

import pytest

import docjax
from docjax.parts import named
from docjax.run import fields


def test_msmarco_reads_the_table_of_documents(tmp_path):
    config = docjax.config.load("retriever", variant="msmarco")
    config.source.path = str(tmp_path / "corpus.tsv")
    lines = ["D1\thttp://a\tA title\tText of a.", "D2\thttp://b\t\tText of b."]
    (tmp_path / "corpus.tsv").write_text("\n".join(lines))
    source = fields.resolve(named.plain(config)).source.built
    found = {each.id: (each.title, each.sections[0].text) for each in source()}
    assert found == {"D1": ("A title", "Text of a."), "D2": ("", "Text of b.")}


@pytest.mark.parametrize(
    ("name", "batch", "epochs", "rate", "negatives", "each"),
    [
        ("retriever:msmarco", 128, 5, 5e-5, None, 1),  # None: the best of BM25
        ("retriever:robust04", 32, 10, 5e-5, "uniform", 8),
        ("retriever:wikir", 128, 5, 2e-5, None, 1),
        ("retriever:wikirs", 128, 5, 2e-5, None, 1),
        ("retriever_pretraining", 1024, 10, 5e-5, None, None),
    ],
)
def test_the_values_are_those_of_the_paper(name, batch, epochs, rate, negatives, each):
    config = docjax.config.load(name)
    assert (config.batch, config.epochs, config.steps) == (batch, epochs, None)
    assert config.optimizer.learning_rate == rate and config.optimizer.warmup == 0.1
    assert config.examples.get("negatives") == negatives
    assert config.examples.get("each") == each and not config.objective.symmetric
    assert (config.objective.similarity, config.objective.temperature) == ("dot", 1)
    if name == "retriever_pretraining":
        assert config.views.first == 0.5
