"""Mistakes in config files: no traceback, and nothing of a wrong type is accepted."""

from benchmarks import config_mutations


def test_shipped_configs_are_accepted_from_files(tmp_path):
    for name, config in config_mutations.shipped().items():
        path = tmp_path / f"{name}.py"
        path.write_text(config_mutations.file_text(config))
        assert config_mutations.outcome_of(path) == ("accepted", ""), name


def test_random_mistakes_are_one_line_or_none(tmp_path):
    outcomes = config_mutations.run(config_mutations.shipped(), 100, 21, tmp_path)
    assert set(outcomes) == {"refused", "accepted"}
    assert len(outcomes["refused"]) > 50 and len(outcomes["accepted"]) > 2


def test_a_wrong_type_that_slips_through_is_seen(tmp_path, monkeypatch):
    """The benchmark does not rely on the check that it tests."""
    config = config_mutations.shipped()["graph_roberta"]
    config["objective"]["temperature"] = True
    config["batch"] = True
    path = tmp_path / "wrong.py"
    path.write_text(config_mutations.file_text(config))
    assert config_mutations.outcome_of(path)[0] == "refused"
    for module in ("docjax.parts.named", "docjax.run.fields"):
        monkeypatch.setattr(f"{module}.fits", lambda *_: True)
    outcome, text = config_mutations.outcome_of(path)
    assert outcome == "wrong type"
    assert ".batch True" in text and ".objective.temperature True" in text
