"""OpenAI-style batch API: files and batches, also as Together has them.

A file of requests is uploaded, a batch is made of it, and within 24 hours two files hold what came
of it: one the answers, one the faults, in any order. Servers differ in small things: Together calls
the purpose of a file by another name, wraps what it has made, and shouts its statuses.
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

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""What a batch may hold at OpenAI."""
LONGEST_RESULTS = 2**31
TIME_OUT = aiohttp.ClientTimeout(total=1800, sock_connect=30, sock_read=300)
MOST_PAGES = 50
ENDED = {"completed", "failed", "expired", "cancelled", "canceled"}
TOO_MANY_TOKENS = "token_limit_exceeded"
"""How OpenAI says that fewer questions at once may be taken."""
_MISSING = {404, 405, 410, 501}
_UPLOADS = {"together": ("/files/upload", {"purpose": "batch-api", "file_name": "questions.jsonl"})}
_UPLOAD = "/files", {"purpose": "batch"}


class NoBatches(UserError):
    """The server has nothing of the kind."""


@dataclass(frozen=True)
class State:
    """How far a batch is.

    Attributes:
        status: in the provider's words.
        done: how many requests are answered, ``failed`` and ``total`` likewise; 0 if not told.
        files: where the results are, as far as there are any.
        fault: why it failed, if it did.
    """

    status: str
    done: int
    failed: int
    total: int
    files: tuple[str, ...]
    fault: str

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in ENDED


class BatchApi:
    """The files and batches of a server.

    Every method raises `TransientError` for a fault that may be gone on the next try and
    `UserError` for one that no further try will mend.
    """

    def __init__(self, model: ServerModel) -> None:
        self._model = model

    def line(self, key: str, request: dict[str, Any]) -> bytes:
        """A request as a file has it."""
        told = {"custom_id": key, "method": "POST", "url": f"/v1{self._model.path}"}
        return json.dumps(told | {"body": request}).encode() + b"\n"

    async def upload(self, lines: Iterable[bytes]) -> str:
        """Upload requests; gives the file's id."""
        path, fields = _UPLOADS.get(self._model.provider, _UPLOAD)
        form = aiohttp.FormData(fields)
        form.add_field("file", b"".join(lines), filename="questions.jsonl")
        return _text(await self._reply("POST", path, data=form), "id")

    async def create(self, file: str) -> str:
        """Make a batch of a file; gives its id."""
        wanted = {
            "input_file_id": file,
            "endpoint": f"/v1{self._model.path}",
            "completion_window": "24h",
        }
        return _text(_unwrapped(await self._reply("POST", "/batches", json=wanted)), "id")

    async def find(self, file: str) -> str | None:
        """The id of the batch that was made of a file, if one was."""
        after = ""
        for _ in range(MOST_PAGES):
            page = await self._reply("GET", f"/batches?limit=100{after}")
            batches = page.get("data") if isinstance(page, dict) else page
            known = [each for each in _list(batches) if isinstance(each, dict)]
            for batch in known:
                if batch.get("input_file_id") == file:
                    return _text(batch, "id")
            if not known or not isinstance(page, dict) or not page.get("has_more"):
                break
            after = f"&after={_text(known[-1], 'id')}"
        return None

    async def state(self, batch: str) -> State | None:
        """How far a batch is; None if there is no such batch."""
        response = await self._send("GET", f"/batches/{quote(batch, safe='')}")
        if response.status in (404, 410):
            return None
        told = _unwrapped(self._read(response))
        counts = told.get("request_counts")
        done, failed, total = (_number(counts, name) for name in ("completed", "failed", "total"))
        files = (told.get(name) for name in ("output_file_id", "error_file_id"))
        return State(
            status=_text(told, "status").lower(),
            done=done,
            failed=failed,
            total=total,
            files=tuple(file for file in files if file and isinstance(file, str)),
            fault=self._told(_fault_in(told)),
        )

    async def results(self, file: str) -> list[dict[str, Any]] | None:
        """What is in a file of results; None if there is no such file."""
        response = await self._send("GET", f"/files/{quote(file, safe='')}/content")
        if response.status in (404, 410):
            return None
        if not response.is_success:
            raise self._fault(response)
        return list(_results_in(response.body))

    def answer_in(self, result: dict[str, Any], form: RequestVariant) -> Answer:
        """The answer in a result, read as if it had come at once.

        Raises:
            RequestRejected: besides the others, as the model does.
        """
        response, error = result.get("response"), result.get("error")
        if error or not isinstance(response, dict):
            raise TransientError(self._told(error or "no response"))
        status, body = response.get("status_code", 200), response.get("body")
        text = body if isinstance(body, str) else json.dumps(body)
        status = status if isinstance(status, int) else 200
        return self._model.answer_in(Response(status, None, text.encode()), form)

    def _told(self, words: Any) -> str:
        """A server's words for people."""
        return self._model.without_key(error_message(json.dumps(words).encode()))

    async def _reply(self, method: str, path: str, **body: Any) -> Any:
        return self._read(await self._send(method, path, **body))

    async def _send(self, method: str, path: str, **body: Any) -> Response:
        return await self._model.send(
            method, path, time_out=TIME_OUT, longest=LONGEST_RESULTS, **body
        )

    def _read(self, response: Response) -> Any:
        if not response.is_success:
            raise self._fault(response)
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError):
            raise TransientError("a reply that is no JSON", maybe_billed=True) from None

    def _fault(self, response: Response) -> Exception:
        if response.status in _MISSING:
            words = self._model.without_key(error_message(response.body))
            return NoBatches(
                f"{self._model.endpoint} has no batches of OpenAI's form (HTTP {response.status}: "
                f"{words}); leave out --batch"
            )
        fault = self._model.fault(response)
        return UserError(str(fault)) if isinstance(fault, RequestRejected) else fault


def _unwrapped(told: Any) -> dict[str, Any]:
    inner = told.get("job", told) if isinstance(told, dict) else None
    if not isinstance(inner, dict):
        raise TransientError("a reply that is no batch", maybe_billed=True)
    return inner


def _text(told: Any, name: str) -> str:
    value = told.get(name) if isinstance(told, dict) else None
    if not value or not isinstance(value, str):
        raise TransientError(f"a reply without {name}", maybe_billed=True)
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) else 0


def _fault_in(told: dict[str, Any]) -> str:
    """Why a batch failed, with the code where there is one."""
    errors = told.get("errors") or told.get("error") or ""
    inner = errors.get("data") or errors if isinstance(errors, dict) else errors
    first = inner[0] if isinstance(inner, list) and inner else inner
    if isinstance(first, dict):
        first = ": ".join(str(first[name]) for name in ("code", "message") if first.get(name))
    return str(first)


def _results_in(content: bytes) -> Iterator[dict[str, Any]]:
    """The results that can be read; what cannot is missing."""
    for line in content.splitlines():
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(result, dict) and isinstance(result.get("custom_id"), str):
            yield result
