"""The bytes of one file: unpacked by its first bytes, and in UTF-8 where a mark at the
beginning, or the user, names another encoding."""

import bz2
import codecs
import contextlib
import functools
import gzip
import io
import itertools
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import zstandard

from docjax.errors import UserError

BLOCK = 1 << 16  # bytes that are read at a time, and that tell the format
STDIN = "-"
# How a packed file begins, by the suffix that it should have.
PACKED = {
    ".gz": b"\x1f\x8b",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".bz2": b"BZh",
}
# How files begin that are no texts.
PARQUET, ARROW_FILE, ZIP, PDF = b"PAR1", b"ARROW1", b"PK\x03\x04", b"%PDF-"
ARROW_STREAM = b"\xff\xff\xff\xff"
BINARY = (PARQUET, ARROW_FILE, ARROW_STREAM, ZIP, PDF)
MARKS = {  # a mark of UTF-32 begins with one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Unreadable(UserError):
    """A file that cannot be opened, or is damaged; `detail` is the reason."""

    def __init__(self, name: str, detail: str):
        super().__init__(f"{name}: {detail}")
        self.detail = detail


class Opened(NamedTuple):
    """A file that is being read.

    name: its path in messages; head: the first BLOCK of `stream`, or all of it; plain:
    the file itself, in which a reader may go back; None for a packed file or a pipe.
    """

    name: str
    head: bytes
    stream: io.BufferedIOBase
    plain: io.BufferedIOBase | None

    def whole(self) -> io.BufferedIOBase:
        """A stream with all bytes, in which a reader may go back."""
        if self.plain is None:
            return io.BytesIO(self.stream.read())
        self.plain.seek(0)
        return self.plain


@contextlib.contextmanager
def opened(file: Path | str, encoding: str | None = None) -> Iterator[Opened]:
    """Opens a file, or STDIN.

    encoding: that of the text; None: UTF-8, or what a mark of UTF-16 or UTF-32 says.

    Raises:
      UserError: if the file cannot be opened, is cut short, damaged or not packed as its
        suffix says, changes while it is read, or is not in `encoding`.
    """
    name, file = (
        ("standard input", None) if str(file) == STDIN else (shown(file), Path(file))
    )
    try:
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(open(file, "rb")) if file else sys.stdin.buffer
            before = os.fstat(raw.fileno()) if file else None
            blocks, packed = _unpacked(_blocks(raw), file, name)
            head, blocks = _head(blocks)
            found = None if head.startswith(BINARY) else encoding or _marked(head)
            if found and found.lower() not in ("utf-8", "utf8"):
                blocks = _in_utf8(blocks, found, name)
            head, blocks = _head(_without_mark(blocks))
            is_file = before is not None and stat.S_ISREG(before.st_mode)
            stream = io.BufferedReader(_Blocks(blocks), BLOCK)
            yield Opened(name, head, stream, raw if is_file and not packed else None)
            if is_file:
                _check_same(before, os.fstat(raw.fileno()), name)
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise Unreadable(name, f"damaged or cut short ({error})") from None
    except OSError as error:
        raise Unreadable(name, f"cannot be read ({_reason(error)})") from None


def shown(name: object) -> str:
    """A path or another name in messages: in one line, and a long one cut."""
    text = str(name)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 200 else f"{text[:120]}...{text[-60:]}"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _check_same(before: os.stat_result, after: os.stat_result, name: str) -> None:
    facts = lambda found: (found.st_size, found.st_mtime_ns)
    if facts(before) != facts(after):
        raise UserError(
            f"{name} changed while it was read (from {before.st_size} to "
            f"{after.st_size} bytes): wait until it is written, and run the same "
            "command again"
        )


def _blocks(stream: io.BufferedIOBase) -> Iterator[bytes]:
    return iter(functools.partial(stream.read, BLOCK), b"")


def _head(blocks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first BLOCK of bytes, and the blocks with them."""
    blocks, first, size = iter(blocks), [], 0
    while size < BLOCK and (block := next(blocks, b"")):
        first.append(block)
        size += len(block)
    return b"".join(first)[:BLOCK], itertools.chain(first, blocks)


def _unpacked(
    blocks: Iterator[bytes], file: Path | None, name: str
) -> tuple[Iterator[bytes], bool]:
    """The unpacked blocks, and whether the file was packed."""
    head, blocks = _head(blocks)
    suffix = file.suffix.lower() if file else ""
    kind = next((k for k, first in PACKED.items() if head.startswith(first)), None)
    if kind is None:
        if suffix in PACKED and head:
            raise Unreadable(
                name,
                f"cannot be read: it is damaged, or not packed as {suffix} says (its "
                f"first bytes are {head[:6]!r}); get it again, or rename it",
            )
        return blocks, False
    stream = io.BufferedReader(_Blocks(blocks), BLOCK)
    if kind == ".zst":  # the library's own reader does not report a cut file
        return _zstandard_blocks(stream), True
    openers = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile, ".bz2": bz2.BZ2File}
    keyword = "fileobj" if kind == ".gz" else "filename"
    return _blocks(openers[kind](mode="rb", **{keyword: stream})), True


def _zstandard_blocks(source: io.BufferedIOBase) -> Iterator[bytes]:
    frame = zstandard.ZstdDecompressor().decompressobj()
    ended = False
    for block in _blocks(source):
        while block:
            if ended:
                frame = zstandard.ZstdDecompressor().decompressobj()
            if found := frame.decompress(block):
                yield found
            ended, block = frame.eof, frame.unused_data
    if not ended:
        raise EOFError("the last frame has no end")


def _marked(head: bytes) -> str | None:
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), None)


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks without UTF-8's own mark."""
    head, blocks = _head(blocks)
    if not head.startswith(codecs.BOM_UTF8):
        return blocks
    first = next(blocks)
    while len(first) < len(codecs.BOM_UTF8):
        first += next(blocks)
    return itertools.chain([first[len(codecs.BOM_UTF8) :]], blocks)


def _in_utf8(blocks: Iterable[bytes], encoding: str, name: str) -> Iterator[bytes]:
    decoder, place = _decoder(encoding), 0
    for block in itertools.chain(blocks, [b""]):
        held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeError as error:
            byte = place - held + getattr(error, "start", 0)
            raise UserError(
                f"{name}: byte {byte} is not {encoding} "
                f"({getattr(error, 'reason', error)}): name the encoding of the file "
                "with --encoding, or source.encoding of a run"
            ) from None
        place += len(block)
        yield text.encode("utf-8", "surrogatepass")


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    try:
        with contextlib.suppress(UnicodeDecodeError):
            b" ".decode(encoding)  # raises for what is no encoding of texts
        return codecs.getincrementaldecoder(encoding)()
    except (LookupError, ValueError):
        raise UserError(f"encoding={encoding!r}: not an encoding of Python") from None


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a stream."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks, self._rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not self._rest:  # a block may be empty
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
