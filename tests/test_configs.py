"""Every shipped config and variant: built, fitting together, parameters as before.

`python -m tests.test_configs` writes the lists of `tests/parameters/` anew.
"""

import copy
import functools
import importlib
import itertools
import json
import re
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl import flags
from ml_collections import ConfigDict

from docjax import config as config_lib
from docjax import main
from docjax.data.masking import Masking
from docjax.data.packing import Layout, pack
from docjax.data.segments import OneEach, segments
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.objectives.masked_lm import MaskedLM
from docjax.objectives.negative_sampling import Rows
from docjax.parts import named
from docjax.run import config_flag, fields
from docjax.training.rows import Adagrad, Adam
from docjax.types import (
    DOCUMENT,
    Batch,
    Frame,
    ObjectiveWithMemory,
    Targets,
    Units,
)
from docjax.views.replaced import Dropped, WordViews
from docjax.views.sections import NamedSections, Sections

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests" / "parameters"
NAMES = sorted(config_lib.shipped())
FEW = 8  # examples of a step
CLASSES = 20  # that a head is built for: the data says how many
WORDS = 1000  # of a vocabulary that the data makes


def load(name: str) -> ModuleType:
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(f"configs.{name}")


def variants(name: str) -> list[tuple[str, dict]]:
    """Each variant of a config, as plain values."""
    module = load(name)
    return [(v, named.plain(module.get_config(v))) for v in module.VARIANTS]


def encoder(config: dict) -> DocumentEncoder:
    node = copy.deepcopy(config["encoder"])
    if "classes" in (node.get("head") or {}):
        node["head"]["classes"] = CLASSES
    segment = node["segment"].get("encoder", node["segment"])
    if segment.get("vocabulary") == 0:
        segment["vocabulary"] = WORDS
    return named.build(node)


def parameters(config: dict) -> dict:
    """The parameters' shapes; nothing is computed."""
    return _parameters(json.dumps(config["encoder"], sort_keys=True))


@functools.cache  # variants share encoders
def _parameters(node: str) -> dict:
    """Of a transformer's layers two are traced: the others are like the second."""
    built = encoder({"encoder": json.loads(node)})
    segment, inner = built.segment, built.inner_segment
    layers = getattr(inner, "layers", 0)
    if layers > 2:
        inner = inner.with_layers(2)
        inner = segment.clone(encoder=inner) if segment.has_towers else inner
        built = built.clone(segment=inner)
    params = jax.eval_shape(lambda: fresh_params(built, 0))
    towers = params["segment"]
    for tower in towers.values() if segment.has_towers else (towers,):
        tower |= {f"layer_{i}": tower["layer_1"] for i in range(2, layers)}
    return params


