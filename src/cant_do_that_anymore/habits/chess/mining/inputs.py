"""Read files and standard input, compressed or not."""

import bz2
import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from ....errors import InvalidInput, error_reason

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STANDARD_INPUT = "-"
CHUNK_BYTES = 2**17

# The first bytes of compressed data. Of Zstandard: a data frame, or a skippable frame before it.
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\x28\xb5\x2f\xfd": zstd.open,
    b"\x50\x2a\x4d\x18": zstd.open,
}
_READ_ERRORS = (OSError, EOFError, zlib.error, zstd.ZstdError)


class Unreadable(Exception):
    """An input cannot be opened, or not be read to its end."""


def check_input(name: str) -> None:
    """Check that an input can be read, before any work is done.

    Raises:
        InvalidInput: if there is no such file, or it is a folder.
    """
    is_file = Path(name).exists() and not Path(name).is_dir()
    if not is_file and name != STANDARD_INPUT:
        raise InvalidInput(f"no such file: {name} (give PGN files, or - for standard input)")


def read_chunks(name: str) -> Iterator[bytes]:
    """Yield the decompressed content of an input, with ``\\n`` at the end of each line.

    Raises:
        Unreadable: after the last readable chunk, if the input is cut off or damaged.
    """
    try:
        with _open(name) as stream:
            for chunk in iter(partial(_decompress(stream).read1, CHUNK_BYTES), b""):
                yield chunk.replace(b"\r", b"").replace(codecs.BOM_UTF8, b"")
    except _READ_ERRORS as problem:
        raise Unreadable(f"cannot read {name} to its end: {error_reason(problem)}") from None


def _open(name: str) -> Any:
    if name == STANDARD_INPUT:
        return io.BufferedReader(cast(Any, sys.stdin.buffer))
    return Path(name).open("rb")


def _decompress(stored: Any) -> Any:
    """Choose the decompressor by the first bytes: standard input has no suffix."""
    start = stored.peek(4)
    for signature, opener in _OPENERS.items():
        if start.startswith(signature):
            return opener(stored)
    return stored
