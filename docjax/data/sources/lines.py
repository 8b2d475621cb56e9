"""The lines of files: plain, .gz, .xz or .zst, one file or a pattern of many."""

import contextlib
import glob
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import zstandard

from docjax.errors import UserError

BLOCK = 1 << 16  # bytes of compressed input read at a time


def numbered_lines(path: str) -> Iterator[tuple[str, bytes]]:
    """Each line that is not blank, with its place, of the files that `path` matches."""
    if path == "-":
        return _numbered("standard input", sys.stdin.buffer)
    return (pair for file in files(path) for pair in _numbered(file, open_lines(file)))


def files(path: str) -> list[Path]:
    """The files that `path` matches, in the order of their names."""
    matches = [Path(path)] if Path(path).is_file() else []
    matches = matches or [Path(name) for name in sorted(glob.glob(str(path)))]
    if not matches:
        raise UserError(f"{path}: no such file")
    if any(file.is_dir() for file in matches):
        raise UserError(
            f"{path}: a folder; name its files ('{path}/*.jsonl'), or read text files "
            "with docjax.data.sources.folder.folder"
        )
    return matches


def open_lines(file: Path) -> Iterator[bytes]:
    """The lines of a file, decompressed by its suffix. Raises UserError if the file is
    cut short, damaged or not what its suffix says."""
    # The library's own reader of .zst does not report a cut file.
    zstandard_open = lambda *given: contextlib.closing(_zstandard_lines(*given))
    openers = {".gz": gzip.open, ".xz": lzma.open, ".zst": zstandard_open}
    try:
        with openers.get(file.suffix, open)(file, "rb") as lines:
            yield from lines
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise UserError(f"{file}: damaged or cut short ({error})") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error})") from None


def _numbered(name: Path | str, lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each line that is not blank, with its place."""
    for number, line in enumerate(lines, start=1):
        if not line.isspace():
            yield f"{name}, line {number}", line


def _zstandard_lines(file: Path, mode: str) -> Iterator[bytes]:
    rest = b""
    for block in _zstandard_blocks(file, mode):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _zstandard_blocks(file: Path, mode: str) -> Iterator[bytes]:
    frame = zstandard.ZstdDecompressor().decompressobj()
    ended = False
    with open(file, mode) as source:
        while block := source.read(BLOCK):
            while block:
                if ended:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(block)
                ended, block = frame.eof, frame.unused_data
    if not ended:
        raise EOFError("the last frame has no end")
