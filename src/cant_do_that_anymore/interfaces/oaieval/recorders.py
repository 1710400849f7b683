"""Where a record goes: to a file, or nowhere."""

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from ...errors import Interrupted, InvalidInput
from ...formatting import Number
from .record import Event, RecordSpec

log = logging.getLogger(__name__)

AS_IN_JSON = "backslashreplace"
"""What is half of a character is written as JSON writes it."""


class Recorder(Protocol):
    """Takes the events of a run and its report."""

    def write(self, events: Iterable[Event]) -> None:
        """Take the events."""

    def finish(self, report: dict[str, Number]) -> None:
        """Take the report.

        Raises:
            UserError: if the record is not where it should be.
        """


class FileRecorder:
    """Writes a record to a file, whose first line is there before anything is asked."""

    def __init__(self, path: Path, spec: RecordSpec, *, kept: bool = True) -> None:
        self.path = path
        self._spec = spec
        self._kept = kept
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_line({"spec": asdict(spec)}), "utf-8", errors=AS_IN_JSON)
        except OSError as problem:
            raise InvalidInput(
                f"cannot write the record to {str(path)!r} ({problem.strerror}); "
                "give --record_path another file"
            ) from None

    def write(self, events: Iterable[Event]) -> None:
        """Append the events."""
        number = self._append(map(_line, events))
        log.info("Logged %d rows of events to %s", number, self.path)

    def finish(self, report: dict[str, Number]) -> None:
        """Append the report."""
        self._append([_line({"final_report": report, "run_id": self._spec.run_id})])
        log.info("Final report: %s. Logged to %s", report, self.path)

    def _append(self, lines: Iterable[str]) -> int:
        try:
            with self.path.open("a", encoding="utf-8", errors=AS_IN_JSON) as file:
                return sum(1 for line in lines if file.write(line))
        except OSError as problem:
            raise Interrupted(
                f"cannot write the record to {str(self.path)!r} ({problem.strerror})",
                go_on="run the same command again with another --record_path",
                kept=self._kept,
            ) from None


class DryRecorder:
    """Records nothing and says so."""

    def __init__(self, *, talkative: bool) -> None:
        self._talkative = talkative

    def write(self, events: Iterable[Event]) -> None:
        """Show the events."""
        if self._talkative:
            for each in events:
                log.info("Not recording event: %s", each)

    def finish(self, report: dict[str, Number]) -> None:
        """Show the report."""
        log.info("Final report: %s. Not writing anywhere.", report)


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
