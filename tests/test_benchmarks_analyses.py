"""The tables of the analyses, beside what was published."""

import json

from benchmarks import analyses


def test_redundancy_of_files_stands_beside_the_papers(nltk_data, tmp_path, capsys):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"id": "a", "text": "The dog chased a dog."}) + "\n")
    analyses.main(["--lexicons", nltk_data, "--redundancy", str(path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| | 1-50 | 51-100 | 101-200 | 201-300 | 301- | all |"
    assert "| mine | 1.50 | - | - | - | - | 1.50 |" in lines
    assert "| 20News (published) | 1.12 | 1.18 | 1.24 | 1.31 | 1.50 | 1.28 |" in lines


def test_attention_is_compared_with_the_first_model(monkeypatch):
    found = {
        ("a", "word_attention"): {"eval/word_attention/noun": 0.02},
        ("b", "word_attention"): {"eval/word_attention/noun": 0.03},
    }
    alike = {"eval/sentence_similarity/inner": 0.5}
    monkeypatch.setattr(analyses.docjax, "load", lambda name: name)
    monkeypatch.setattr(
        analyses,
        "evaluate_model",
        lambda model, task, data, **_: found.get((model, task), alike),
    )
    lines = analyses.attention(["a", "b"], "data.jsonl", None, 5)
    assert "| b | 0.03000 | 1.50000 |" in lines
    assert "| a | 0.50 | - |" in lines and "| NYT (published) | 0.30 | 0.11 |" in lines
