"""Any OpenAI-compatible server, lean: one HTTP client, JSON in and out, chat and completions."""

import json
import time
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp

from ..errors import BadInput, Problem
from .concessions import (
    NO_SYSTEM,
    NO_TEMPERATURE,
    RENAMED_LIMIT,
    USER_FIRST,
    concession_to,
    notes_on,
)
from .layout import STOP_SEQUENCES, as_text, user_first, without_system
from .model import CHAT_TOKENS, Answer, Passing, Question, Settings, StopReason, Usage

BASE_MODEL_TOKENS = 4
TEXT_PREFIX = "completions/"
"""Before the name of a base model: it is asked over the completions API, with one text."""
TIME_OUT = aiohttp.ClientTimeout(total=600, sock_connect=30)
OVERLOADED = {429, 503, 529}
LONGEST_RETRY_AFTER = 600.0
LONGEST_REPLY = 2**25
"""In bytes; whatever is longer is no reply to a question about a move."""

Api = Literal["chat", "completions"]


class ServerModel:
    """A model behind an OpenAI-compatible address.

    Servers differ in what they take. When one refuses the form of a request, the concession that
    helps is made once and for all, and every answer from then on carries a note that says so.
    """

    connections = 32

    def __init__(
        self, name: str, address: str, *, key: str = "", key_variable: str, api: Api = "chat"
    ) -> None:
        self.name = name if api == "chat" else f"{TEXT_PREFIX}{name}"
        self._served_as = self._version = name
        self.endpoint = _checked_address(address)
        self.max_tokens = CHAT_TOKENS if api == "chat" else BASE_MODEL_TOKENS
        self.api: Api = api
        self._key = _checked_key(key, key_variable)
        self._key_variable = key_variable
        self._concessions: list[str] = []
        self._has_answered = False
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Ask the server once, or again at once if it wants the request in another form."""
        while True:
            conceded = tuple(self._concessions)
            status, retry_after, body = await self._post(self._request(question, settings))
            if status == 200:
                return self._answer_in(body, conceded)
            if status == 400 and b"content_filter" in body:
                return Answer("", stop_reason="refused", version=self._version)
            message = self._error_message(body) or f"HTTP {status}"
            if not self._concede(status, message, conceded):
                out_of_money = status == 402 or b"insufficient_quota" in body
                return self._refused(status, retry_after, message, final=out_of_money)

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()

    async def models_served(self) -> list[str]:
        """The names of the models that the server says it has."""
        try:
            async with self._client().get(f"{self.endpoint}/models") as response:
                listing = await response.json(content_type=None)
            return [model["id"] for model in listing["data"]]
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            raise self._unreachable(fault) from None
        except (ValueError, KeyError, TypeError):
            raise Problem(
                f"the server at {self.endpoint} does not list its models; name one with --model"
            ) from None

    def _request(self, question: Question, settings: Settings) -> dict[str, Any]:
        messages = question.messages
        if NO_SYSTEM in self._concessions:
            messages = without_system(messages)
        elif USER_FIRST in self._concessions:
            messages = user_first(messages)
        request: dict[str, Any] = {"model": self._served_as}
        if self.api == "completions":
            request |= {"prompt": as_text(messages), "stop": list(STOP_SEQUENCES)}
        else:
            request["messages"] = [{"role": m.role, "content": m.content} for m in messages]
        if settings.temperature is not None and NO_TEMPERATURE not in self._concessions:
            request["temperature"] = settings.temperature
        renamed = RENAMED_LIMIT in self._concessions
        request[RENAMED_LIMIT if renamed else "max_tokens"] = settings.max_tokens
        return request

    async def _post(self, request: dict[str, Any]) -> tuple[int, float | None, bytes]:
        path = "/chat/completions" if self.api == "chat" else "/completions"
        try:
            async with self._client().post(self.endpoint + path, json=request) as response:
                body = b""
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > LONGEST_REPLY:
                        raise Passing(f"a reply of more than {LONGEST_REPLY} bytes")
                return response.status, _seconds(response.headers.get("Retry-After")), body
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            if not self._has_answered and isinstance(fault, aiohttp.ClientConnectorError):
                raise self._unreachable(fault) from None
            raise Passing(f"{type(fault).__name__}: {self._without_key(str(fault))}") from None

    def _answer_in(self, body: bytes, conceded: tuple[str, ...]) -> Answer:
        try:
            reply = json.loads(body)
            choice = reply["choices"][0]
            usage = reply.get("usage") or {}
            if self.api == "chat":
                refusal = choice["message"].get("refusal")
                text = _joined(choice["message"].get("content")) or refusal or ""
            else:
                refusal, text = None, choice["text"]
            if not isinstance(text, str):
                raise TypeError("the reply is no text")
            answer = Answer(
                text=text,
                stop_reason="refused" if refusal else _stop_reason(choice.get("finish_reason")),
                usage=Usage(
                    int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
                ),
                version=str(reply.get("model") or self._served_as),
                notes=notes_on(conceded),
            )
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            message = self._error_message(body) or "an empty body"
            raise Passing(f"a reply that is no completion: {message}") from None
        self._has_answered = True
        self._version = answer.version
        return answer

    def _concede(self, status: int, message: str, conceded: tuple[str, ...]) -> bool:
        """Whether the request will look different next time."""
        if tuple(self._concessions) != conceded:
            return True
        concession = concession_to(message, conceded) if status in (400, 422, 500) else None
        if concession:
            self._concessions.append(concession)
        return bool(concession)

    def _refused(
        self, status: int, retry_after: float | None, message: str, *, final: bool
    ) -> Answer:
        """Raise what a status other than 200 means, or give it as the answer to this question."""
        if final:
            raise Problem(f"{self.endpoint} wants money (HTTP {status}: {message})")
        if status in OVERLOADED:
            raise Passing(f"HTTP {status}: {message}", retry_after=retry_after, overloaded=True)
        if status >= 500 or status == 408:
            raise Passing(f"HTTP {status}: {message}", retry_after=retry_after)
        if status in (401, 403):
            raise Problem(
                f"{self.endpoint} refuses the key (HTTP {status}: {message}); "
                f"set {self._key_variable} to a valid one"
            )
        if not self._has_answered or status == 404:
            raise Problem(f"{self.endpoint} refuses {self.name!r} (HTTP {status}: {message})")
        return Answer("", stop_reason="error", error=f"HTTP {status}: {message}")

    def _client(self) -> aiohttp.ClientSession:
        if not self._session:
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers=headers, timeout=TIME_OUT
            )
        return self._session

    def _unreachable(self, fault: BaseException) -> Problem:
        reason = getattr(fault, "strerror", None) or str(fault) or type(fault).__name__
        return Problem(
            f"no server answers at {self.endpoint} ({reason}); nothing was lost: start it, or "
            "correct the address, and run the same command again"
        )

    def _error_message(self, body: bytes) -> str:
        """The server's own words, in one line, without the key if it repeats that."""
        try:
            error = json.loads(body)
            for key in ("error", "message", "detail"):
                if isinstance(error, dict) and key in error:
                    error = error[key]
            text = error if isinstance(error, str) else json.dumps(error)
        except (ValueError, RecursionError):
            text = body.decode("utf-8", "replace")
        return " ".join(self._without_key(text).split())[:300]

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _checked_address(address: str) -> str:
    """The address without a slash at its end; it is written into runs, so it may hold no secret."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(f"not the address of a server: {address!r}; try http://localhost:8000/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadInput(
            f"the address of {parts.hostname} may hold no user name, password or query; "
            "a key goes into an environment variable"
        )
    return address.rstrip("/")


def _checked_key(key: str, variable: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise BadInput(f"{variable} holds characters that cannot be part of a key")
    return key


def _joined(content: Any) -> Any:
    """The text of a reply; some servers give it in parts."""
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _stop_reason(finish_reason: object) -> StopReason:
    if finish_reason == "length":
        return "length"
    return "refused" if finish_reason == "content_filter" else "stop"


def _seconds(retry_after: str | None) -> float | None:
    """How long to wait by a Retry-After header: a number of seconds or a date."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
