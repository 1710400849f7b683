"""Run ``cdta`` and ``oaieval``: in this process, or as real processes.

Most tests ask what a command says and does. They call it here, which saves the seconds that a new
process needs to import everything. Where the process itself is the subject (signals, kills, two at
once), ``process_of`` starts a real one; where it takes many of them, ``forked`` makes them of one
that has imported everything.
"""

import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

from aiohttp import web

from cant_do_that_anymore.__main__ import main as cdta_main
from cant_do_that_anymore.__main__ import oaieval as oaieval_main
from loopback import Body, Loopback

Done = subprocess.CompletedProcess[str]

PROGRAM = "import sys; sys.argv[0] = 'cdta'; from cant_do_that_anymore.cli.main import main; main()"


def cdta(
    *arguments: object, code: int | None = None, stdin: bytes = b"", **environment: str
) -> Done:
    """Run ``cdta`` to its end in this process; it must end with the exit code, if one is given."""
    return _called("cdta", cdta_main, arguments, code, stdin, environment)


def oaieval(*arguments: object, code: int | None = None, **environment: str) -> Done:
    """The same for ``oaieval``."""
    return _called("oaieval", oaieval_main, arguments, code, b"", environment)


def process_of(
    *arguments: object, terminal: int | None = None, **environment: str
) -> "subprocess.Popen[str]":
    """Start ``cdta`` as a process of its own, at that end of a terminal if one is given."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env=os.environ | environment,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal or subprocess.PIPE,
        text=True,
    )


def forked(*arguments: object) -> BaseProcess:
    """A process for ``cdta``, to be started; what it says goes where the tests' own words go."""
    forking = get_context("forkserver")
    forking.set_forkserver_preload(["cant_do_that_anymore.cli.commands.run"])
    return forking.Process(target=_run, args=(["cdta", *map(str, arguments)], dict(os.environ)))


def killed(at: int, server: Loopback, *arguments: object) -> int | None:
    """Start ``cdta``, which the server kills at its request of that number: exit code."""
    process, started = forked(*arguments), threading.Event()

    async def kill(request: Body, number: int) -> web.StreamResponse | None:
        if number == at:
            started.wait()
            process.kill()
        return None

    server.fault = kill
    process.start()
    started.set()
    process.join(60)
    server.fault = None
    return process.exitcode


def _run(argv: list[str], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    sys.argv = argv
    cdta_main()


def _called(
    name: str,
    main: Callable[[], None],
    arguments: tuple[object, ...],
    expected: int | None,
    stdin: bytes,
    environment: dict[str, str],
) -> Done:
    argv = [name, *map(str, arguments)]
    out, err = _stream(), _stream("backslashreplace")
    with _like_a_new_process(argv, environment, stdin, out, err):
        code = _exit_code_of(main)
    done = Done(argv, code, _text_in(out), _text_in(err))
    assert expected in (None, code), f"{argv} ended with {code}: {done.stderr or done.stdout}"
    return done


@contextmanager
def _like_a_new_process(
    argv: list[str], environment: dict[str, str], stdin: bytes, out: TextIO, err: TextIO
) -> Iterator[None]:
    """What a new process has of its own: arguments, environment, streams, log and warnings."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {"COLUMNS": "80"} | environment))
        stack.enter_context(patch.object(sys, "argv", argv))
        # Else click calls the command by the name of pytest.
        stack.enter_context(patch.object(sys.modules["__main__"], "__package__", None))
        stack.enter_context(patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))))
        stack.enter_context(patch.object(tempfile, "tempdir", None))  # TMPDIR is read again
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(_log_of_its_own())
        stack.enter_context(_warnings_on_standard_error())
        yield


def _exit_code_of(main: Callable[[], None]) -> int:
    """Call ``main``: what the interpreter would make of the way in which it ends."""
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
def _log_of_its_own() -> Iterator[None]:
    """No handler yet, as at the start of a process, and afterwards everything as it was."""
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


@contextmanager
def _warnings_on_standard_error() -> Iterator[None]:
    """Those that Python shows by default; pytest would keep them to itself."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        print(text, end="", file=file or sys.stderr)

    hidden = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in hidden:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


def _stream(errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text_in(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def samples_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def results_in(folder: Path) -> dict[str, Any]:
    """The numbers of a run, without what depends on the moment."""
    facts = json.loads((folder / "run.json").read_text())
    return {key: facts[key] for key in ("metrics", "intervals", "outcomes", "notes")}
