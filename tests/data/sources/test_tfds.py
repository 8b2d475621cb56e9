import json
import shutil

import numpy as np
import pytest
import tensorflow_datasets as library

from docjax.data.documents import BadDocument
from docjax.data.sources.tfds import stamp, tfds
from docjax.errors import UserError
from docjax.parts.named import build


class Toys(library.core.GeneratorBasedBuilder):
    """A few texts."""

    VERSION = library.core.Version("1.0.0")
    url_infos = {}  # noqa: RUF012 looking for them needs importlib_resources

    def _info(self):
        return self.dataset_info_from_configs(
            features=library.features.FeaturesDict(
                {
                    "text": library.features.Text(),
                    "raw": np.bytes_,
                    "label": library.features.ClassLabel(names=["cat", "dog"]),
                    "stars": np.int64,
                }
            )
        )

    def _split_generators(self, manager):
        return {
            "train": self._generate_examples(20),
            "test": self._generate_examples(5),
        }

    def _generate_examples(self, count):
        for i in range(count):
            raw = b"\xff" if i == 3 else b"fine"
            label = -1 if i == 4 else i % 2
            yield (
                i,
                {"text": f"Texte {i} à lire.", "raw": raw, "label": label, "stars": i},
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets")
    builder = Toys(data_dir=folder, file_format="array_record")
    builder.download_and_prepare()
    return folder


def test_a_config_names_the_dataset(folder):
    node = dict(fn="docjax.data.sources.tfds.tfds", path="toys", data_dir=str(folder))
    assert len(list(build(node)())) == 25


def test_a_slice_that_is_none_is_one_line(folder):
    with pytest.raises(UserError, match=r"split 'train\[:x\]'"):
        list(tfds("toys", split="train[:x]", data_dir=str(folder)))


def test_every_example_is_a_document_with_its_class_name(folder):
    found = list(tfds("toys", data_dir=str(folder)))
    assert [one.split for one in found] == ["train"] * 20 + ["test"] * 5
    assert len({one.id for one in found}) == 25
    train = {one.sections[0].text: one.label for one in found[:20]}
    expected = {f"Texte {i} à lire.": ("cat", "dog")[i % 2] for i in range(20)}
    assert train == {**expected, "Texte 4 à lire.": None}


def test_the_folder_of_a_prepared_dataset_is_enough(folder):
    found = list(
        tfds(str(folder / "toys/1.0.0"), split="test", title="text", label=None)
    )
    assert len(found) == 5
    assert all(one.label is None and one.title.startswith("Texte") for one in found)


def test_a_slice_of_a_split_is_in_the_split(folder):
    found = list(tfds("toys", split="train[:50%]", data_dir=str(folder), label="stars"))
    assert [one.split for one in found] == ["train"] * 10
    assert {one.label for one in found} <= {str(i) for i in range(20)}


def test_invalid_utf8_names_the_example(folder):
    with pytest.raises(
        BadDocument, match="toys, split train, example .* invalid UTF-8"
    ):
        list(tfds("toys", split="train", data_dir=str(folder), text="raw"))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"text": "body"}, "text='body': .* it has text, raw, label, stars$"),
        ({"label": "class"}, "label='class': .* label=None leaves it out"),
        ({"split": "dev"}, "split 'dev': dataset 'toys' has test, train|train, test"),
    ],
)
def test_what_the_dataset_has_not_is_named(folder, keywords, message):
    with pytest.raises(UserError, match=message):
        list(tfds("toys", data_dir=str(folder), **keywords))


def test_a_dataset_that_is_not_prepared_gives_the_mend(tmp_path):
    with pytest.raises(UserError, match="is not prepared in .* download=True"):
        tfds("ag_news_subset", data_dir=str(tmp_path))


def test_files_that_need_tensorflow_are_refused(folder, tmp_path):
    copy = tmp_path / "1.0.0"
    shutil.copytree(folder / "toys/1.0.0", copy)
    info = json.loads((copy / "dataset_info.json").read_text())
    info["fileFormat"] = "tfrecord"
    (copy / "dataset_info.json").write_text(json.dumps(info))
    with pytest.raises(UserError, match="has tfrecord files: .*='array_record'"):
        tfds(str(copy))


def test_an_unknown_dataset_is_named_in_one_line(tmp_path):
    with pytest.raises(UserError, match="'no_such_set' cannot be read") as error:
        tfds("no_such_set", data_dir=str(tmp_path))
    assert "\n" not in str(error.value)


def test_the_stamp_counts_the_examples(folder):
    assert "['train', 20," in str(stamp("toys", data_dir=str(folder)))
