"""Folders in the manner of INSTRUCTOR and LaBSE: T5, and a dense layer after pooling."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as models
from tokenizers import processors

import docjax
from docjax import config as config_lib
from docjax.encoders.t5 import T5
from docjax.errors import UserError
from docjax.export.write import export
from docjax.huggingface import weights
from docjax.model.inputs import as_document
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from tests.conftest import SENTENCE

TEXTS = ["The river floods the valley.", "Why does it rain?"]
LONG = SENTENCE * 9
PROMPTS = {"query": "Ask about rivers: ", "document": "Represent the text: "}


def tokenizer_folder(folder):
    """A unigram tokenizer as T5 has it: only an end, "</s>", and padding is 0."""
    backend = tokenizers.SentencePieceUnigramTokenizer()
    tokens = ["<pad>", "</s>", "<unk>"]
    backend.train_from_iterator(
        [*TEXTS, LONG, *PROMPTS.values()],
        vocab_size=90,
        special_tokens=tokens,
        unk_token="<unk>",
        show_progress=False,
    )
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    names = dict(zip(("pad_token", "eos_token", "unk_token"), tokens, strict=True))
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend._tokenizer, **names
    )
    made.save_pretrained(folder)
    return len(made)


@pytest.fixture(scope="module")
def instructor(tmp_path_factory):
    """A folder that sentence-transformers saved: T5, mean without the prompt, a dense
    layer without a bias, and vectors of length 1."""
    inner, folder = (tmp_path_factory.mktemp(name) for name in ("t5", "instructor"))
    torch.manual_seed(0)
    sizes = dict(d_model=16, num_heads=2, d_kv=6, d_ff=24, num_layers=2)
    config = transformers.T5Config(vocab_size=tokenizer_folder(inner), **sizes)
    transformers.T5EncoderModel(config).save_pretrained(inner)
    parts = (
        models.Transformer(str(inner), max_seq_length=48),
        models.Pooling(16, include_prompt=False),
        models.Dense(16, 12, bias=False, activation_function=torch.nn.Identity()),
        models.Normalize(),
    )
    made = SentenceTransformer(modules=parts, prompts=PROMPTS, device="cpu")
    made.save(str(folder))
    return folder


def peer(folder, code=False):
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=code)


def test_vectors_are_those_of_sentence_transformers(instructor):
    model, other = docjax.load(instructor), peer(instructor)
    assert model.encode(TEXTS).shape == (2, 12)
    for ours, theirs in (
        (model.encode(TEXTS), other.encode_document(TEXTS)),
        (model.encode_queries(TEXTS), other.encode_query(TEXTS)),
        (model.encode(TEXTS, prompt=""), other.encode(TEXTS, prompt="")),
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    apart = model.encode(TEXTS) - model.encode(TEXTS, prompt="")
    assert np.abs(apart).max() > 1e-2  # the test can tell


def test_the_published_instructor_leaves_the_prompt_out(
    instructor, tmp_path, monkeypatch
):
    """As sentence-transformers does for these names, whatever the folder says."""
    (tmp_path / "hkunlp").mkdir()
    name = "hkunlp/instructor-base"
    yes = dict(include_prompt=True)
    changed(instructor, tmp_path / name, "1_Pooling/config.json", **yes)
    monkeypatch.chdir(tmp_path)
    model = docjax.load(name)
    assert not model.include_prompt
    theirs = peer(name).encode_document(TEXTS)
    np.testing.assert_allclose(model.encode(TEXTS), theirs, atol=1e-5)


def test_another_instructor_that_includes_the_prompt_is_warned_of(
    instructor, tmp_path, caplog
):
    yes = dict(include_prompt=True)
    out = tmp_path / "my-instructor"
    docjax.load(changed(instructor, out, "1_Pooling/config.json", **yes))
    assert "INSTRUCTOR leaves it out: set include_prompt to false" in caplog.text


def test_an_export_is_read_by_all_three_and_begins_a_run(instructor, tmp_path):
    """`export` compares the vectors with sentence-transformers', long ones included."""
    documents = [as_document(text, i) for i, text in enumerate((LONG, TEXTS[0]))]
    model = docjax.load(instructor)
    folder = export(model, tmp_path / "out", documents)
    found = docjax.load(folder).encode(documents)
    np.testing.assert_array_equal(found, model.encode(documents))
    other = peer(folder, code=True)
    assert other.get_embedding_dimension() == 12
    assert "Vectors of 12 numbers" in (folder / "README.md").read_text()
    theirs = other.encode_document([LONG, TEXTS[0]])
    np.testing.assert_allclose(theirs, found, atol=1e-5)
    first, again = weights.load(instructor), weights.load(folder)
    assert first.keywords == again.keywords and again.keywords["projection"] == 12
    for kept in ("kernel", "bias"):
        ours, new = (each.params["projection"][kept] for each in (first, again))
        np.testing.assert_array_equal(ours, new)


