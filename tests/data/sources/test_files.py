"""People's files: what is read of each form, and the one line for what is not."""

import importlib.util

import pytest

from docjax.data.sources.files import files
from docjax.errors import UserError
from tests.data.sources import forms

OFFICE = all(map(importlib.util.find_spec, ("openpyxl", "docx", "pypdf")))
NEEDS_OFFICE = pytest.mark.skipif(not OFFICE, reason="needs the extra files")


def tabular(found):
    return [(d.id, d.title, d.sections[0].text, d.label) for d in found]


def structured(found):
    return [(d.title, [(s.heading, s.text) for s in d.sections]) for d in found]


def check(folder, form):
    name, content, keywords, expected = form
    path = forms.write(folder, name, content)
    found = list(files(str(path), **keywords))
    assert tabular(found) == expected
    assert all(len(document.sections) == 1 for document in found)


@pytest.mark.parametrize("form", forms.TABLES.values(), ids=forms.TABLES)
def test_a_table_is_read_right(tmp_path, form):
    check(tmp_path, form)


@NEEDS_OFFICE
def test_an_excel_table_is_read_right(tmp_path):
    for form in forms.excel_forms().values():
        check(tmp_path, form)


@pytest.mark.parametrize("form", forms.TEXTS.values(), ids=forms.TEXTS)
def test_a_text_is_one_document(tmp_path, form):
    name, content, expected = form
    (found,) = files(str(forms.write(tmp_path, name, content)))
    assert structured([found]) == expected and found.id == name


@NEEDS_OFFICE
def test_a_text_of_an_office_is_one_document(tmp_path):
    for name, content, expected in forms.office_forms().values():
        assert structured(files(str(forms.write(tmp_path, name, content)))) == expected


@pytest.mark.parametrize("form", forms.REFUSED.values(), ids=forms.REFUSED)
def test_a_wrong_file_is_one_line_with_the_reason(tmp_path, form):
    name, content, keywords, message = form
    path = forms.write(tmp_path, name, content)
    with pytest.raises(UserError) as error:
        list(files(str(path), **keywords))
    assert message in str(error.value) and "\n" not in str(error.value)
