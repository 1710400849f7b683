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
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ....errors import InvalidInput, error_reason

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
CHUNK_BYTES = 2**17

_TIMEOUT_SECONDS = 60
_GZIP = b"\x1f\x8b"
_BZIP2 = b"BZh"
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")  # a data frame, or a skippable frame before it
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(Exception):
    """An input cannot be opened, or not be read to its end."""


def _read_errors() -> tuple[type[Exception], ...]:
    from http.client import HTTPException  # takes long, and few inputs need it

    return OSError, EOFError, zlib.error, zstd.ZstdError, HTTPException


class Source(io.RawIOBase):
    """A raw input stream that counts the bytes read.

    Attributes:
        name: the name that the user gave.
        size: its size in bytes, if known.
        done: the number of bytes read so far.
    """

    def __init__(self, name: str, inner: BinaryIO, size: int | None) -> None:
        self.name = name
        self.size = size
        self.done = 0
        self._inner = inner

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read into ``buffer``, and detect a lost connection, which ``http.client`` does not.

        Raises:
            EOFError: if the input ends before ``size`` bytes.
        """
        view = memoryview(buffer)
        data = self._inner.read(len(view))
        view[: len(data)] = data
        self.done += len(data)
        if not data and self.size is not None and self.done < self.size:
            raise EOFError(f"ended after {self.done:,} of {self.size:,} bytes")
        return len(data)


def check_input(name: str) -> None:
    """Check that an input can be read, before any work is done.

    Raises:
        InvalidInput: if there is no such file, or it is a folder or a device.
    """
    if name == STANDARD_INPUT or _is_url(name):
        return
    if Path(name).is_dir():
        raise InvalidInput(
            f"{name} is a folder; give the files in it, such as {Path(name) / '*.pgn'}"
        )
    if Path(name).is_char_device() or Path(name).is_block_device():
        raise InvalidInput(
            f"{name} is a device, which may have no end; give PGN files, or - to type"
        )
    if not Path(name).exists():
        raise InvalidInput(f"no such file: {name} (give PGN files, - or an https:// address)")


@contextmanager
def open_input(name: str) -> Iterator[Source]:
    """Open an input: a file, ``-`` for standard input, or a URL.

    Raises:
        Unreadable: if it cannot be opened.
    """
    try:
        inner, size = _open(name)
    except _read_errors() as problem:
        raise Unreadable(f"cannot open {name}: {error_reason(problem)}") from None
    try:
        yield Source(name, inner, size)
    finally:
        if name != STANDARD_INPUT:
            inner.close()


def read_chunks(source: Source) -> Iterator[bytes]:
    """Yield an input's content: decompressed, in UTF-8 without byte-order marks, with ``\\n``.

    Raises:
        Unreadable: after the last readable chunk, if the input is cut off or damaged.
    """
    try:
        chunks = _fill_chunks(_decompress(io.BufferedReader(source, CHUNK_BYTES)))
        yield from _normalize_newlines(_to_utf_8(chunks))
    except _read_errors() as problem:
        raise Unreadable(f"cannot read {source.name} to its end: {error_reason(problem)}") from None


def _is_url(name: str) -> bool:
    return name.startswith(("https://", "http://"))


def _open(name: str) -> tuple[BinaryIO, int | None]:
    if name == STANDARD_INPUT:
        return sys.stdin.buffer, None
    if _is_url(name):
        from urllib.request import Request, urlopen

        request = Request(name, headers={"User-Agent": "cant-do-that-anymore"})
        response = urlopen(request, timeout=_TIMEOUT_SECONDS)
        length = response.headers.get("Content-Length")
        return response, int(length) if length else None
    file = Path(name).open("rb")  # noqa: SIM115 - the caller closes it
    status = os.fstat(file.fileno())
    return file, status.st_size if stat.S_ISREG(status.st_mode) else None


def _decompress(stored: io.BufferedReader) -> io.BufferedIOBase:
    """Choose the decompressor by the first bytes: standard input and URLs may have no suffix."""
    start = stored.peek(4)
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=stored)
    if start.startswith(_BZIP2):
        return bz2.BZ2File(stored)
    if start.startswith(_ZSTD):
        return zstd.ZstdFile(stored)
    return stored


def _fill_chunks(stream: io.BufferedIOBase) -> Iterator[bytes]:
    """Yield chunks of full size, and the rest that is readable before the end or an error."""
    chunk = b""
    try:
        while data := stream.read1(CHUNK_BYTES - len(chunk)):
            chunk += data
            if len(chunk) == CHUNK_BYTES:
                yield chunk
                chunk = b""
    except _read_errors():
        yield chunk
        raise
    yield chunk


def _to_utf_8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Convert UTF-16 to UTF-8 and drop byte-order marks; keep Latin-1, which only affects names."""
    first = next(chunks)
    chunks = chain([first], chunks)
    if first.startswith(_UTF_16):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        chunks = (decoder.decode(chunk).encode() for chunk in chunks)
    return (chunk.replace(codecs.BOM_UTF8, b"") for chunk in chunks)


def _normalize_newlines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    carry = b""
    for chunk in chunks:
        text = carry + chunk
        carry = b""
        if b"\r" in text:
            carry = b"\r" if text.endswith(b"\r") else b""  # a line feed may follow
            text = text.removesuffix(carry).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield text
    yield b"\n" if carry else b""
