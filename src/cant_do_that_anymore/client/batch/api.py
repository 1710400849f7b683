"""OpenAI-style batch API: files and batches, also in Together's dialect.

The client uploads a file of requests and creates a batch from it. Within 24 hours two files hold
the results in any order: one the answers, one the errors. Servers differ in details: Together has
another name for the file's purpose, wraps the batch it created, and writes statuses in capitals.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

from ...errors import UserError
from ...providers.base import Answer, RequestRejected, RequestVariant, TransientError
from ...providers.openai_api import ServerModel
from ...providers.responses import Response, error_message

# OpenAI's limits for one batch.
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
MAX_RESULT_BYTES = 2**31
TIME_OUT = aiohttp.ClientTimeout(total=1800, sock_connect=30, sock_read=300)
MAX_PAGES = 50
FINAL_STATUSES = {"completed", "failed", "expired", "cancelled", "canceled"}
# OpenAI's error code for too many enqueued tokens: a smaller batch may be accepted.
TOO_MANY_TOKENS = "token_limit_exceeded"
_MISSING = {404, 405, 410, 501}
_UPLOADS = {"together": ("/files/upload", {"purpose": "batch-api", "file_name": "questions.jsonl"})}
_UPLOAD = "/files", {"purpose": "batch"}


class NoBatches(UserError):
    """The server has no batch API."""


@dataclass(frozen=True)
class State:
    """The progress of a batch.

    Attributes:
        status: the provider's word, in lower case.
        done: how many requests are answered, ``failed`` and ``total`` likewise; 0 if unknown.
        files: the ids of the result files, as far as there are any.
        fault: why the batch failed, if it did.
    """

    status: str
    done: int
    failed: int
    total: int
    files: tuple[str, ...]
    fault: str

    @property
    def has_ended(self) -> bool:
        """Whether no more results will come."""
        return self.status in FINAL_STATUSES


class BatchApi:
    """The files and batches of a server.

    Every method raises `TransientError` for an error that a retry may fix, and `UserError` for any
    other.
    """

    def __init__(self, model: ServerModel) -> None:
        self._model = model

    def line(self, key: str, request: dict[str, Any]) -> bytes:
        """Return a request as a line of a batch file."""
        envelope = {"custom_id": key, "method": "POST", "url": f"/v1{self._model.path}"}
        return json.dumps(envelope | {"body": request}).encode() + b"\n"

    async def upload(self, lines: Iterable[bytes]) -> str:
        """Upload requests and return the file's id."""
        path, fields = _UPLOADS.get(self._model.info.provider, _UPLOAD)
        data = aiohttp.FormData(fields)
        data.add_field("file", b"".join(lines), filename="questions.jsonl")
        return _text(await self._fetch("POST", path, data=data), "id")

    async def create(self, file: str) -> str:
        """Create a batch from a file and return its id."""
        body = {
            "input_file_id": file,
            "endpoint": f"/v1{self._model.path}",
            "completion_window": "24h",
        }
        return _text(_unwrap(await self._fetch("POST", "/batches", json=body)), "id")

    async def find(self, file: str) -> str | None:
        """Return the id of the batch that was created from a file, if there is one."""
        after = ""
        for _ in range(MAX_PAGES):
            page = await self._fetch("GET", f"/batches?limit=100{after}")
            batches = page.get("data") if isinstance(page, dict) else page
            entries = [entry for entry in _list(batches) if isinstance(entry, dict)]
            for batch in entries:
                if batch.get("input_file_id") == file:
                    return _text(batch, "id")
            if not entries or not isinstance(page, dict) or not page.get("has_more"):
                break
            after = f"&after={_text(entries[-1], 'id')}"
        return None

    async def state(self, batch: str) -> State | None:
        """Return the progress of a batch; None if it does not exist."""
        response = await self._send("GET", f"/batches/{quote(batch, safe='')}")
        if response.status in (404, 410):
            return None
        job = _unwrap(self._read(response))
        counts = job.get("request_counts")
        done, failed, total = (_number(counts, name) for name in ("completed", "failed", "total"))
        files = (job.get(name) for name in ("output_file_id", "error_file_id"))
        return State(
            status=_text(job, "status").lower(),
            done=done,
            failed=failed,
            total=total,
            files=tuple(file for file in files if file and isinstance(file, str)),
            fault=self._error_text(_error_in(job)),
        )

    async def results(self, file: str) -> list[dict[str, Any]] | None:
        """Return the results in a file; None if it does not exist."""
        response = await self._send("GET", f"/files/{quote(file, safe='')}/content")
        if response.status in (404, 410):
            return None
        if not response.is_success:
            raise self._error_for(response)
        return list(_parse_results(response.body))

    def answer_in(self, result: dict[str, Any], variant: RequestVariant) -> Answer:
        """Parse the answer in a result like a response to a single request.

        Raises:
            RequestRejected: besides the others, as the model does.
        """
        response, error = result.get("response"), result.get("error")
        if error or not isinstance(response, dict):
            raise TransientError(self._error_text(error or "no response"))
        status, body = response.get("status_code", 200), response.get("body")
        text = body if isinstance(body, str) else json.dumps(body)
        status = status if isinstance(status, int) else 200
        return self._model.answer_in(Response(status, None, text.encode()), variant)

    def _error_text(self, error: Any) -> str:
        """Return a server's error message without the key."""
        return self._model.without_key(error_message(json.dumps(error).encode()))

    async def _fetch(self, method: str, path: str, **body: Any) -> Any:
        return self._read(await self._send(method, path, **body))

    async def _send(self, method: str, path: str, **body: Any) -> Response:
        return await self._model.send(
            method, path, time_out=TIME_OUT, longest=MAX_RESULT_BYTES, **body
        )

    def _read(self, response: Response) -> Any:
        if not response.is_success:
            raise self._error_for(response)
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError):
            raise TransientError("a reply that is no JSON", maybe_billed=True) from None

    def _error_for(self, response: Response) -> Exception:
        if response.status in _MISSING:
            words = self._model.without_key(error_message(response.body))
            return NoBatches(
                f"{self._model.info.endpoint} has no batches of OpenAI's form "
                f"(HTTP {response.status}: {words}); leave out --batch"
            )
        fault = self._model.fault(response)
        return UserError(str(fault)) if isinstance(fault, RequestRejected) else fault


def _unwrap(reply: Any) -> dict[str, Any]:
    job = reply.get("job", reply) if isinstance(reply, dict) else None
    if not isinstance(job, dict):
        raise TransientError("a reply that is no batch", maybe_billed=True)
    return job


def _text(reply: Any, name: str) -> str:
    value = reply.get(name) if isinstance(reply, dict) else None
    if not value or not isinstance(value, str):
        raise TransientError(f"a reply without {name}", maybe_billed=True)
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) else 0


def _error_in(job: dict[str, Any]) -> str:
    """Return why a batch failed, with the error code if there is one."""
    errors = job.get("errors") or job.get("error") or ""
    details = errors.get("data") or errors if isinstance(errors, dict) else errors
    error = details[0] if isinstance(details, list) and details else details
    if isinstance(error, dict):
        error = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
    return str(error)


def _parse_results(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the results that can be parsed; the others count as missing."""
    for line in content.splitlines():
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(result, dict) and isinstance(result.get("custom_id"), str):
            yield result
