"""DistilBERT from a folder to vectors, to masked tokens, and out again.

`test_family.py` compares its states and tensors with those of transformers.
"""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as models

import docjax
from docjax.encoders.distilbert import DistilBert
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.export.write import export
from docjax.huggingface import weights
from docjax.huggingface.families.distilbert import to_keywords
from docjax.model.inputs import as_document

ROOT = Path(docjax.__file__).parents[1]
FILES = "encoders/distilbert.py", "huggingface/families/distilbert.py"
SIZES = dict(dim=16, n_heads=2, n_layers=2, hidden_dim=24, vocab_size=30522)
TEXTS = ["The river floods the valley.", "Why does it rain?", "rain " * 40]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, minilm):
    """What sentence-transformers saves of a DistilBERT with MiniLM's tokenizer."""
    inner, folder = (tmp_path_factory.mktemp(name) for name in ("inner", "outer"))
    torch.manual_seed(0)
    model = transformers.DistilBertModel(transformers.DistilBertConfig(**SIZES))
    for parameter in model.parameters():  # fresh biases would hide mistakes
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(inner)
    transformers.AutoTokenizer.from_pretrained(minilm).save_pretrained(inner)
    parts = models.Transformer(str(inner), max_seq_length=24), models.Pooling(16)
    SentenceTransformer(modules=parts, device="cpu").save(str(folder))
    return folder


def test_vectors_are_those_of_sentence_transformers(folder):
    model = docjax.load(folder)
    assert type(model.encoder.segment) is DistilBert
    assert model.encoder.segment.layers == 2 and model.limits.segment_tokens == 24
    peer = SentenceTransformer(str(folder), device="cpu")
    expected = peer.encode(TEXTS[:2])
    np.testing.assert_allclose(model.encode(TEXTS[:2]), expected, atol=1e-5)


@pytest.mark.parametrize("segments", [1, None])
def test_an_export_gives_the_same_vectors_in_every_library(folder, tmp_path, segments):
    """With stock modules, which read one segment, and with the code of the folder."""
    model = docjax.load(folder, segments=segments)
    out = export(model, tmp_path / "out", [as_document(text, 0) for text in TEXTS])
    assert (out / "docjax_module.py").exists() == (segments is None)
    again = docjax.load(out)
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))
    theirs = transformers.AutoModel.from_pretrained(out)
    assert type(theirs).__name__ == "DistilBertModel"
    peer = SentenceTransformer(str(out), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(peer.encode(TEXTS), model.encode(TEXTS), atol=1e-5)


def test_the_head_gives_the_logits_of_transformers(tmp_path):
    torch.manual_seed(0)
    config = transformers.DistilBertConfig(**SIZES | {"vocab_size": 61})
    model = transformers.DistilBertForMaskedLM(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(tmp_path)
    found = weights.load(tmp_path, masked_lm=True)
    segment = found.family.module(**found.keywords, masked_lm=True)
    tokens = np.random.default_rng(0).integers(5, 61, (1, 9))
    given = jnp.asarray(tokens, jnp.int32), jnp.array([9]), None, jnp.arange(9)[None]
    params = {"params": found.params}
    scores = segment.apply(params, *given, method=TokenEncoder.token_scores)
    expected = model(torch.tensor(tokens)).logits[0].numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(dim=17), "dim 17 is not a multiple of n_heads 2"),
        (dict(activation="relu"), "activation 'relu' is not supported"),
        (dict(dropout=1), "dropout is 1, but must be"),
        (dict(n_layers="6"), "n_layers is '6', but must be a whole number"),
    ],
)
def test_a_config_that_docjax_does_not_have_is_one_line(changes, words):
    config = transformers.DistilBertConfig(**SIZES).to_dict() | changes
    with pytest.raises(UserError, match=f"^c.json: {words}") as error:
        to_keywords(config, "c.json")
    assert "\n" not in str(error.value)


def test_the_page_on_adding_a_family_shows_this_one():
    page = (ROOT / "docs/add-a-part.md").read_text("utf-8")
    section = page.partition("## A family of segment encoders\n")[2]
    section = section.partition("\n## ")[0]
    code = [(ROOT / "docjax" / name).read_text("utf-8") for name in FILES]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 3 and all(any(b in text for text in code) for b in blocks)
    for path, lines in re.findall(
        r"^\| `(\S+)` \| .* \| (\d+) \|$", section, re.MULTILINE
    ):
        assert len((ROOT / path).read_text("utf-8").splitlines()) == int(lines), path
