"""OpenAI-style batch API: files and batches, also in Together's dialect.

The client uploads a file of requests and creates a batch from it. Within 24 hours two files hold
the results in any order: one the answers, one the errors. Servers differ in details: Together has
another name for the file's purpose, wraps the batch it created, and writes statuses in capitals.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp

from ...errors import UserError
from ...providers.base import (
    Answer,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from ...providers.openai_api import ServerModel
from ...providers.responses import Response, error_message

# OpenAI's limits for one batch.
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
MAX_RESULT_BYTES = 2**31
BATCH_TIMEOUT = aiohttp.ClientTimeout(total=1800, sock_connect=30, sock_read=300)
MAX_PAGES = 50
FINAL_STATUSES = {"completed", "failed", "expired", "cancelled", "canceled"}
# OpenAI's error code for too many enqueued tokens: a smaller batch may be accepted.
TOO_MANY_TOKENS = "token_limit_exceeded"
_MISSING = {404, 405, 410, 501}
_UPLOADS = {"together": ("/files/upload", {"purpose": "batch-api", "file_name": "questions.jsonl"})}
_UPLOAD = "/files", {"purpose": "batch"}

T = TypeVar("T")


class NoBatches(UserError):
    """The server has no batch API."""


@dataclass(frozen=True)
class State:
    """The progress of a batch.

    Attributes:
        status: the provider's word, in lower case.
        has_ended: whether no more results will come.
        counts: how many requests are ``completed`` and ``failed``, and the ``total``, if known.
        files: the ids of the result files, as far as there are any.
        fault: why the batch failed, if it did.
    """

    status: str
    has_ended: bool
    counts: Mapping[str, int]
    files: tuple[str, ...]
    fault: str


class BatchApi:
    """The files and batches of a server.

    Every method raises `TransientError` for an error that a retry may fix, and `UserError` for any
    other.
    """

    def __init__(self, model: ServerModel) -> None:
        self._model = model

    def line(
        self, key: str, question: Question, settings: Settings, variant: RequestVariant
    ) -> bytes:
        """Return a request as a line of a batch file."""
        envelope = {"custom_id": key, "method": "POST", "url": f"/v1{self._model.path}"}
        body = self._model.request(question, settings, variant)
        return json.dumps(envelope | {"body": body}).encode() + b"\n"

    async def upload(self, lines: Iterable[bytes]) -> str:
        """Upload requests and return the file's id."""
        path, fields = _UPLOADS.get(self._model.info.provider, _UPLOAD)
        data = aiohttp.FormData(fields)
        data.add_field("file", b"".join(lines), filename="questions.jsonl")
        return _text(_parse(await self._send("POST", path, data=data)), "id")

    async def create(self, file: str) -> str:
        """Create a batch from a file and return its id."""
        body = {
            "input_file_id": file,
            "endpoint": f"/v1{self._model.path}",
            "completion_window": "24h",
        }
        return _text(_unwrap(await self._send("POST", "/batches", json=body)), "id")

    async def find(self, file: str) -> str | None:
        """Return the id of the batch that was created from a file, if there is one."""
        after = ""
        for _ in range(MAX_PAGES):
            page = _parse(await self._send("GET", f"/batches?limit=100{after}"))
            batches = page if isinstance(page, list) else _field(page, "data", list) or []
            for batch in batches:
                if _field(batch, "input_file_id", str) == file:
                    return _text(batch, "id")
            if not batches or isinstance(page, list) or not page.get("has_more"):
                break
            after = f"&after={_text(batches[-1], 'id')}"
        return None

    async def state(self, batch: str) -> State | None:
        """Return the progress of a batch; None if it does not exist."""
        body = await self._send("GET", f"/batches/{quote(batch, safe='')}", may_lack=True)
        if body is None:
            return None
        job = _unwrap(body)
        status, counts = _text(job, "status").lower(), _field(job, "request_counts", dict) or {}
        files = (_field(job, name, str) for name in ("output_file_id", "error_file_id"))
        return State(
            status,
            status in FINAL_STATUSES,
            {name: n for name, n in counts.items() if isinstance(n, int)},
            tuple(filter(None, files)),
            self._error_text(_error_in(job)),
        )

    async def results(self, file: str) -> list[dict[str, Any]] | None:
        """Return the results in a file that can be parsed; None if it does not exist."""
        body = await self._send("GET", f"/files/{quote(file, safe='')}/content", may_lack=True)
        if body is None:
            return None
        results = []
        for line in body.splitlines():
            with suppress(TransientError):
                results.append(_parse(line))
        return [result for result in results if _field(result, "custom_id", str)]

    def answer_in(self, result: dict[str, Any], variant: RequestVariant) -> Answer:
        """Parse the answer in a result like a response to a single request.

        Raises:
            RequestRejected: besides the others, as the model does.
        """
        response, error = _field(result, "response", dict), result.get("error")
        if error or response is None:
            raise TransientError(self._error_text(error or "no response"))
        status, body = _field(response, "status_code", int) or 200, response.get("body")
        text = body if isinstance(body, str) else json.dumps(body)
        return self._model.answer_in(Response(status, None, text.encode()), variant)

    def _error_text(self, error: Any) -> str:
        """Return a server's error message without the key."""
        return self._model.redacted_excerpt(error_message(json.dumps(error).encode()))

    async def _send(self, method: str, path: str, *, may_lack: bool = False, **body: Any) -> Any:
        """Return the body of the response; None if the server may, and does, lack the object."""
        response = await self._model.send(
            method, path, timeout=BATCH_TIMEOUT, longest=MAX_RESULT_BYTES, **body
        )
        if response.is_success:
            return response.body
        if may_lack and response.status in (404, 410):
            return None
        if response.status in _MISSING:
            words = self._model.redacted_excerpt(error_message(response.body))
            raise NoBatches(
                f"{self._model.info.endpoint} does not support OpenAI's batch API (HTTP "
                f"{response.status}: {words}); leave out --batch"
            )
        fault = self._model.fault(response)
        raise UserError(str(fault)) if isinstance(fault, RequestRejected) else fault


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise TransientError("a reply that is not JSON", maybe_billed=True) from None


def _unwrap(body: bytes) -> Any:
    """Parse a batch, which Together wraps."""
    reply = _parse(body)
    return _field(reply, "job", dict) or reply


def _field(reply: Any, name: str, kind: type[T]) -> T | None:
    """Return the value of a key; None if there is none of that type."""
    value = reply.get(name) if isinstance(reply, dict) else None
    return value if isinstance(value, kind) else None


def _text(reply: Any, name: str) -> str:
    if value := _field(reply, name, str):
        return value
    raise TransientError(f"a reply without {name}", maybe_billed=True)


def _error_in(job: dict[str, Any]) -> str:
    """Return why a batch failed, with the error code if there is one."""
    errors = (isinstance(job, dict) and (job.get("errors") or job.get("error"))) or ""
    details = errors.get("data") or errors if isinstance(errors, dict) else errors
    error = details[0] if isinstance(details, list) and details else details
    if isinstance(error, dict):
        error = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
    return str(error)
