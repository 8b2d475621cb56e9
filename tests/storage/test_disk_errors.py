"""A full or read-only disk is one line; every other error stays what it is."""

import contextlib
import errno
import os
import resource
import signal
from collections.abc import Iterator

import numpy as np
import pytest
import tokenizers

from docjax.errors import UserError
from docjax.storage.arrays import growing_array
from docjax.storage.disk_errors import MENDS, cause, in_one_line


@pytest.mark.parametrize("number", MENDS)
def test_the_line_names_file_reason_and_mend(number, tmp_path):
    with pytest.raises(UserError) as error, in_one_line(tmp_path):
        raise OSError(number, os.strerror(number), "some/file")
    line = str(error.value)
    either = errno.EACCES, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP
    failed = "read or written" if number in either else "written"
    assert line.startswith(f"some/file: cannot be {failed} ({os.strerror(number)}); ")
    assert MENDS[number] in line and "run the same command again" in line
    assert "\n" not in line


def test_an_error_without_a_file_names_the_folder(tmp_path):
    with pytest.raises(UserError, match=f"^{tmp_path}: "), in_one_line(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file", "a"),
        ValueError("no space"),
        UserError("No space left on device, says the source"),
    ],
)
def test_other_errors_stay_what_they_are(error, tmp_path):
    with pytest.raises(type(error)) as raised, in_one_line(tmp_path):
        raise error
    assert raised.value is error


def test_the_cause_is_found_behind_other_errors():
    try:
        try:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        except OSError as error:
            raise RuntimeError("the array was not written") from error
    except RuntimeError as error:
        assert cause(error).number == errno.EDQUOT
    assert cause(RuntimeError("the array was not written")) is None
    assert cause(None) is None


@contextlib.contextmanager
def no_room() -> Iterator[None]:
    """Files of more than 1,000 bytes cannot be written: the disk is as good as full.

    No fixture: pytest writes too, perhaps into a long file, before a fixture ends.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_what_tokenizers_and_arrays_raise_of_a_real_limit_is_one_line(tmp_path):
    vocabulary = {f"word{number}": number for number in range(500)}
    model = tokenizers.models.WordLevel(vocabulary, unk_token="word0")
    with (
        pytest.raises(UserError, match="ulimit -f"),
        in_one_line(tmp_path),
        no_room(),
    ):
        tokenizers.Tokenizer(model).save(str(tmp_path / "tokenizer.json"))
    with (
        pytest.raises(UserError, match="ulimit -f"),
        in_one_line(tmp_path),
        no_room(),
        growing_array(tmp_path / "a.npy", np.float32) as append,
    ):
        append(np.zeros(10_000))