def test_t5_alone_is_exported_with_stock_modules(instructor, tmp_path):
    inner = tmp_path / "inner"
    shutil.copytree(instructor, inner)
    (inner / "modules.json").unlink()
    model = docjax.load(inner)
    limits = model.limits._replace(inference_segments=1)
    model = dataclasses.replace(model, limits=limits)
    documents = [as_document(text, i) for i, text in enumerate(TEXTS)]
    folder = export(model, tmp_path / "out", documents)
    np.testing.assert_allclose(
        peer(folder).encode(TEXTS, prompt=""), model.encode(TEXTS, prompt=""), atol=1e-5
    )
    assert "T5EncoderModel.from_pretrained" in (folder / "README.md").read_text()


@pytest.fixture
def labse(minilm, tmp_path):
    """MiniLM with the first token, a dense layer with tanh, and length 1."""
    parts = (
        models.Transformer(str(minilm), max_seq_length=64),
        models.Pooling(384, pooling_mode="cls"),
        models.Dense(384, 8),
        models.Normalize(),
    )
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "labse"))
    return tmp_path / "labse"


def test_a_dense_layer_with_tanh_follows_the_first_token(labse):
    assert (labse / "2_Dense").is_dir()
    ours, theirs = (each.encode(TEXTS) for each in (docjax.load(labse), peer(labse)))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_run_begins_with_the_dense_layer_of_init(instructor, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    lines = ({"id": str(i), "text": LONG} for i in range(9))
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = config_lib.load("graph_roberta", "smoke")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
    config.init = str(instructor)
    config.encoder.segment.pooling = None  # as init has it
    config.prompts.document = config.prompts.query = ""
    prepared = prepare(config, tmp_path / "run")
    segment = prepared.encoder.segment
    assert isinstance(segment, T5)  # the config has a Transformer
    assert (segment.projection, segment.head_width, segment.pooling) == (12, 6, "mean")
    params = initial_params(prepared.config, prepared.encoder)
    expected = weights.load(instructor).params["projection"]["kernel"]
    kernel = params["segment"]["projection"]["kernel"]
    np.testing.assert_array_equal(kernel, expected)


def changed(folder, out, name, **changes):
    shutil.copytree(folder, out)
    path = out / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return out


@pytest.mark.parametrize(
    "name, changes, words",
    [
        ("config.json", dict(feed_forward_proj="gated-gelu"), "'gated-gelu' is not su"),
        ("config.json", dict(relative_attention_num_buckets=6), "6 buckets for dista"),
        ("config.json", dict(relative_attention_max_distance=8), "32 buckets for dis"),
        ("config.json", dict(d_kv=0), "d_kv is 0, but must be a whole number from 1"),
        ("config.json", dict(d_kv=8), "SelfAttention.* has shape .12, 16., but config"),
        (
            "2_Dense/config.json",
            dict(activation_function="os.system"),
            "'os.system' is",
        ),
        ("2_Dense/config.json", dict(use_residual=True), "use_residual is set"),
        ("2_Dense/config.json", dict(module_output_name="x"), "'x' is not supported"),
        ("2_Dense/config.json", dict(bias=True), "1 missing tensors: linear.bias"),
        (
            "2_Dense/config.json",
            dict(out_features=9),
            "linear.weight has shape .12, 16",
        ),
    ],
)
def test_what_a_folder_has_and_docjax_not_is_one_line(
    name, changes, words, instructor, tmp_path
):
    folder = changed(instructor, tmp_path / "changed", name, **changes)
    with pytest.raises(UserError, match=words) as error:
        docjax.load(folder)
    assert "\n" not in str(error.value)


def test_modules_in_another_order_are_one_line(instructor, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(instructor, folder)
    path = folder / "modules.json"
    modules = json.loads(path.read_text())
    path.write_text(json.dumps([*modules[:2], modules[3], modules[2]]))
    words = "module Dense after Transformer, Pooling, Normalize: docjax reads one of ea"
    with pytest.raises(UserError, match=words):
        docjax.load(folder)


def test_a_dense_module_without_its_tensor_or_with_pickled_ones(instructor, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(instructor, folder)
    path = folder / "2_Dense/model.safetensors"
    save_file({"other": load_file(path)["linear.weight"]}, path)
    with pytest.raises(UserError, match="1 missing tensors: linear.weight; take con"):
        docjax.load(folder)
    path.rename(path.with_name("pytorch_model.bin"))
    with pytest.raises(UserError, match="never unpickled; save the model once with"):
        docjax.load(folder)
