"""Any OpenAI-compatible server, lean: one HTTP client, JSON in and out, chat and completions."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from ..errors import BadInput, Problem
from .concessions import NO_SYSTEM, NO_TEMPERATURE, RENAMED_LIMIT, USER_FIRST, concessions_to
from .layout import STOP_SEQUENCES, as_text, user_first, without_system
from .model import CHAT_TOKENS, Answer, Passing, Question, Settings
from .replies import Api, Form, completion_in, error_message, seconds_of

BASE_MODEL_TOKENS = 4
TEXT_PREFIX = "completions/"
"""Before the name of a base model: it is asked over the completions API, with one text."""
TIME_OUT = aiohttp.ClientTimeout(total=600, sock_connect=30)
OVERLOADED = {429, 503, 529}
FORM_REFUSED = {400, 422}
"""Only these speak of the request; a server in trouble says all kinds of things."""
LONGEST_REPLY = 2**25
"""In bytes; whatever is longer is no reply to a question about a move."""


class _Response(NamedTuple):
    status: int
    retry_after: float | None
    body: bytes


class ServerModel:
    """A model behind an OpenAI-compatible address.

    Servers differ in what they take. When one refuses the form of a request, twice, and takes it
    in another form, that concession is made from then on, and every answer says which were.
    """

    connections = 32

    def __init__(
        self,
        name: str,
        address: str,
        *,
        key: str = "",
        key_variable: str,
        api: Api = "chat",
        provider: str = "",
    ) -> None:
        self.name = name if api == "chat" else f"{TEXT_PREFIX}{name}"
        self._served_as = self._version = name
        self.endpoint = _checked_address(address)
        self.max_tokens = CHAT_TOKENS if api == "chat" else BASE_MODEL_TOKENS
        self.api: Api = api
        self.provider = provider
        self.conceded: tuple[str, ...] = ()
        self._key = _checked_key(key, key_variable)
        self._key_variable = key_variable
        self._learning = asyncio.Lock()
        self._has_answered = False
        self._session: aiohttp.ClientSession | None = None

    @property
    def identity(self) -> Mapping[str, object]:
        """The name that the server knows, the address, and how a conversation is put to it."""
        return {
            "name": self._served_as,
            "endpoint": self.endpoint,
            "api": self.api,
            "stop": STOP_SEQUENCES if self.api == "completions" else (),
        }

    async def answer(self, question: Question, settings: Settings) -> Answer:
        """Ask the server once, or again at once if it wants the request in another form."""
        form = self.conceded
        response = await self._ask(question, settings, form)
        if self._wants_another_form(response, form):
            async with self._learning:  # what one question teaches, the others need not find out
                if form != self.conceded:
                    form = self.conceded
                    response = await self._ask(question, settings, form)
                if self._wants_another_form(response, form):
                    form, response = await self._learn(question, settings, form)
        return self._answer_in(response, form)

    async def _learn(
        self, question: Question, settings: Settings, form: Form
    ) -> tuple[Form, _Response]:
        """The form that the server takes, by trying; the one it refused again first.

        What is refused in passing is not refused twice, and a form that is not taken either is no
        remedy.
        """
        tried = {frozenset(form): (form, await self._ask(question, settings, form))}
        for known, response in (open_ends := list(tried.values())):
            for concession in self._remedies(response, known):
                other = (*known, concession)
                if frozenset(other) in tried:
                    continue
                answered = await self._ask(question, settings, other)
                if answered.status == 200:
                    again = await self._ask(question, settings, form)
                    if again.status not in FORM_REFUSED:  # it was in passing, after all
                        return form, again
                    self.conceded = other
                    return other, answered
                tried[frozenset(other)] = other, answered
                open_ends.append((other, answered))
        # A server in trouble has refused no form: it is to be asked again later.
        troubled = [response for _, response in open_ends if response.status not in FORM_REFUSED]
        return form, troubled[0] if troubled else open_ends[0][1]

    def _wants_another_form(self, response: _Response, form: Form) -> bool:
        return bool(self._remedies(response, form))

    def _remedies(self, response: _Response, form: Form) -> list[str]:
        if response.status not in FORM_REFUSED:
            return []
        return concessions_to(error_message(response.body), form)

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

    async def _ask(self, question: Question, settings: Settings, form: Form) -> _Response:
        return await self._post(self._request(question, settings, form))

    def _request(self, question: Question, settings: Settings, form: Form) -> dict[str, Any]:
        messages = question.messages
        if NO_SYSTEM in form:
            messages = without_system(messages)
        elif USER_FIRST in form:
            messages = user_first(messages)
        request: dict[str, Any] = {"model": self._served_as}
        if self.api == "completions":
            request |= {"prompt": as_text(messages), "stop": list(STOP_SEQUENCES)}
        else:
            request["messages"] = [{"role": m.role, "content": m.content} for m in messages]
        if settings.temperature is not None and NO_TEMPERATURE not in form:
            request["temperature"] = settings.temperature
        request[RENAMED_LIMIT if RENAMED_LIMIT in form else "max_tokens"] = settings.max_tokens
        return request

    async def _post(self, request: dict[str, Any]) -> _Response:
        path = "/chat/completions" if self.api == "chat" else "/completions"
        try:
            async with self._client().post(self.endpoint + path, json=request) as response:
                body = b""
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > LONGEST_REPLY:
                        raise Passing(f"a reply of more than {LONGEST_REPLY} bytes")
                retry_after = seconds_of(response.headers.get("Retry-After"))
                return _Response(response.status, retry_after, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as fault:
            if not self._has_answered and isinstance(fault, aiohttp.ClientConnectorError):
                raise self._unreachable(fault) from None
            raise Passing(f"{type(fault).__name__}: {self._without_key(str(fault))}") from None

    def _answer_in(self, response: _Response, form: Form) -> Answer:
        if response.status == 200:
            try:
                answer = completion_in(response.body, self.api, self._served_as, form)
            except ValueError:
                message = self._without_key(error_message(response.body)) or "an empty body"
                raise Passing(f"a reply that is no completion: {message}") from None
            self._has_answered = True
            self._version = answer.version
            return answer
        if response.status == 400 and b'"content_filter"' in response.body:  # as a code, no prose
            return Answer("", stop_reason="refused", version=self._version, conceded=form)
        return self._refused(response)

    def _refused(self, response: _Response) -> Answer:
        """Raise what a status other than 200 means, or give it as the answer to this question."""
        status, retry_after = response.status, response.retry_after
        told = self._without_key(error_message(response.body))
        message = f"HTTP {status}: {told}" if told else f"HTTP {status}"
        if status == 402 or b"insufficient_quota" in response.body:
            raise Problem(f"{self.endpoint} wants money ({message})")
        if status in OVERLOADED:
            raise Passing(message, retry_after=retry_after, overloaded=True)
        if status >= 500 or status == 408:
            raise Passing(message, retry_after=retry_after)
        if status in (401, 403):
            raise Problem(
                f"{self.endpoint} refuses the key ({message}); "
                f"set {self._key_variable} to a valid one"
            )
        if not self._has_answered or status == 404:
            raise Problem(f"{self.endpoint} refuses {self.name!r} ({message})")
        return Answer("", stop_reason="error", error=message)

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

    def _without_key(self, text: str) -> str:
        """A server's words for people: without the key, should it repeat that, and no novel."""
        return (text.replace(self._key, "***") if self._key else text)[:300]


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
        told = f"the address of {parts.hostname} may hold no user name, password or query"
        raise BadInput(f"{told}; a key goes into an environment variable")
    return address.rstrip("/")


def _checked_key(key: str, variable: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise BadInput(f"{variable} holds characters that cannot be part of a key")
    return key