def listing(name: str) -> str:
    """The parameters of every variant, one line a path; `2..5` stands for each number."""
    blocks = []
    for variant, config in variants(name):
        found: dict[tuple, list[int]] = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(parameters(config)):
            path = jax.tree_util.keystr(path, simple=True, separator="/")
            number = re.search(r"(?<=layer_)\d+", path)
            path = re.sub(r"(?<=layer_)\d+", "#", path)
            key = (path, leaf.shape, str(leaf.dtype))
            found.setdefault(key, []).append(int(number[0]) if number else 0)
        count = sum(prod(shape) * len(some) for (_, shape, _), some in found.items())
        lines = [f"[{variant}] {count:,} parameters"]
        for (path, shape, dtype), some in sorted(found.items()):
            assert sorted(some) == list(range(min(some), min(some) + len(some)))
            span = f"{min(some)}..{max(some)}" if len(some) > 1 else str(some[0])
            size = " x ".join(map(str, shape))
            lines.append(f"{path.replace('#', span)}: {size} {dtype}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_have_the_paths_and_shapes_that_they_had(name):
    """Checkpoints and converted weights depend on them."""
    path = LISTS / f"{name}.txt"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    assert listing(name) == before, (
        f"the parameters of configs/{name}.py are not those of {path.relative_to(ROOT)}: "
        "saved models would no longer load. If that is meant, or the config is new, run "
        "`python -m tests.test_configs` and say so in CHANGELOG.md"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_every_variant_is_built(name):
    for variant, config in variants(name):
        read = fields.resolve(config)
        assert read.to_json() == config, variant
        for name_ in ("source", "units", "examples", "segments", "views", "objective"):
            assert getattr(read, name_).built is not None
        for optional in (read.holdout, read.graph):
            assert optional is None or optional.built
        for task in read.tasks.values():
            assert callable(task.built)
        segment = read.encoder.built.inner_segment
        if isinstance(segment, TokenEncoder):
            segment.check_training(read.limits.segment_tokens)
        assert read.tasks and bool(read.epochs) != bool(read.steps), variant
        optimizer = read.optimizer.built
        assert isinstance(optimizer, (Adagrad, Adam)) or optimizer(100)


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_every_variant_fit_together(name):
    for variant, config in variants(name):
        words = "negative_sampling" in config["objective"]["fn"]
        vectors, loss, metrics = (word_step if words else step)(config)
        assert vectors.dtype == loss.dtype == jnp.float32, variant
        assert loss.shape == () and metrics, variant
        assert all(metric.shape == () for metric in metrics.values())


def step(config: dict) -> tuple:
    """A step's shapes: vectors of the longest segments, the loss of a batch of views.

    Of the encoder's layers, which are alike, two are enough.
    """
    config = copy.deepcopy(config)
    segment = config["encoder"]["segment"]
    segment.get("encoder", segment)["layers"] = 2
    built, params = encoder(config), parameters(config)
    objective = named.build(config["objective"])
    masked = objective if isinstance(objective, MaskedLM) else None
    of_vectors = loss_of_vectors(masked.contrastive if masked else objective)
    batch, kinds = batch_of(config, built, masked)

    def encode(params, tokens, lengths, keys):
        given = {"params": params}, tokens, lengths, jnp.zeros((3, 2), int), keys
        return built.apply(*given, method="segments")

    def loss(params, vectors, batch, key):
        apply = functools.partial(built.apply, {"params": params})
        given = vectors, batch.lengths, batch.places, batch.graphs, kinds
        documents = apply(*given, method="views")
        if built.nested:
            _, documents = jnp.split(documents, 2)
        outputs = apply(documents, key, method="outputs")
        total, metrics = of_vectors(outputs, batch.targets)
        for group in batch.masked:
            read = *group.microbatch, group.positions, group.answers
            total = total + apply(*read, method="token_loss")[0]
        return total, metrics

    longest, key = config["limits"]["segment_tokens"], jax.random.key(0)
    tokens, lengths = jnp.zeros((3, longest), int), jnp.full(3, longest)
    vectors = jax.eval_shape(encode, params, tokens, lengths, jax.random.split(key, 3))
    shape = (*batch.rows.shape, vectors.shape[-1])
    gathered = jax.ShapeDtypeStruct(shape, vectors.dtype)
    batch = batch._replace(microbatches=(), towers=(), answers=0.0)
    assert bool(batch.masked) == bool(masked)
    return vectors, *jax.eval_shape(loss, params, gathered, batch, key)


def loss_of_vectors(objective: Any) -> Callable:
    """The loss and the metrics of vectors, also for an objective without them, or with
    a memory."""
    if objective is None:
        return lambda vectors, targets: (jnp.zeros(()), {"loss": jnp.zeros(())})
    if not isinstance(objective, ObjectiveWithMemory):
        return objective

    def loss(vectors: jax.Array, targets: Targets) -> tuple[jax.Array, dict]:
        memory = objective.begin(*vectors.shape[1:])
        return objective(vectors, targets, memory)[:2]

    return loss


def batch_of(
    config: dict, built: DocumentEncoder, masked: MaskedLM | None
) -> tuple[Batch, tuple[str, ...]]:
    """A few examples as a step reads them, and the kinds of their views."""
    views, cutter, graph, examples = (
        named.build(config[part]) for part in ("views", "segments", "graph", "examples")
    )
    if isinstance(views, WordViews):  # made for a corpus: any two views will do
        views = Dropped()
    if isinstance(views, NamedSections):  # headings are of a corpus
        views = Sections(len(views.names))
    frame = Frame(np.array([1], np.int32), np.array([2], np.int32), 8)
    kinds = tuple(
        kind
        for slot in examples.kinds
        for kind in (views.kinds if slot == DOCUMENT else (slot,))
    )

    def read(number: int, slot: str) -> list:
        if slot != DOCUMENT:
            return [segments(units().take(np.array([0])), OneEach(), frame)]
        made = views(units(), np.random.default_rng(number))
        most = config["limits"]["training_segments"]
        return [segments(view, cutter, frame).first(most) for view in made]

    read_ = [[s for slot in examples.kinds for s in read(i, slot)] for i in range(FEW)]
    layout = Layout(8, (4,), 8, graph, built.sparse, built.towers(kinds))
    documents = FEW * max(1, len(examples.kinds) - 1)
    teacher = np.eye(FEW, dtype=np.float32)
    related = np.eye(FEW, documents, dtype=bool)
    targets = Targets(np.zeros(FEW, np.int32), related, teacher)
    masking = Masking(masked.rate, 3, 30, frame) if masked else None
    batch = pack(read_, layout, targets, masking, np.random.default_rng(0))
    return batch, kinds


def word_step(config: dict) -> tuple:
    """The same of a block of words, and of the documents' contrastive loss."""
    built, params = encoder(config), parameters(config)
    objective = named.build(config["objective"])
    table = params["segment"]["words"]
    d, k = table.shape[1], objective.negatives
    shape = 32, config["microbatch"] // 32
    float_ = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    int_ = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)
    drawn = float_(9, objective.drawn, d)
    rows = Rows(float_(*shape, d), drawn, float_(*shape, d), float_(32, k, d))
    loss, gradient = jax.eval_shape(
        objective.gradient,
        rows,
        int_(*shape),
        int_(*shape),
        int_(32, k),
        int_(),
    )
    assert gradient == rows
    apply = functools.partial(built.apply, method="outputs")
    head = {name: params[name] for name in params if name != "segment"}
    outputs = jax.eval_shape(apply, {"params": head}, float_(2, 5, d))
    targets = Targets(int_(5))
    contrast, metrics = jax.eval_shape(objective.contrastive, outputs, targets)
    assert contrast.shape == ()
    return table, loss, metrics


def units() -> Units:
    """A document of six units in two sections."""
    numbers = np.arange(6, dtype=np.int32)
    return Units(numbers, np.arange(7), numbers // 3, np.zeros((0, 2), np.int32))


@pytest.mark.parametrize("name", NAMES)
def test_every_variant_is_described_and_an_unknown_one_lists_them(name):
    module = load(name)
    assert f"--config=configs/{name}.py" in module.__doc__
    named = [variant for variant in module.VARIANTS if variant]
    described = lambda variant: f"`{variant}`" in module.__doc__
    for variant in named:
        assert described(variant) or all(map(described, variant.split(",")))
    with pytest.raises(UserError) as error:
        module.get_config("no such variant")
    parts = {part for variant in named for part in variant.split(",")}
    assert all(part in str(error.value) for part in parts)


def names_of(name: str) -> list[str]:
    """The names of a config's variants, from the message that lists them by group."""
    with pytest.raises(UserError) as error:
        config_lib.load(name, "no such variant")
    _, _, groups = str(error.value).partition(" is none of ")
    return [
        variant
        for group in groups.split("; ")
        for variant in group.partition(": ")[2].split(", ")
    ]


def values(config: Any, path: str = "") -> dict[str, Any]:
    """The values of a config by their path."""
    if not isinstance(config, (dict, ConfigDict)) or not config:
        return {path: config}
    nested = [values(value, f"{path}.{name}") for name, value in config.items()]
    return {field: value for found in nested for field, value in found.items()}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    gone = object()
    fields_ = before.keys() | after.keys()
    return {f for f in fields_ if before.get(f, gone) != after.get(f, gone)}


@pytest.mark.parametrize("name", NAMES)
def test_no_pair_of_variants_sets_a_field_twice_in_silence(name, caplog):
    """In both orders: a pair is refused in one line, or told and a config that runs."""
    start = values(load(name).get_config())
    alone = {v: values(config_lib.load(name, v)) for v in names_of(name)}
    for first, second in itertools.permutations(alone, 2):
        caplog.clear()
        try:
            both = config_lib.load(name, f"{first},{second}")
        except UserError as error:
            assert "\n" not in str(error) and second in str(error)
            continue
        fields.resolve(named.plain(both))
        set_first = changed(start, alone[first])
        for field in set_first & changed(alone[first], values(both)):
            assert f" {field[1:]} from " in caplog.text, (first, second, field)


@pytest.mark.parametrize("name", [*NAMES, "graph_roberta.py:frozen"])
@pytest.mark.parametrize("field", ["holdout", "graph", "source"])
def test_another_part_can_be_set_by_a_flag(name, field, monkeypatch):
    part = {"holdout": "docjax.data.splits.holdout", "graph": "docjax.data.graphs.full"}
    part["source"] = "docjax.data.sources.ir_datasets.ir_datasets"
    path = name if ".py" in name else name + ".py"
    found = by_flag(path, field, json.dumps({"fn": part[field]}), monkeypatch)
    assert dict(found[field]) == {"fn": part[field]}


LONG = [f"docsplit.py:{name}" for name in ("longformer", "bigbird", "modernbert")]


OF_SEGMENTS = dict(dropout=0.2, attention_dropout=0.1, dtype="float32")
OF_PAPERS = [
    (name, f"encoder.segment.{field}", value)
    for name in ("graph_roberta.py", "docsplit.py", *LONG)
    for field, value in OF_SEGMENTS.items()
] + [
    ("docsplit.py", "encoder.head", None),
    ("docsplit.py:longformer", "encoder.head", None),
    ("docsplit.py", "tasks.few_shot.classifier.hidden_layers", 2),
]


@pytest.mark.parametrize("name, field, value", OF_PAPERS)
def test_a_flag_sets_what_papers_vary(name, field, value, monkeypatch):
    found = by_flag(name, field, str(value), monkeypatch)
    node = fields.resolve(found).to_json()
    for key in field.split("."):
        node = node[key]
    assert node == value


@pytest.mark.parametrize(
    "name", ["graph_roberta.py:frozen", "graph_roberta.py:words", "colde.py:acl,frozen"]
)
def test_a_flag_sets_any_field(name, monkeypatch):
    given = load(name.partition(".")[0]).get_config(name.partition(":")[2])
    seeds = [(f"tasks.{task}.seed", 3) for task in given.tasks]
    changed = [(field, other(value)) for field, value in leaves(given)]
    for field, value in [*changed, *seeds, *OPEN]:
        found = by_flag(name, field, str(value), monkeypatch)
        for key in field.split("."):
            found = found[key]
        assert (found.to_dict() if isinstance(found, ConfigDict) else found) == value


OPEN = [
    *(("steps", None), ("epochs", 3), ("limits.training_units", 5)),
    *(("init", None), ("source", None), ("encoder.document", None)),
    *(("encoder.segment.pooling", "mean"), ("objective.widths", (64, 32))),
    ("source.without", ("Notes", "References")),
    (
        "encoder.document.branch",
        {"fn": "docjax.encoders.graph_attention.GraphAttention"},
    ),
]


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (*value, "more")
    return f"{value}-2" if isinstance(value, str) else value + 1


def leaves(node: ConfigDict, path: str = "") -> list[tuple[str, Any]]:
    """The fields of a config that have a value and hold no other fields."""
    found = []
    for name, value in node.items():
        name = f"{path}{name}"
        nested = isinstance(value, ConfigDict)
        found += leaves(value, name + ".") if nested else [(name, value)]
    return [(name, value) for name, value in found if value is not None]


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("bacth", "3", "unknown fields bacth"),
        ("objective.tempreature", "3", "no keyword 'tempreature'; it has temperature"),
    ],
)
def test_an_unknown_name_in_a_flag_is_one_line(field, text, reason, monkeypatch):
    found = by_flag("graph_roberta.py:frozen", field, text, monkeypatch)
    with pytest.raises(UserError, match=reason):
        fields.resolve(found)


