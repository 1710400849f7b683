"""Where a record goes: to a file, to an address, or nowhere."""

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.request import Request, urlopen

from ...errors import BadInput, Interrupted, Unfinished
from ...evaluation.vocabulary import Number
from .record import Event, RecordSpec, event

log = logging.getLogger(__name__)

POST_SECONDS = 30.0
AS_IN_JSON = "backslashreplace"
"""What is half of a character is written as JSON writes it."""


class Recorder(Protocol):
    """Takes the events of a run and its report."""

    def write(self, events: Iterable[Event]) -> None:
        """Take the events."""

    def finish(self, report: dict[str, Number]) -> None:
        """Take the report.

        Raises:
            Problem: if the record is not where it should be.
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
            raise BadInput(
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


class HttpRecorder:
    """Posts events to an address, in batches; those that it does not take go to a file.

    When more than the given share has failed, nothing more is posted.
    """

    def __init__(
        self, url: str, fallback: FileRecorder, spec: RecordSpec, batch_size: int, fail_percent: int
    ) -> None:
        self._url = url
        self._fallback = fallback
        self._spec = spec
        self._batch_size = batch_size
        self._most_failed = fail_percent / 100
        self._events = 0
        self._failed = 0

    def write(self, events: Iterable[Event]) -> None:
        """Post the events."""
        happened = list(events)
        self._events = len(happened)
        for start in range(0, self._events, self._batch_size):
            batch = happened[start : start + self._batch_size]
            if self._given_up or not self._post(batch):
                self._failed += len(batch)
                self._fallback.write(batch)

    def finish(self, report: dict[str, Number]) -> None:
        """Post the report as an event.

        Raises:
            Unfinished: if too many events could not be posted.
        """
        last = event(self._spec, self._events, None, "final_report", report)
        if self._given_up or not self._post([last]):
            self._fallback.finish(report)
        else:
            log.info("Final report: %s. Posted to %s", report, self._url)
        if self._given_up:
            raise Unfinished(
                f"{self._failed} of {self._events} events could not be posted to {self._url}; "
                f"they are in {str(self._fallback.path)!r}"
            )

    @property
    def _given_up(self) -> bool:
        return self._failed > self._most_failed * self._events

    def _post(self, events: list[Event]) -> bool:
        body = json.dumps(events).encode()
        request = Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=POST_SECONDS) as response:
                response.read()
        except (OSError, HTTPException) as fault:
            log.warning("Failed to send events: %s", fault)
            return False
        return True


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
