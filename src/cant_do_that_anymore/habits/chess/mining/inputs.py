"""Open files, standard input and URLs as byte streams, compressed or not."""

import bz2
import codecs
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from itertools import chain
from pathlib import Path
from typing import Any, cast
from urllib.request import Request, urlopen

from ....errors import InvalidInput, error_reason

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
CHUNK_BYTES = 2**17

_TIMEOUT_SECONDS = 60
# The first bytes of compressed data. Of Zstandard: a data frame, or a skippable frame before it.
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\x28\xb5\x2f\xfd": zstd.open,
    b"\x50\x2a\x4d\x18": zstd.open,
}
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_READ_ERRORS = (OSError, EOFError, zlib.error, zstd.ZstdError, HTTPException)


class Unreadable(Exception):
    """An input cannot be opened, or not be read to its end."""


@dataclass(frozen=True)
class Source:
    """An open input.

    Attributes:
        name: the name that the user gave.
        stream: its bytes.
        size: its size in bytes, if known.
    """

    name: str
    stream: Any
    size: int | None

    @property
    def share(self) -> float | None:
        """The share read so far, if the size is known."""
        return self._done / self.size if self.size else None

    @property
    def _done(self) -> int:
        if isinstance(self.stream, HTTPResponse):
            return (self.size or 0) - (self.stream.length or 0)
        done: int = self.stream.tell()
        return done

    def check_complete(self) -> None:
        """Detect a lost connection, which ``http.client`` does not.

        Raises:
            EOFError: if less arrived than was announced.
        """
        if isinstance(self.stream, HTTPResponse) and self.stream.length:
            raise EOFError(f"ended after {self._done:,} of {self.size:,} bytes")


def check_input(name: str) -> None:
    """Check that an input can be read, before any work is done.

    Raises:
        InvalidInput: if there is no such file, or it is a folder.
    """
    if name == STANDARD_INPUT or _is_url(name):
        return
    path = Path(name)
    if path.is_dir():
        raise InvalidInput(f"{name} is a folder; give the files in it, such as {path / '*.pgn'}")
    if not path.exists():
        raise InvalidInput(f"no such file: {name} (give PGN files, - or an https:// address)")


@contextmanager
def open_input(name: str) -> Iterator[Source]:
    """Open an input: a file, ``-`` for standard input, or a URL.

    Raises:
        Unreadable: if it cannot be opened.
    """
    if name == STANDARD_INPUT:
        yield Source(name, io.BufferedReader(cast(Any, sys.stdin.buffer), CHUNK_BYTES), None)
        return
    try:
        source = _open_url(name) if _is_url(name) else _open_file(name)
    except _READ_ERRORS as problem:
        raise Unreadable(f"cannot open {name}: {error_reason(problem)}") from None
    with source.stream:
        yield source


def read_chunks(source: Source) -> Iterator[bytes]:
    """Yield an input's content: decompressed, in UTF-8 without byte-order marks, with ``\\n``.

    Raises:
        Unreadable: after the last readable chunk, if the input is cut off or damaged.
    """
    try:
        yield from _normalize(_fill_chunks(_decompress(source.stream)))
        source.check_complete()
    except _READ_ERRORS as problem:
        raise Unreadable(f"cannot read {source.name} to its end: {error_reason(problem)}") from None


def _is_url(name: str) -> bool:
    return name.startswith(("https://", "http://"))


def _open_url(url: str) -> Source:
    request = Request(url, headers={"User-Agent": "cant-do-that-anymore"})
    response = urlopen(request, timeout=_TIMEOUT_SECONDS)
    return Source(url, response, response.length)


def _open_file(name: str) -> Source:
    file = Path(name).open("rb")  # noqa: SIM115 - the caller closes it
    status = os.fstat(file.fileno())
    return Source(name, file, status.st_size if stat.S_ISREG(status.st_mode) else None)


def _decompress(stored: Any) -> Any:
    """Choose the decompressor by the first bytes: standard input and URLs may have no suffix."""
    start = stored.peek(4)
    for signature, opener in _OPENERS.items():
        if start.startswith(signature):
            return opener(stored)
    return stored


def _fill_chunks(stream: Any) -> Iterator[bytes]:
    """Yield chunks of full size, and the rest that is readable before the end or an error."""
    chunk = b""
    try:
        while data := stream.read1(CHUNK_BYTES - len(chunk)):
            chunk += data
            if len(chunk) == CHUNK_BYTES:
                yield chunk
                chunk = b""
    except _READ_ERRORS:
        yield chunk
        raise
    yield chunk


def _normalize(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Convert newlines, convert UTF-16 to UTF-8 and drop byte-order marks.

    Other encodings stay as they are: they only affect names.
    """
    first = next(chunks)
    is_utf_16 = first.startswith(_UTF_16)
    given, wanted = ("utf-16", "utf-8") if is_utf_16 else ("latin-1", "latin-1")
    characters = codecs.getincrementaldecoder(given)("replace")
    decoder = io.IncrementalNewlineDecoder(characters, translate=True)
    for chunk in chain([first], chunks):
        yield decoder.decode(chunk).encode(wanted).replace(codecs.BOM_UTF8, b"")
    yield decoder.decode(b"", final=True).encode(wanted)