def test_a_value_may_stand_behind_a_space(monkeypatch):
    argv = ["", "--config=graph_roberta:frozen", "--config.steps", "7"]
    argv += ["--config.init", "folder", "--config.encoder.document", "None"]
    values = defined(argv, monkeypatch)
    assert values(argv) == [""]
    found = values.config
    assert (found.steps, found.init, found.encoder.document) == (7, "folder", None)


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        (
            "holdout.test=.2",
            "config.holdout is None, so there is no holdout.test to se",
        ),
        (
            "report.published.words=3",
            "give the whole field, --config.report.publi",
        ),
        ("steps=many", "invalid literal for int"),
        ("source.without[0]=x", "the config has no field"),
        (
            "source=mine.jsonl",
            r'mine.jsonl is not a dict, such as {"fn": ..., ...}, or',
        ),
        ("tensorboard False", "'False' belongs to no flag: write --config.NAME=VALUE"),
        ("nothing.here=1", "the config has no field 'nothing'$"),
        (
            "optimizr.clip=1",
            """no field 'optimizr'. Did you mean "optimizer" instead of "optimizr"[?]""",
        ),
        (
            "steps=1 --confg=1",
            r"line flag 'confg'. Did you mean: config, config.steps\?$",
        ),
    ],
)
def test_a_wrong_flag_is_one_line(flag, reason, monkeypatch):
    argv = ["", "--config=graph_roberta:frozen", *f"--config.{flag}".split()]
    monkeypatch.setattr(main, "FLAGS", defined(argv, monkeypatch))
    monkeypatch.setattr(main, "_define_flags", lambda: None)
    with pytest.raises(UserError, match=reason):
        main.read_flags(argv)


