"""Names and keywords become functions; mistakes are one line."""

import functools
import sys
from pathlib import Path

import pytest
from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax import config
from docjax.data import graphs
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.parts import named
from docjax.storage import json_file
from docjax.views.one_against_rest import OneAgainstRest

INFONCE = "docjax.objectives.infonce.infonce"


def one_line(error) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_function_is_bound_to_its_keywords():
    built = named.build(dict(fn=INFONCE, temperature=0.05))
    assert isinstance(built, functools.partial)
    assert built.func is infonce and built.keywords == {"temperature": 0.05}


def test_a_class_is_called_with_its_keywords():
    built = named.build(
        dict(fn="docjax.views.one_against_rest.OneAgainstRest", first=0.25)
    )
    assert built == OneAgainstRest(first=0.25)


def test_nodes_inside_are_built_first():
    built = named.build(
        dict(
            fn="docjax.encoders.document.DocumentEncoder",
            segment=dict(fn="docjax.encoders.transformer.Transformer", layers=3),
            document=dict(fn="docjax.encoders.pooling.Mean"),
        )
    )
    assert isinstance(built, DocumentEncoder)
    assert built.segment.layers == 3 and built.document == Mean()


def test_lists_become_tuples_and_plain_values_stay():
    node = {"parts": [dict(fn="docjax.data.graphs.full"), 1], "name": "x", "no": None}
    built = named.build(node)
    assert built["parts"][0].func is graphs.full
    assert built["parts"][1:] == (1,) and built["name"] == "x" and built["no"] is None


def test_a_node_is_what_was_built():
    nodes = [
        dict(fn="docjax.data.units.Passages", words=20),
        dict(fn="docjax.data.graphs.full"),
        None,
        dict(
            fn="docjax.encoders.document.DocumentEncoder",
            segment=dict(fn="docjax.encoders.transformer.Transformer", layers=3),
            document=dict(fn="docjax.encoders.graph_attention.GraphAttention"),
            head=dict(fn="docjax.encoders.pooling.Classifier", classes=4),
        ),
    ]
    for node in nodes:
        found = named.node(named.build(node))
        again = named.build(found)
        assert named.node(again) == found
        assert named.plain(found) == found  # JSON
        if node and "segment" in node:
            assert again == named.build(node)
            assert found["segment"]["heads"] == 12  # defaults are written out
        else:
            assert found == node
    assert named.node(graphs.full) == nodes[1]


def test_a_config_dict_is_plain_json_values():
    node = ConfigDict(dict(a=dict(b=(1, 2)), c=placeholder(int)))
    assert named.plain(node) == {"a": {"b": [1, 2]}, "c": None}


def test_an_unknown_name_lists_the_functions_there_are():
    with pytest.raises(UserError) as error:
        named.build(dict(fn="docjax.objectives.infonce.infonse"))
    assert "has no 'infonse'; it has candidates_of, infonce" in one_line(error)


def test_an_unknown_module_is_named():
    with pytest.raises(UserError) as error:
        named.build(dict(fn="docjax.objektives.infonce"))
    assert "docjax.objektives" in one_line(error)


@pytest.mark.parametrize("name", ["docjax", "docjax.", "docjax.config", "docjax..a"])
def test_a_name_that_is_no_function_is_refused(name):
    with pytest.raises(UserError) as error:
        named.build(dict(fn=name))
    assert repr(name) in one_line(error)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "docjax.data.no such.x",
            "docjax.\0.x",
            "docjax.1.x",
            "docjax...",
            "docjax.é.x",
        ),
        *(
            "docjax.__main__.main",
            "docjax.\ud800.x",
            "docjax.types",
            "docjax.data.units",
        ),
    ],
)
def test_an_odd_name_is_refused_in_one_line(name):
    before = set(sys.modules)
    with pytest.raises(UserError) as error:
        named.build(dict(fn=name), path="units")
    assert one_line(error).startswith(f"units.fn {name!r}")
    assert "docjax.__main__" not in set(sys.modules) - before


def test_the_name_of_a_module_lists_its_functions():
    with pytest.raises(
        UserError, match="is a module; it has Cut, Passages, Sentences, Whole"
    ):
        named.build(dict(fn="docjax.data.units"))


