"""Adapter for OpenAI-compatible servers: chat and text completions over one HTTP session."""

import json
import re
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from ..errors import InvalidInput, UserError, error_reason, nearest, shortlist
from .access import Access, Redactor
from .base import (
    REPLY_TOKENS,
    Answer,
    Model,
    ModelInfo,
    Question,
    RequestRejected,
    Settings,
    TransientError,
    Usage,
)
from .request_fields import RENAMED_LIMIT, STOP_SEQUENCES, as_text
from .responses import (
    Response,
    error_message,
    parse_completion,
    parse_retry_after,
)

MAX_RESPONSE_SECONDS = 1800  # some models reason for ten minutes and more
TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=30)
LONG_TIMEOUT = aiohttp.ClientTimeout(total=MAX_RESPONSE_SECONDS, sock_connect=30)
LIST_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=30)  # for ``/models``
KEEPALIVE_SECONDS = 60  # routers drop connections that are idle for some minutes
OVERLOAD_STATUSES = {429, 503, 529}
# A gateway timed out: the answer may have been generated and billed.
GATEWAY_TIMEOUT_STATUSES = {408, 499, 504, 524}
# These and all from 500 on say nothing about the request itself.
TRANSIENT_STATUSES = {409, 425, *OVERLOAD_STATUSES, *GATEWAY_TIMEOUT_STATUSES}
# Only these say that the request is wrong; a failing server sends all kinds of messages.
REJECTED_STATUSES = {400, 422}
ACCESS_STATUSES = {401, 403}
# OpenAI's message, with HTTP 400, if the reasoning used up all tokens.
OUT_OF_TOKENS = b"Could not finish the message"
# Messages of servers that reject the token limit with another status than 400.
_TOO_LARGE = re.compile(r"request too large|fewer max_tokens")