@pytest.mark.parametrize("path", ["masked_lm.py", "colde.py:aan"])
def test_a_flag_names_the_split_that_the_holdout_divides(path, monkeypatch):
    found = by_flag(path, "holdout.of", "unlabeled", monkeypatch)
    assert fields.resolve(found).holdout.keywords["of"] == "unlabeled"


def test_epochs_without_effect_are_a_warning(caplog):
    found = load("graph_roberta").get_config("frozen")
    found.epochs = 3
    fields.warn_of_epochs(fields.resolve(found))
    assert "steps=60, so epochs=3 has no effect" in caplog.text


def by_flag(path: str, field: str, text: str, monkeypatch) -> Any:
    """The config of a path as the command reads it, with a field set by a flag."""
    argv = ["", f"--config={ROOT}/configs/{path}", f"--config.{field}={text}"]
    values = defined(argv, monkeypatch)
    values(argv)
    return values.config


def defined(argv: list[str], monkeypatch) -> flags.FlagValues:
    """The command's flag of the config, which is not parsed yet."""
    values = flags.FlagValues()
    config_flag.define(values)
    monkeypatch.setattr(sys, "argv", argv)  # read by ml_collections
    return values


def test_coldes_papers_are_read_as_in_the_paper():
    config = load("colde").get_config
    without = {"acl": {"Abstract", "References"}, "patents": {"Abstract"}}
    without["aan"] = without["acl"]
    for variant, sections in without.items():
        assert set(config(variant).source.without) == sections
    holdout = config("aan").holdout
    assert (holdout["test"], holdout["validation"]) == (0.1, 0.1)
    assert config("aan").splits.validation == "validation"  # chooses the threshold
    assert load("siamese").get_config("acl").source == config("acl").source


