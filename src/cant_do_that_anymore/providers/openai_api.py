"""Client for OpenAI-compatible servers: chat and text completions over one HTTP session."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from ..errors import UserError, nearest
from .base import (
    CHAT_TOKENS,
    Answer,
    Question,
    RequestRejected,
    RequestVariant,
    Settings,
    TransientError,
)
from .http import (
    LONGEST_THOUGHT,
    Access,
    Connector,
    below,
    checked_address,
    kept_alive,
    proxy_for,
    same_origin_only,
    unreachable,
)
from .redact import Redactor
from .request_variants import (
    LEAST_ROOM,
    NO_TEMPERATURE,
    RENAMED_LIMIT,
    STOP_SEQUENCES,
    arrange_messages,
    as_text,
    effort_way,
    limit_of,
    ways_of,
)
from .responses import Api, Response, completion_in, error_message, fingerprint_in, seconds_of

Card = dict[str, Any]

A_MINUTE = 60


def parse_model_list(body: str) -> list[Card]:
    """The entries of a list of models.

    Raises:
        ValueError: if it is none.
    """
    try:
        return [card for card in json.loads(body)["data"] if isinstance(card["id"], str)]
    except (LookupError, TypeError, RecursionError) as fault:
        raise ValueError(f"no list of models: {fault}") from None


def weights_fingerprint(cards: Sequence[Card], name: str) -> dict[str, str]:
    """When a model was created, and from what, as far as it is said.

    Some servers give the time of the listing as that of the creation, which tells nothing.
    """
    card = next((each for each in cards if each["id"] == name), {})
    created = card.get("created")
    if isinstance(created, int | float) and abs(time.time() - created) < A_MINUTE:
        created = None
    told = {"created": created, "root": card.get("root")}
    return {mark: str(value)[:300] for mark, value in told.items() if value}


def suggestion(cards: Sequence[Card], name: str) -> str:
    """Which of the models may be meant by a name that none of them has; "" if one has it."""
    served = [card["id"] for card in cards]
    return f"; {nearest(name, served)}" if served and name not in served else ""


BASE_MODEL_TOKENS = 4
TEXT_PREFIX = "completions/"
"""Before the name of a base model: it is asked over the completions API, with one text."""
TIME_OUT = aiohttp.ClientTimeout(total=600, sock_connect=30)
LONG_TIME_OUT = aiohttp.ClientTimeout(total=LONGEST_THOUGHT, sock_connect=30)
"""For answers that may be long."""
OVERLOADED = {429, 503, 529}
GATEWAY_GAVE_UP = {408, 499, 504, 524}
"""Somebody on the way waited no longer: the answer may have been made, and be paid."""
IN_PASSING = {409, 425, *GATEWAY_GAVE_UP}
"""With these and all from 500 on, nothing is said of the request itself."""
FORM_REFUSED = {400, 422}
"""Only these speak of the request; a server in trouble says all kinds of things."""
UNFINISHED = b"Could not finish the message"
"""How OpenAI says with HTTP 400 that the thoughts took all tokens."""
ANOTHER_API = b"v1/responses"
"""What OpenAI names in refusing a model that has no chat completions."""
LONGEST_REPLY = 2**25
"""In bytes; whatever is longer is no reply to a question about a move."""
LIST_TIME_OUT = aiohttp.ClientTimeout(total=60, sock_connect=30)
"""For the list of models, which takes no thought."""


class ServerModel:
    """A model behind an OpenAI-compatible address."""

    connections = 32

    def __init__(
        self,
        name: str,
        address: str,
        access: Access,
        *,
        api: Api = "chat",
        provider: str = "",
        tag: str = "",
    ) -> None:
        self.name = name if api == "chat" else f"{TEXT_PREFIX}{name}"
        self._served_as = self._version = name
        self.endpoint = checked_address(address)
        self.max_tokens = CHAT_TOKENS if api == "chat" else BASE_MODEL_TOKENS
        self.api: Api = api
        self.provider = provider
        self.may_think = api == "chat"
        self._access = access
        self._hiding = Redactor(*access.secrets, shown=name)
        self._tag = tag
        self._has_answered = False
        self._fingerprint = self._near = ""
        self._session: aiohttp.ClientSession | None = None
        self.path = "/chat/completions" if api == "chat" else "/completions"

    @property
    def identity(self) -> Mapping[str, object]:
        """The name that the server knows, the address, and how a conversation is put to it."""
        return {
            "name": self._served_as,
            "endpoint": self.endpoint,
            "api": self.api,
            "stop": STOP_SEQUENCES if self.api == "completions" else (),
            **({"tag": self._tag} if self._tag else {}),
        }

    async def answer(
        self, question: Question, settings: Settings, form: RequestVariant = ()
    ) -> Answer:
        """Ask the server once."""
        time_out = LONG_TIME_OUT if limit_of(form, settings) > LEAST_ROOM else TIME_OUT
        request = self.request(question, settings, form)
        response = await self.send(
            "POST", self.path, time_out=time_out, longest=LONGEST_REPLY, json=request
        )
        if response.status == 404:
            with suppress(UserError):
                self._near = suggestion(await self._cards(), self._served_as)
        return self.answer_in(response, form)

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()

    async def models_served(self) -> list[str]:
        """The names of the models that the server says it has.

        Raises:
            UserError: if it does not say so.
        """
        return [card["id"] for card in await self._cards()]

    async def marks(self) -> dict[str, str]:
        """What tells the weights from others behind the same name, as far as the server says it."""
        told = {"system_fingerprint": self._fingerprint} if self._fingerprint else {}
        with suppress(UserError):
            told |= weights_fingerprint(await self._cards(), self._served_as)
        return told

    async def _cards(self) -> list[Card]:
        sent = self.send("GET", "/models", time_out=LIST_TIME_OUT, longest=LONGEST_REPLY)
        try:
            return parse_model_list(self._hiding((await sent).body.decode("utf-8", "replace")))
        except (ValueError, TransientError):
            raise UserError(
                f"the server at {self.endpoint} does not list its models; name one with --model"
                + self._elsewhere
            ) from None

    def request(
        self, question: Question, settings: Settings, form: RequestVariant
    ) -> dict[str, Any]:
        """The body of the request that asks a question."""
        messages = arrange_messages(question.messages, form)
        request: dict[str, Any] = {"model": self._served_as}
        if self.api == "completions":
            request |= {"prompt": as_text(messages), "stop": list(STOP_SEQUENCES)}
        else:
            request["messages"] = [{"role": m.role, "content": m.content} for m in messages]
        if settings.temperature is not None and NO_TEMPERATURE not in form:
            request["temperature"] = settings.temperature
        request[RENAMED_LIMIT if RENAMED_LIMIT in form else "max_tokens"] = limit_of(form, settings)
        if settings.reasoning_effort:
            request |= ways_of(settings.reasoning_effort)[effort_way(form, settings)]
        extra: dict[str, Any] = json.loads(settings.extra_body or "{}")
        return request | extra

    async def send(
        self,
        method: str,
        path: str,
        *,
        time_out: aiohttp.ClientTimeout,
        longest: int,
        **body: Any,
    ) -> Response:
        """Send one request to a path of the server.

        Raises:
            TransientError: if nothing comes back, or no end of it.
            UserError: if the server was never there, or sends one to another.
        """
        sent = self._client().request(method, below(self.endpoint, path), timeout=time_out, **body)
        try:
            async with sent as response:
                received = bytearray()
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > longest:
                        raise TransientError(
                            f"a reply of more than {longest} bytes", maybe_billed=True
                        )
                retry_after = seconds_of(response.headers.get("Retry-After"))
                return Response(response.status, retry_after, bytes(received))
        except (aiohttp.InvalidURL, UnicodeError) as fault:  # there is no such address
            raise unreachable(self.endpoint, fault) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            not_sent = isinstance(fault, aiohttp.ClientConnectorError)
            if not self._has_answered and not_sent:
                raise unreachable(self.endpoint, fault) from None
            told = f"{type(fault).__name__}: {self.without_key(str(fault))}"
            raise TransientError(told, maybe_billed=not not_sent) from None

    def answer_in(self, response: Response, form: RequestVariant) -> Answer:
        """The answer in a response to a question that was put in that form.

        Raises:
            Refused, Passing, Problem: if it holds none.
        """
        if response.is_success:
            try:
                answer = completion_in(response.body, self.api, self._served_as, form)
            except ValueError:
                message = self.without_key(error_message(response.body)) or "an empty body"
                told = f"a reply that is no completion: {message}"
                raise TransientError(told, maybe_billed=True) from None
            self._has_answered = True
            answer = self._hiding.in_answer(answer)
            self._version = answer.version
            self._fingerprint = self._hiding(fingerprint_in(response.body))
            return answer
        if response.status == 400 and b'"content_filter"' in response.body:  # as a code, no prose
            return Answer("", stop_reason="refused", version=self._version, conceded=form)
        if response.status == 400 and UNFINISHED in response.body:
            return Answer("", stop_reason="length", version=self._version, conceded=form)
        raise self.fault(response)

    def fault(self, response: Response) -> TransientError | UserError | RequestRejected:
        """What a status means that is no success."""
        status, retry_after = response.status, response.retry_after
        words = error_message(response.body)
        told = self.without_key(words)
        message = f"HTTP {status}: {told}" if told else f"HTTP {status}"
        if status == 402 or b"insufficient_quota" in response.body:
            return UserError(f"{self.endpoint} wants money ({message})")
        if status in OVERLOADED:
            return TransientError(message, retry_after=retry_after, overloaded=True)
        if status >= 500 or status in IN_PASSING:
            maybe_billed = status in GATEWAY_GAVE_UP
            return TransientError(message, retry_after=retry_after, maybe_billed=maybe_billed)
        if status in (401, 403):
            return UserError(
                f"{self.endpoint} refuses the key ({message}); "
                f"set {self._access.key_variable} to a valid one"
            )
        refused = f"{self.endpoint} refuses {self.name!r} ({message})"
        if status == 404:
            if self.provider == "openai" and ANOTHER_API in response.body:
                return UserError(f"{refused}; ask it by way of Inspect: inspect/openai/{self.name}")
            return UserError(refused + self._near + self._elsewhere)
        return RequestRejected(refused, words if status in FORM_REFUSED else "")

    @property
    def _elsewhere(self) -> str:
        """Where to look for what is not found at an address without a path."""
        told = f"; most servers answer below /v1: try {below(self.endpoint, '/v1')}"
        return "" if urlsplit(self.endpoint).path else told

    def _client(self) -> aiohttp.ClientSession:
        if not self._session:
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=0, socket_factory=kept_alive),
                headers=self._access.sent,
                timeout=TIME_OUT,
                proxy=proxy_for(self.endpoint),
                middlewares=[same_origin_only(self.endpoint, self.path, self.without_key)],
            )
        return self._session

    def without_key(self, text: str) -> str:
        """A server's words for people: without the key, should it repeat that, and no novel."""
        return self._hiding(text)[:300]
