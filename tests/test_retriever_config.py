"""configs/retriever.py: what its docstring promises."""

import docjax
from docjax.parts import named
from docjax.run import fields


def test_msmarco_reads_the_table_of_documents(tmp_path):
    config = docjax.config.load("retriever", variant="msmarco")
    config.source.path = str(tmp_path / "corpus.tsv")
    lines = ["D1\thttp://a\tA title\tText of a.", "D2\thttp://b\t\tText of b."]
    (tmp_path / "corpus.tsv").write_text("\n".join(lines))
    source = fields.resolve(named.plain(config)).source.build()
    found = {each.id: (each.title, each.sections[0].text) for each in source()}
    assert found == {"D1": ("A title", "Text of a."), "D2": ("", "Text of b.")}