def test_coldes_ablations_and_studies_go_together_in_any_order():
    config = load("colde").get_config
    one, other = (config(f"acl,{v}") for v in ("no_sections,tokens1000", "tokens1000"))
    assert one.limits.training_tokens == 2 * other.limits.training_tokens == 2000
    assert one.encoder.segment.chunks == 0 < other.encoder.segment.chunks
    small = config("acl,small,tokens1000,sections3")
    assert (small.views.count, small.limits.training_tokens) == (3, 1000)
    assert small.encoder.segment.sections == small.encoder.segment.chunks == 0
    frozen = config("frozen,sections3,acl")
    assert (frozen.views.count, frozen.encoder.segment.sections) == (3, 0)
    both = config("acl,no_sections,no_contrast,tokens1000")
    assert both == config("acl,no_contrast,tokens1000")
    assert both.limits.training_tokens == 2000
    with pytest.raises(UserError, match="'sections3' both choose the sections"):
        config("acl,no_sections,sections3")
    with pytest.raises(UserError, match="'sections3' both choose the views"):
        config("patents,sections3")
    patents = config("patents,no_sections")
    assert patents == config("no_sections,patents")
    assert patents.views.fn.endswith("Whole")


if __name__ == "__main__":
    LISTS.mkdir(exist_ok=True)
    for name in NAMES:
        (LISTS / f"{name}.txt").write_text(listing(name), encoding="utf-8")
