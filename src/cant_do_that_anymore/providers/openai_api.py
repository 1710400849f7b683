"""Client for OpenAI-compatible servers: chat and text completions over one HTTP session."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp

from ..errors import UserError, nearest, shortlist
from .access import Access, Redactor, url_for
from .base import (
    REPLY_TOKENS,
    Adjustments,
    Answer,
    Api,
    Model,
    ModelInfo,
    Question,
    RequestRejected,
    Settings,
    TransientError,
    Usage,
)
from .http import keepalive_socket, proxy_for, unreachable
from .request_fields import (
    NO_TEMPERATURE,
    RENAMED_LIMIT,
    STOP_SEQUENCES,
    arranged,
    as_text,
)
from .responses import (
    Response,
    error_message,
    parse_completion,
    parse_retry_after,
)

MAX_RESPONSE_SECONDS = 1800  # some models reason for ten minutes and more
TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=30)
LONG_TIMEOUT = aiohttp.ClientTimeout(total=MAX_RESPONSE_SECONDS, sock_connect=30)
OVERLOAD_STATUSES = {429, 503, 529}
# A gateway timed out: the answer may have been generated and billed.
GATEWAY_TIMEOUT_STATUSES = {408, 499, 504, 524}
# These and all from 500 on say nothing about the request itself.
TRANSIENT_STATUSES = {409, 425, *GATEWAY_TIMEOUT_STATUSES}
# Only these say that the request is wrong; a failing server sends all kinds of messages.
REJECTED_STATUSES = {400, 422}
ACCESS_STATUSES = {401, 403}
# OpenAI's message, with HTTP 400, if the reasoning used up all tokens.
OUT_OF_TOKENS = b"Could not finish the message"
# Part of OpenAI's message for a model without chat completions.
RESPONSES_API = b"v1/responses"
# How an event stream starts; some servers first send a comment.
EVENT_STREAM = re.compile(rb"\s*(data|event|id|retry)?:")
# Messages of servers that reject requests without streaming.
_STREAMS_ONLY = re.compile(
    r"\bstream.*(only|must|enable|require|support|false|true)|only.*\bstream"
)
# Messages of servers that reject the token limit with another status than 400.
_TOO_LARGE = re.compile(r"request too large|fewer max_tokens")
MAX_RESPONSE_BYTES = 2**25
LIST_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=30)  # for ``/models``


class ServerModel(Model):
    """A model on an OpenAI-compatible server."""

    def __init__(self, info: ModelInfo, access: Access) -> None:
        self.info = info
        self._model_name = str(info.identity["name"])
        self._api: Api = "completions" if info.identity["api"] == "completions" else "chat"
        self._access = access
        self._redact = Redactor(*access.secrets, shown=self._model_name)
        self._has_answered = False
        self._suggestion = ""
        self._session: aiohttp.ClientSession | None = None
        self.path = "/chat/completions" if self._api == "chat" else "/completions"

    async def answer(
        self, question: Question, settings: Settings, adjustments: Adjustments = ()
    ) -> Answer:
        """Send one request to the server."""
        timeout = LONG_TIMEOUT if (settings.max_tokens or 0) > REPLY_TOKENS else TIMEOUT
        request = self.request(question, settings, adjustments)
        response = await self.send("POST", self.path, timeout=timeout, json=request)
        if response.status == 404:
            with suppress(UserError):
                served = await self.models_served()
                if served and self._model_name not in served:
                    self._suggestion = f"; {nearest(self._model_name, served)}"
        return self.answer_in(response, adjustments, settings.max_tokens or 0)

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()

    async def models_served(self) -> list[str]:
        """Return the names of the models that the server lists.

        Raises:
            UserError: if the server does not list its models, or not without a valid key.
        """
        received = ""
        try:
            response = await self.send("GET", "/models", timeout=LIST_TIMEOUT)
            if response.status in ACCESS_STATUSES:
                raise self.fault(response)
            received = "" if response.is_success else f" (HTTP {response.status})"
            listing = json.loads(self._redact(response.body.decode("utf-8", "replace")))
            return [card["id"] for card in listing["data"] if isinstance(card["id"], str)]
        except (ValueError, LookupError, TypeError, RecursionError, TransientError):
            raise UserError(
                f"the server at {self.info.endpoint} does not list its models{received}; "
                f"{self.naming_hint}{self._v1_hint}"
            ) from None

    @property
    def naming_hint(self) -> str:
        """What to do about a server that lists no model."""
        hint = "name the model to evaluate, for example: --model llama3.1:8b"
        if self._access.sent:
            return hint
        return f"if it needs a key, set {self._access.key_variable}; otherwise {hint}"

    async def warnings(self) -> list[str]:
        """Return a warning if the server lists models, but not this one."""
        with suppress(UserError):
            listed = await self.models_served()
            names = (self._model_name, f"{self._model_name}:latest")  # Ollama adds the tag
            if listed and not any(fnmatchcase(name, card) for card in listed for name in names):
                return [
                    f"{self.info.endpoint} does not list {self._model_name!r}, so another model "
                    f"may answer in its name; it lists {shortlist(listed)}"
                ]
        return []

    def request(
        self, question: Question, settings: Settings, adjustments: Adjustments
    ) -> dict[str, Any]:
        """Build the request body for a question, settings and adjustments."""
        messages = arranged(question.messages, adjustments)
        request: dict[str, Any] = {"model": self._model_name}
        if self._api == "completions":
            request |= {"prompt": as_text(messages), "stop": list(STOP_SEQUENCES)}
        else:
            request["messages"] = [{"role": m.role, "content": m.content} for m in messages]
        if settings.temperature is not None and NO_TEMPERATURE not in adjustments:
            request["temperature"] = settings.temperature
        limit = RENAMED_LIMIT if RENAMED_LIMIT in adjustments else "max_tokens"
        request[limit] = settings.max_tokens
        if settings.reasoning_effort:
            request["reasoning_effort"] = settings.reasoning_effort
        extra: dict[str, Any] = json.loads(settings.extra_body) if settings.extra_body else {}
        return request | extra

    async def send(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        **body: Any,
    ) -> Response:
        """Send one request to a path of the server.

        Raises:
            TransientError: if no complete response arrives, or one that is too long.
            UserError: if the server never answered, or redirects.
        """
        url = url_for(self.info.endpoint, path)
        request = self._client().request(
            method, url, timeout=timeout, allow_redirects=False, **body
        )
        try:
            async with request as response:
                if 300 <= response.status < 400 and "Location" in response.headers:
                    raise self._redirect(urljoin(url, response.headers["Location"]), path)
                received = bytearray()
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > MAX_RESPONSE_BYTES:
                        raise TransientError(
                            f"a response of more than {MAX_RESPONSE_BYTES} bytes", maybe_billed=True
                        )
                retry_after = parse_retry_after(response.headers.get("Retry-After"))
                return Response(response.status, retry_after, bytes(received))
        except (aiohttp.InvalidURL, UnicodeError) as fault:  # the address is invalid
            raise unreachable(self.info.endpoint, fault) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            not_sent = isinstance(fault, aiohttp.ClientConnectorError)
            if not self._has_answered and not_sent:
                raise unreachable(self.info.endpoint, fault) from None
            message = f"{type(fault).__name__}: {self.redacted_excerpt(str(fault))}"
            raise TransientError(message, maybe_billed=not not_sent) from None

    def _redirect(self, url: str, path: str) -> UserError:
        """Return the error for a redirect, with the address to use instead of the endpoint."""
        parts = urlsplit(url)
        target = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        address = self.redacted_excerpt(target.geturl().removesuffix(path))
        return UserError(
            f"{self.info.endpoint} redirects to {address}; no request was sent there. If you "
            "trust it, use it as --base-url"
        )

    def answer_in(self, response: Response, adjustments: Adjustments, limit: int) -> Answer:
        """Parse the response to a request sent with these adjustments and this token limit.

        Raises:
            RequestRejected, TransientError, UserError: if it contains no answer.
        """
        if response.is_success:
            try:
                answer = parse_completion(response.body, self._api, self._model_name)
            except ValueError:
                if EVENT_STREAM.match(response.body) and not self._has_answered:
                    raise self._streams_only("an event stream") from None
                received = self.redacted_excerpt(error_message(response.body)) or "an empty body"
                message = f"the response is not a completion: {received}"
                raise TransientError(message, maybe_billed=True) from None
            self._has_answered = True
            if not answer.text.strip() and answer.usage.output_tokens >= limit > 0:
                answer = replace(answer, stop_reason="length")  # some servers call it "stop"
            answer = self._redact.in_answer(answer)
            return replace(answer, adjustments=adjustments) if adjustments else answer
        if response.status == 400 and b'"content_filter"' in response.body:  # as a code, not prose
            return Answer(stop_reason="refused", adjustments=adjustments)
        if response.status == 400 and OUT_OF_TOKENS in response.body:
            used = Usage(1, limit, limit)  # all of it, but the prompt's tokens are not told
            return Answer(stop_reason="length", usage=used, adjustments=adjustments)
        raise self.fault(response)

    def fault(self, response: Response) -> TransientError | UserError | RequestRejected:
        """Convert an unsuccessful response to an error."""
        status, retry_after = response.status, response.retry_after
        words = error_message(response.body)
        excerpt = self.redacted_excerpt(words)
        message = f"HTTP {status}: {excerpt}" if excerpt else f"HTTP {status}"
        refused = f"{self.info.endpoint} refuses {self.info.name!r} ({message})"
        if status in {402, 413, 429} and _TOO_LARGE.search(words.lower()):
            return RequestRejected(refused, words)
        if status == 402 or b"insufficient_quota" in response.body:
            return UserError(f"{self.info.endpoint} requires payment ({message})")
        if status in OVERLOAD_STATUSES:
            return TransientError(message, retry_after=retry_after, overloaded=True)
        if status >= 500 or status in TRANSIENT_STATUSES:
            maybe_billed = status in GATEWAY_TIMEOUT_STATUSES
            return TransientError(message, retry_after=retry_after, maybe_billed=maybe_billed)
        if status in ACCESS_STATUSES:
            problem, advice = "needs a key, and none was sent", ""
            if self._access.sent:
                problem, advice = "refuses the key", " to a valid one"
            variable = self._access.key_variable
            return UserError(f"{self.info.endpoint} {problem} ({message}); set {variable}{advice}")
        if status == 404:
            if self.info.provider == "openai" and RESPONSES_API in response.body:
                return UserError(
                    f"{refused}; use Inspect AI: --model inspect/openai/{self.info.name}"
                )
            return UserError(refused + self._suggestion + self._v1_hint)
        if status not in REJECTED_STATUSES:
            return RequestRejected(refused)
        if _STREAMS_ONLY.search(words.lower()) and "max_tokens" not in words:
            return self._streams_only(message)
        return RequestRejected(refused, words)

    def _streams_only(self, received: str) -> UserError:
        return UserError(
            f"{self.info.endpoint} only streams ({received}), and cdta reads whole responses; try "
            """--extra-body '{"stream": false}', or inspect eval with -M stream=true"""
        )

    @property
    def _v1_hint(self) -> str:
        """A hint at ``/v1`` for an address without a path."""
        hint = f"; most servers answer below /v1: try {url_for(self.info.endpoint, '/v1')}"
        return "" if urlsplit(self.info.endpoint).path else hint

    def _client(self) -> aiohttp.ClientSession:
        if not self._session:
            self._session = aiohttp.ClientSession(
                # Without TLS, connecting is cheap, and late data on a connection that is used again
                # would be read as the response to the next request.
                connector=aiohttp.TCPConnector(
                    limit=0,
                    socket_factory=keepalive_socket,
                    force_close=not self.info.endpoint.startswith("https:"),
                ),
                headers=self._access.sent,
                timeout=TIMEOUT,
                proxy=proxy_for(self.info.endpoint),
            )
        return self._session

    def redacted_excerpt(self, text: str) -> str:
        """Redact and shorten a server's message for display."""
        return self._redact(text)[:300]
