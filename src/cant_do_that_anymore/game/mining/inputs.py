"""Open files, standard input and URLs as byte streams, compressed or not."""

import bz2
import codecs
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.request import Request, urlopen

from ...errors import InvalidInput, error_reason

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
PIECE = 2**17
"""How many bytes are read at a time."""

_SILENT_SERVER_SECONDS = 60
_BROKEN = (OSError, EOFError, zlib.error, zstd.ZstdError, HTTPException)
_GZIP = b"\x1f\x8b"
_BZIP2 = b"BZh"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")  # a frame of data, or one to skip before it
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(Exception):
    """An input that cannot be opened, or not be read to its end."""


class Source(io.RawIOBase):
    """An input as it is stored, and how much of it was read.

    Attributes:
        name: what the user calls it.
        size: how many bytes it has, if known.
        done: how many of them were read.
    """

    def __init__(self, name: str, inner: BinaryIO, size: int | None) -> None:
        self.name = name
        self.size = size
        self.done = 0
        self._inner = inner

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read what fits into ``buffer``; unlike in ``http.client``, a lost connection is noticed.

        Raises:
            EOFError: if there are fewer bytes than promised.
        """
        view = memoryview(buffer)
        data = self._inner.read(len(view))
        view[: len(data)] = data
        self.done += len(data)
        if not data and self.size is not None and self.done < self.size:
            raise EOFError(f"ended after {self.done:,} of {self.size:,} bytes")
        return len(data)


def check_input(name: str) -> None:
    """See that ``name`` can hold games, before any work is done.

    Raises:
        InvalidInput: if it names no file.
    """
    if name == STANDARD_INPUT or _is_address(name):
        return
    if Path(name).is_dir():
        raise InvalidInput(
            f"{name} is a folder: give the files in it, such as {Path(name) / '*.pgn'}"
        )
    if Path(name).is_char_device() or Path(name).is_block_device():
        raise InvalidInput(
            f"{name} is a device, which may have no end: give PGN files, or - to type"
        )
    if not Path(name).exists():
        raise InvalidInput(f"no such file: {name} (give PGN files, - or an https:// address)")


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """The input of that name: a file, ``-`` for standard input, or a web address.

    Raises:
        Unreadable: if it cannot be opened.
    """
    try:
        inner, size = _open(name)
    except _BROKEN as problem:
        raise Unreadable(f"cannot open {name}: {error_reason(problem)}") from None
    try:
        yield Source(name, inner, size)
    finally:
        if name != STANDARD_INPUT:
            inner.close()


def read_pieces(source: Source) -> Iterator[bytes]:
    """What ``source`` holds, uncompressed, with a line feed at the end of lines and no marks.

    Raises:
        Unreadable: after the last piece that could be read, if there should be more.
    """
    try:
        pieces = _filled(_uncompressed(io.BufferedReader(source, PIECE)))
        yield from _with_line_feeds(_in_utf_8(pieces))
    except _BROKEN as problem:
        raise Unreadable(f"cannot read {source.name} to its end: {error_reason(problem)}") from None


def _is_address(name: str) -> bool:
    return name.startswith(("https://", "http://"))


def _open(name: str) -> tuple[BinaryIO, int | None]:
    if name == STANDARD_INPUT:
        return sys.stdin.buffer, None
    if _is_address(name):
        request = Request(name, headers={"User-Agent": "cant-do-that-anymore"})
        response = urlopen(request, timeout=_SILENT_SERVER_SECONDS)
        length = response.headers.get("Content-Length")
        return response, int(length) if length else None
    file = Path(name).open("rb")  # noqa: SIM115 - the caller closes it
    status = os.fstat(file.fileno())
    return file, status.st_size if stat.S_ISREG(status.st_mode) else None


def _uncompressed(stored: io.BufferedReader) -> io.BufferedIOBase:
    """Decided by the first bytes, since standard input and addresses need not have a suffix."""
    start = stored.peek(4)
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=stored)
    if start.startswith(_BZIP2):
        return bz2.BZ2File(stored)
    if start.startswith(_ZSTD):
        return zstd.ZstdFile(stored)
    return stored


def _filled(stream: io.BufferedIOBase) -> Iterator[bytes]:
    """Pieces of full size, and what could still be read before an end or an error."""
    piece = b""
    try:
        while some := stream.read1(PIECE - len(piece)):
            piece += some
            if len(piece) == PIECE:
                yield piece
                piece = b""
    except _BROKEN:
        yield piece
        raise
    yield piece


def _in_utf_8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Without byte-order marks; Latin-1 stays, since only names would differ."""
    first = next(pieces)
    pieces = chain([first], pieces)
    if first.startswith(_UTF_16):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        pieces = (decoder.decode(piece).encode() for piece in pieces)
    return (piece.replace(codecs.BOM_UTF8, b"") for piece in pieces)


def _with_line_feeds(pieces: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for piece in pieces:
        text = held + piece
        held = b""
        if b"\r" in text:
            held = b"\r" if text.endswith(b"\r") else b""  # a line feed may follow
            text = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield text
    yield b"\n" if held else b""
