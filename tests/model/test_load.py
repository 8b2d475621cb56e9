"""Models that cannot be loaded from a run: one line says why."""

import json

import pytest

import docjax
from docjax.errors import UserError


@pytest.mark.parametrize("missing", ["units", "segments", "graph", "limits", "encoder"])
def test_a_run_of_an_earlier_docjax_is_told_so(missing, tmp_path):
    names = ("units", "segments", "graph", "limits", "encoder", "objective")
    config = {name: None for name in names if name != missing}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(
        UserError, match=f"config.json: has no {missing}: an earlier"
    ) as e:
        docjax.load(tmp_path)
    assert "\n" not in str(e.value)