@pytest.mark.parametrize(
    "line", ["import no_such_module", "1 / 0", "def", "exit = {}['a']"]
)
def test_a_module_that_cannot_be_imported_is_said_in_one_line(
    line, tmp_path, monkeypatch
):
    (tmp_path / "broken.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises(UserError) as error:
        named.build(dict(fn="broken.part"), ("broken.",))
    assert "fn 'broken.part': broken cannot be imported: " in one_line(error)


@pytest.mark.parametrize(
    "keywords, text",
    [
        (
            {"temperature": "a"},
            "objective.temperature 'a' is not a number: the default",
        ),
        ({"temperature": True}, "objective.temperature True is not a number"),
        ({"temperature": float("nan")}, "objective.temperature nan is not a number"),
        ({"temperature": None}, "objective.temperature None is not a number"),
        ({"symmetric": 1}, "objective.symmetric 1 is not True or False: the default"),
        ({"similarity": ["dot"]}, "objective.similarity ['dot'] is not a text"),
        ({"temperature": dict(fn=INFONCE)}, "objective.temperature {'fn': 'docjax.obj"),
        ({"heat": 1}, f"objective: {INFONCE} has no keyword 'heat'"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_field(keywords, text):
    with pytest.raises(UserError) as error:
        named.build(dict(fn=INFONCE) | keywords, path="objective")
    assert one_line(error).startswith(text)


def test_a_whole_number_is_accepted_as_a_number():
    assert named.build(dict(fn=INFONCE, temperature=2)).keywords == {"temperature": 2}


@pytest.mark.parametrize("segment", [None, 3, "docjax.x", {}, dict(fn=INFONCE)])
def test_an_inner_part_of_the_wrong_kind_is_named(segment):
    node = dict(
        fn="docjax.encoders.document.DocumentEncoder",
        segment=segment,
        document=dict(fn="docjax.encoders.pooling.Mean"),
    )
    with pytest.raises(UserError) as error:
        named.build(node, path="encoder")
    assert one_line(error).startswith("encoder.segment ")
    assert "is not a part, dict(fn=..., ...), that is a Flax module" in one_line(error)


@pytest.mark.parametrize(
    "error, text",
    [
        ("ValueError('give one above 0')", "views: give one above 0"),
        ("TypeError('two\\nlines')", "views: two"),
        ("KeyError('size')", "views: KeyError 'size'"),
        ("ZeroDivisionError()", "views: ZeroDivisionError"),
    ],
)
def test_a_class_that_refuses_its_keywords_is_said_in_one_line(
    error, text, tmp_path, monkeypatch
):
    lines = ["class Part:", "    def __init__(self):", f"        raise {error}"]
    (tmp_path / "refusing.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "refusing", raising=False)
    with pytest.raises(UserError) as raised:
        named.build(dict(fn="refusing.Part"), ("refusing.",), "views")
    assert one_line(raised) == text


def test_an_unknown_keyword_lists_the_valid_ones():
    with pytest.raises(UserError) as error:
        named.build(dict(fn=INFONCE, temprature=1.0, scale=2))
    text = one_line(error)
    assert "has no keyword 'temprature', 'scale'; it has " in text
    assert "similarity, temperature, symmetric, include_positive" in text


def test_an_unknown_keyword_of_a_module_lists_its_fields_alone():
    with pytest.raises(UserError) as error:
        named.build(dict(fn="docjax.encoders.pooling.Mean", parent=None))
    assert one_line(error).endswith("it has normalize")


def test_a_missing_keyword_of_a_class_is_named():
    with pytest.raises(UserError) as error:
        named.build(dict(fn="docjax.encoders.pooling.Classifier", dropout=0.1))
    assert "needs classes; it has classes, dropout" in one_line(error)


@pytest.mark.parametrize(
    "name", ["subprocess.Popen", "docjaxx.evil", "antigravity.x", 3]
)
def test_a_name_outside_docjax_is_refused_without_import(name):
    before = set(sys.modules)
    with pytest.raises(UserError) as error:
        named.build(dict(fn=name))
    assert f"fn {name!r} is not under docjax." in one_line(error)
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    "name",
    [
        "docjax.config.Path",  # imported there, from elsewhere
        "docjax.config.json",
        "docjax.storage.checkpoint.os.system",
        "docjax.config.load.__globals__",
        "docjax.config.__builtins__",
        "docjax.config._public",
    ],
)
def test_what_a_module_only_imports_or_hides_is_refused(name):
    with pytest.raises(UserError) as error:
        named.build(dict(fn=name))
    assert repr(name) in one_line(error)


def test_a_prefix_that_is_allowed_by_name_is_imported():
    built = named.build(dict(fn="fractions.Fraction", numerator=3), ("fractions.",))
    assert built == 3


@pytest.mark.parametrize("where", ["encoder", "parts"])
def test_a_mistake_deep_inside_is_found(where):
    node = {"encoder": dict(fn="os.getcwd"), "parts": [dict(fn="os.getcwd")]}
    with pytest.raises(UserError, match="os.getcwd"):
        named.build({where: node[where]})


def small(node):
    node.size, node.steps = 1, None


def large(node):
    node.size = 100


def short(node):
    node.steps = 5


def usual(node):
    """Sets the value that is there."""
    node.steps = 9


def gone(node):
    node.part = {"fn": "b"}


def wrong(node):
    raise UserError("no documents")


def broken(node):
    node.size = 1 / 0


def vary(variant: str, **groups) -> ConfigDict:
    groups = groups or dict(
        size=(small, large), training_length=(short, usual), rest=(gone, wrong, broken)
    )
    node = dict(size=10, steps=9, part=dict(fn="a", heads=2))
    return config.vary(ConfigDict(node), variant, **groups)


def test_a_variant_changes_the_config():
    assert vary("").to_dict() == dict(size=10, steps=9, part=dict(fn="a", heads=2))
    assert vary("large").size == 100 and vary(",large,").size == 100


def test_variants_apply_in_the_order_typed():
    assert vary("small,short").steps == 5
    assert vary("short,small").steps is None


def test_an_unknown_variant_lists_the_names_by_group():
    with pytest.raises(UserError) as error:
        vary("large,huge")
    assert one_line(error) == (
        "variant 'huge' is none of size: small, large; training length: short, usual; "
        "rest: gone, wrong, broken"
    )


@pytest.mark.parametrize("variant", ["small,short,large", "large,small"])
def test_two_variants_of_one_group_are_refused(variant):
    first, *_, second = variant.split(",")
    with pytest.raises(UserError) as error:
        vary(variant)
    assert one_line(error) == (
        f"variants {first!r} and {second!r} both choose the size: give one of them"
    )


def test_a_variant_may_stand_in_two_groups():
    groups = dict(size=(small, large), data_set=(short, small))
    assert vary("large,short", **groups).size == 100
    with pytest.raises(UserError, match="'short' and 'small' both choose the data set"):
        vary("short,small", **groups)
    with pytest.raises(UserError, match="size: small, large; data set: short$"):
        vary("huge", **groups)


@pytest.mark.parametrize(
    ("variant", "told"),
    [
        ("large", None),
        ("large,short", None),
        ("small,short", "'short' changes what 'small' set: steps from None to 5"),
        ("short,small", "'small' changes what 'short' set: steps from 5 to None"),
        # `usual` sets steps to what they are.
        ("usual,small", "'small' changes what 'usual' set: steps from 9 to None"),
        ("usual,large", None),
    ],
)
def test_a_field_that_two_variants_set_is_told(variant, told, caplog):
    vary(variant)
    assert caplog.messages == ([f"variant {told}"] if told else [])


def test_a_value_that_is_gone_is_told(caplog):
    def heads(node):
        node.part.heads = 4

    vary("heads,gone", first=(heads,), then=(gone,))
    assert caplog.messages == [
        "variant 'gone' changes what 'heads' set: part.heads from 4 to absent"
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wrong", "no documents"),
        ("broken", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_inside_a_variant_names_the_variant(name, reason):
    with pytest.raises(UserError) as error:
        vary(f"large,{name}")
    assert one_line(error) == f"variant {name!r}: {reason}"


def test_a_saved_config_comes_back(tmp_path):
    node = ConfigDict(dict(a=dict(fn=INFONCE, text="é"), b=(1, 2.5), c=None))
    json_file.write(tmp_path / "config.json", named.plain(node))
    assert json_file.read(tmp_path / "config.json") == named.plain(node)


def test_a_missing_or_broken_config_is_said_with_its_path(tmp_path):
    with pytest.raises(UserError) as error:
        json_file.read(tmp_path / "config.json")
    assert f"is {tmp_path} a run or a model folder?" in one_line(error)
    for broken in (b'{"a": ', b"\xff\xfe"):
        (tmp_path / "config.json").write_bytes(broken)
        with pytest.raises(UserError, match="config.json: not JSON"):
            json_file.read(tmp_path / "config.json")
    (tmp_path / "config.json").write_bytes(b" " * 2**25)
    with pytest.raises(UserError, match="config.json: longer than 16,777,216 bytes"):
        json_file.read(tmp_path / "config.json")


ROOT = Path(config.__file__).parents[1]
SHIPPED = sorted({path.stem for path in (ROOT / "configs").glob("*.py")} - {"base"})


@pytest.mark.parametrize(
    "name", ["graph_roberta", "configs/graph_roberta.py", "./configs/graph_roberta.py"]
)
def test_a_shipped_config_is_found_from_any_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = ROOT / "configs/graph_roberta.py"
    assert config.find(name) == (shipped, "")
    assert config.find(f"{name}:small,x") == (shipped, "small,x")


def test_a_file_that_exists_goes_before_a_shipped_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "configs" / "graph_roberta.py"
    own.parent.mkdir()
    own.write_text("")
    found, _ = config.find("configs/graph_roberta.py")
    assert found.resolve() == own
    assert config.find(own)[0] == own
    assert config.find("graph_roberta")[0] == ROOT / "configs/graph_roberta.py"


@pytest.mark.parametrize("name", ["graph_robert", "none/graph_roberta.py", "", "a:b"])
def test_an_unknown_config_lists_the_shipped_ones(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        config.find(name)
    assert one_line(error).endswith(f"one of {', '.join(SHIPPED)}")


def test_configs_inside_the_package_are_those_that_are_found(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    for name in ("only", "base"):
        (tmp_path / f"configs/{name}.py").write_text(f"name = {name!r}")
    monkeypatch.setattr(config, "__file__", str(tmp_path / "config.py"))
    assert config.shipped() == {"only": tmp_path / "configs/only.py"}
    assert config.base().name == "base"


def test_what_configs_share_is_no_config_but_any_file_can_begin_with_it(tmp_path):
    assert "base" not in config.shipped()
    with pytest.raises(UserError, match="neither a Python file nor a shipped config"):
        config.load("base")
    with pytest.raises(UserError, match="has no function get_config"):
        config.load(ROOT / "configs/base.py")
    path = tmp_path / "mine.py"
    path.write_text(
        "from docjax.config import base, vary\n"
        "def get_config(variant=''):\n"
        "    config = base().config(batch=7, encoder=dict(segment=base().bert()))\n"
        "    return vary(config, variant, size=(tiny,))\n"
        "def tiny(config):\n"
        "    config.encoder.segment.update(layers=1)\n"
    )
    mine = config.load(path, variant="tiny")
    assert (mine.batch, mine.steps, mine.encoder.segment.layers) == (7, None, 1)
    assert mine.encoder.segment.vocabulary == 30522 and mine.encoder.frozen == ""


def test_a_config_is_loaded_in_the_variant_that_is_named():
    small = config.load("graph_roberta", variant="small")
    assert small == config.load("graph_roberta:small")
    assert small.encoder.segment.width == 128
    assert config.load("graph_roberta").encoder.segment.width == 768
    # Its default variant is that of the file.
    assert config.load("graph_roberta_classify").epochs == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named"),
        ("def get_config(:", "SyntaxError"),
        ("x = 1", "has no function get_config"),
        ("def get_config(): return {}", "get_config returns a dict, not a ConfigDict"),
        ("def get_config(): confg.batch = 3", "NameError: name 'confg' is not defined"),
        (
            "import docjax\n\nCONFIG = docjax.config.load('graph_roberta').optimzer.clip",
            """AttributeError: 'optimzer'. Did you mean "optimizer" instead of""",
        ),
        ("def get_config(): return 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_config_file_that_fails_is_one_line(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        config.load(path)
    assert one_line(error).startswith(f"{path}: ") and message in str(error.value)


def test_a_variant_is_given_once(tmp_path):
    with pytest.raises(UserError, match="has two variants, 'small' and 'demo'"):
        config.load("graph_roberta:small", variant="demo")
    path = tmp_path / "mine.py"
    path.write_text("def get_config(): pass")
    with pytest.raises(UserError, match="takes 0 positional arguments but 1 was given"):
        config.load(path, variant="small")