class ServerModel(Model):
    """A model on an OpenAI-compatible server."""

    def __init__(self, info: ModelInfo, access: Access) -> None:
        self.info = info
        self.path = "/completions" if info.is_base else "/chat/completions"
        self._name = str(info.identity["name"])
        self._access = access
        self._redact = Redactor(*access.headers.values(), shown=self._name)
        self._has_answered = False

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Send one request to the server."""
        limit = settings.max_tokens or 0
        request = self._request(question, settings)
        timeout = LONG_TIMEOUT if limit > REPLY_TOKENS else TIMEOUT
        response = await self.send("POST", self.path, timeout=timeout, json=request)
        return self._answer_in(response, limit)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def only_model(self) -> str:
        """Return the name of the only model that the server lists, and close the connections.

        Raises:
            UserError: if it does not list one model.
        """
        try:
            names = await self._models_served()
        finally:
            await self.close()
        if len(names) > 1:
            listed = f"{self.info.endpoint} serves {shortlist(names)}"
            raise InvalidInput(f"{listed}; name one with --model")
        return names[0]

    async def _models_served(self) -> list[str]:
        """Return the names of the models that the server lists.

        Raises:
            UserError: if it lists none, or not without a valid key.
        """
        status = ""
        with suppress(ValueError, LookupError, TypeError, RecursionError, TransientError):
            response = await self.send("GET", "/models", timeout=LIST_TIMEOUT)
            if response.status in ACCESS_STATUSES:
                raise self._fault(response)
            status = f" (HTTP {response.status})"
            listing = json.loads(self._redact(response.body.decode("utf-8", "replace")))
            if names := [card["id"] for card in listing["data"] if isinstance(card["id"], str)]:
                return names
        raise UserError(
            f"the server at {self.info.endpoint} lists no model{status}; name one with --model, or "
            f"set {self._access.key_variable} if the server needs a key{self._v1_hint}"
        )

    async def warnings(self) -> list[str]:
        """Return a warning if the server lists models, but not this one."""
        with suppress(UserError):
            listed = await self._models_served()
            names = (self._name, f"{self._name}:latest")  # Ollama adds the tag
            if not any(fnmatchcase(name, card) for card in listed for name in names):
                return [
                    f"{self.info.endpoint} does not list {self._name!r}, so another model may "
                    f"answer in its name; {nearest(self._name, listed)}"
                ]
        return []

    def _request(self, question: Question, settings: Settings) -> dict[str, Any]:
        """Build the request body for a question and settings."""
        messages = question.messages
        request: dict[str, Any] = {"model": self._name}
        if self.info.is_base:
            request |= {"prompt": as_text(messages), "stop": list(STOP_SEQUENCES)}
        else:
            request["messages"] = [{"role": m.role, "content": m.content} for m in messages]
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.reasoning_effort:
            request["reasoning_effort"] = settings.reasoning_effort
        extra: dict[str, Any] = json.loads(settings.extra_body or "{}")
        limit = RENAMED_LIMIT if RENAMED_LIMIT in extra else "max_tokens"
        return request | extra | {limit: settings.max_tokens}

    async def send(
        self, method: str, path: str, *, timeout: aiohttp.ClientTimeout, **body: Any
    ) -> Response:
        """Send one request to a path of the server.

        Raises:
            TransientError: if no complete response arrives.
            UserError: if the server never answered.
        """
        url = f"{self.info.endpoint}{path}"
        options = {"timeout": timeout, "allow_redirects": False, **body}
        try:
            async with self._session.request(method, url, **options) as response:
                retry_after = parse_retry_after(response.headers.get("Retry-After"))
                return Response(response.status, retry_after, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, UnicodeError) as fault:
            # The last two are invalid addresses.
            not_sent = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, UnicodeError)
            was_sent = not isinstance(fault, not_sent)
            if not (was_sent or self._has_answered):
                raise UserError(
                    f"no server answers at {self.info.endpoint} ({error_reason(fault)}); start it "
                    "or correct the address, then run the same command again"
                ) from None
            message = f"{type(fault).__name__}: {self._excerpt(str(fault))}"
            raise TransientError(message, maybe_billed=was_sent) from None

    def _answer_in(self, response: Response, limit: int) -> Answer:
        """Parse the response to a request with this token limit.

        Raises:
            RequestRejected, TransientError, UserError: if it contains no answer.
        """
        if response.status == 400 and b'"content_filter"' in response.body:  # as a code, not prose
            return Answer(stop_reason="refused")
        if response.status == 400 and OUT_OF_TOKENS in response.body:
            # All were used, but the prompt's tokens are not told.
            return Answer(stop_reason="length", usage=Usage(1, limit, limit))
        if not 200 <= response.status < 300:
            raise self._fault(response)
        try:
            answer = parse_completion(response.body, self._name, is_chat=not self.info.is_base)
        except ValueError:
            received = self._excerpt(error_message(response.body)) or "an empty body"
            message = f"the response is not a completion: {received}"
            raise TransientError(message, maybe_billed=True) from None
        self._has_answered = True
        if not answer.text.strip() and answer.usage.output_tokens >= limit > 0:
            answer = replace(answer, stop_reason="length")  # some servers call it "stop"
        return self._redact.in_answer(answer)

    def _fault(self, response: Response) -> TransientError | UserError | RequestRejected:
        """Convert an unsuccessful response to an error."""
        status, endpoint = response.status, self.info.endpoint
        words = error_message(response.body)
        message = f"HTTP {status}: {self._excerpt(words)}".removesuffix(": ")
        refused = f"{endpoint} refuses {self.info.name!r} ({message})"
        if status in {402, 413, 429} and _TOO_LARGE.search(words.lower()):
            return RequestRejected(refused, words)
        if status == 402 or b"insufficient_quota" in response.body:
            return UserError(f"{endpoint} requires payment ({message})")
        if status >= 500 or status in TRANSIENT_STATUSES:
            return TransientError(
                message,
                retry_after=response.retry_after,
                overloaded=status in OVERLOAD_STATUSES,
                maybe_billed=status in GATEWAY_TIMEOUT_STATUSES,
            )
        if status in ACCESS_STATUSES:
            problem = "refuses the key" if self._access.headers else "needs a key"
            return UserError(f"{endpoint} {problem} ({message}); set {self._access.key_variable}")
        if status == 404:
            return UserError(refused + self._v1_hint)
        return RequestRejected(refused, words if status in REJECTED_STATUSES else "")

    @property
    def _v1_hint(self) -> str:
        """A hint at ``/v1`` for an address without a path."""
        hint = f"; most servers answer below /v1: try {self.info.endpoint}/v1"
        return "" if urlsplit(self.info.endpoint).path else hint

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        # Without TLS, connecting is cheap, and late data on a connection that is used again would
        # be read as the response to the next request.
        has_tls = self.info.endpoint.startswith("https:")
        connector = aiohttp.TCPConnector(
            limit=0, socket_factory=keepalive_socket, force_close=not has_tls
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=self._access.headers,
            proxy=proxy_for(self.info.endpoint),
        )

    def _excerpt(self, text: str) -> str:
        """Redact and shorten a server's message for display."""
        return self._redact(text)[:300]


def keepalive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Create a socket with TCP keep-alive, for responses that take minutes to start.

    On Linux it begins to connect. On one machine that takes no time, so asyncio, which connects it
    again, need not wait until it is connected.
    """
    connection = socket.socket(*address[:3])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):  # not on all platforms
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_SECONDS)
    if sys.platform == "linux":  # elsewhere, a connected socket cannot be connected again
        connection.setblocking(False)
        connection.connect_ex(address[4])
    return connection


def proxy_for(address: str) -> str | None:
    """Return the proxy that the environment sets for an address, or None for loopback addresses.

    Proxy passwords come from the proxy's address only; a ``.netrc`` file is ignored.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    if is_loopback or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
