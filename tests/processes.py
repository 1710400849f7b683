"""Run ``cdta`` and ``oaieval`` in this process or in others.

Most tests call a command in this process, which saves the seconds that a new one needs for imports.
Tests about signals use ``start_cdta``, and those about kills fork this process (``crashes.py``).
"""

import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cant_do_that_anymore.__main__ import main as cdta_main
from cant_do_that_anymore.__main__ import oaieval as oaieval_main
from cant_do_that_anymore.metrics.measures import LENGTHS, MEASURES

CompletedCommand = subprocess.CompletedProcess[str]

PROGRAM = "import sys; sys.argv[0] = 'cdta'; from cant_do_that_anymore.__main__ import main; main()"


def cdta(
    *arguments: object, code: int | None = None, stdin: bytes = b"", **environment: str
) -> CompletedCommand:
    """Run ``cdta`` in this process and check its exit code, if one is given."""
    return _run(cdta_main, ["cdta", *map(str, arguments)], code, stdin, environment)


def oaieval(*arguments: object, code: int | None = None, **environment: str) -> CompletedCommand:
    """The same for ``oaieval``."""
    return _run(oaieval_main, ["oaieval", *map(str, arguments)], code, b"", environment)


def start_cdta(*arguments: object) -> "subprocess.Popen[str]":
    """Start ``cdta`` in a new process."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _run(
    main: Callable[[], None],
    argv: list[str],
    expected: int | None,
    stdin: bytes,
    environment: dict[str, str],
) -> CompletedCommand:
    """Call ``main`` with the arguments, environment, streams and logging of a new process."""
    out, err = _stream(), _stream("backslashreplace")
    with (
        patch.dict(os.environ, {"COLUMNS": "80"} | environment),
        patch.object(sys, "argv", argv),
        # Otherwise click names the command after pytest.
        patch.object(sys.modules["__main__"], "__package__", None),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        patch.object(tempfile, "tempdir", None),  # TMPDIR is read again
        redirect_stdout(out),
        redirect_stderr(err),
        _separate_logging(),
    ):
        code = _exit_code_of(main)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    result = CompletedCommand(argv, code, *texts)
    assert expected in (None, code), f"{argv} ended with {code}: {result.stderr or result.stdout}"
    return result


def _stream(errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _exit_code_of(main: Callable[[], None]) -> int:
    """Call ``main`` and return the exit code that the interpreter would."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _separate_logging() -> Iterator[None]:
    """Start without handlers, as a new process does, and restore everything afterwards."""
    root = logging.getLogger()
    named = [log for log in root.manager.loggerDict.values() if isinstance(log, logging.Logger)]
    levels = {log: log.level for log in (root, *named)}
    handlers, root.handlers = root.handlers, []
    try:
        yield
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers = handlers
        for log, level in levels.items():
            log.setLevel(level)


def samples_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def results_in(folder: Path) -> dict[str, Any]:
    """The results of a run, without what depends on the time."""
    facts = json.loads((folder / "run.json").read_text())
    names = (*MEASURES, *LENGTHS, "n", "groups", "failed", "usage", "outcomes", "notes")
    return {name: facts[name] for name in names}
