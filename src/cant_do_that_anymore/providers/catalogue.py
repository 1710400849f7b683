"""Parse model names and look up their provider, address and adapter.

=========================  ==================================================================
``cdta/pocket``            one of our own (`OUR_MODELS`)
``openai/gpt-4o``          a provider whose API is OpenAI's, asked directly (`PROVIDERS`)
``anthropic/claude-...``   any other ``PROVIDER/MODEL``, through Inspect AI
``NAME`` with a base URL   what the server there calls its model
``NAME@http://...``        the same in one; ``@http://...`` for its only model
``inspect/...``            before a provider's: through Inspect AI although it need not be
``completions/...``        before any of these: a base model, asked with one text
``cot/...``                before any of these: let to think aloud first; ``cot-N/`` N tokens
=========================  ==================================================================
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..errors import InvalidInput, shortlist, unknown_value
from ..interrupts import run_interruptible
from .base import CHAT_TOKENS, Model, ModelInfo
from .chain_of_thought import THINKING_TOKENS, Thinker, ThinkingModel
from .http import Access, headers_in, with_address
from .local import HumanModel, RandomModel
from .openai_api import BASE_MODEL_TOKENS, TEXT_PREFIX, ServerModel
from .request_variants import STOP_SEQUENCES
from .responses import Api

EXTRAS = {"anthropic": "anthropic", "google-genai": "google", "openai": "openai"}
"""Packages of providers, and the extras of this package that bring them and Inspect AI."""


@dataclass(frozen=True)
class Provider:
    """A provider that is reached without Inspect AI, since its API is OpenAI's."""

    address: str
    address_variable: str
    key_variable: str
    headers: tuple[tuple[str, str], ...] = ()
    """Names of headers, and of the variables that hold their values."""

    def own_headers(self) -> dict[str, str]:
        """Those whose variables are set."""
        told = ((name, os.environ.get(variable)) for name, variable in self.headers)
        return {name: value for name, value in told if value}


PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        (
            ("OpenAI-Organization", "OPENAI_ORGANIZATION"),
            ("OpenAI-Organization", "OPENAI_ORG_ID"),
            ("OpenAI-Project", "OPENAI_PROJECT_ID"),
        ),
    ),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
}


def without_inspect(model: str) -> InvalidInput:
    """What to say of a model that is asked through Inspect AI where that is not installed."""
    provider = model.partition("/")[0]
    extra = provider if provider in EXTRAS.values() else "inspect"
    return InvalidInput(f"{model} needs Inspect AI: pip install 'cant-do-that-anymore[{extra}]'")


_PROVIDERS = ("openai", "anthropic", "google")


def with_provider(name: str) -> str:
    """The full name, if the price list knows the model of a large provider, else "".

    >>> with_provider("gpt-4o"), with_provider("my-model")
    ('openai/gpt-4o', '')
    """
    from genai_prices import Usage, calc_price  # takes half a second to import

    for provider in _PROVIDERS:
        try:
            calc_price(Usage(), name, provider_id=provider)
        except LookupError:
            continue
        return f"{provider}/{name}"
    return ""


SERVER_KEY_VARIABLE = "CDTA_API_KEY"
OPENAI_BASE_MODELS = ("gpt-3.5-turbo-instruct", "gpt-4-base", "babbage-", "davinci-")
"""How the names of OpenAI's base models begin; they need no prefix."""
TEXT_PROVIDER = "openai-api-completions"
"""Inspect's way to base models: one user message."""
BY_INSPECT = "inspect/"
_THINKING = re.compile(r"cot(?:-(\d+))?/")


def _pocket(name: str) -> Model:
    from .pocket import PocketModel  # loads the network and its runtime

    return PocketModel(name)


OUR_MODELS: dict[str, Callable[[str], Model]] = {
    "cdta/pocket": _pocket,
    "cdta/pocket-rules": _pocket,
    "cdta/random": lambda _: RandomModel(),
    "human": lambda _: HumanModel(),
}


@dataclass(frozen=True)
class Name:
    """A model's name, taken apart.

    Attributes:
        model: what is left without prefixes; with a ``base_url`` None for its only model.
        as_text: whether it is asked over the completions API.
        by_inspect: whether it is asked through Inspect AI although it need not be.
        thinking_tokens: how much it may think aloud before it replies; None for not at all.
        tag: tells the model from another behind the same name and address.
        headers: more for every request, as ``NAME=VALUE`` or ``NAME=env:VARIABLE``.
    """

    model: str | None
    base_url: str | None = None
    as_text: bool = False
    by_inspect: bool = False
    thinking_tokens: int | None = None
    tag: str = ""
    headers: tuple[str, ...] = ()

    @property
    def provider(self) -> str:
        """The first part, if there are more."""
        first, slash, _ = (self.model or "").partition("/")
        return first if slash and not self.base_url else ""

    def load(self) -> Model:
        """The model, ready to be asked.

        Raises:
            InvalidInput: if there is no such model, or a key is missing.
        """
        model = self._server(with_key=True) or self._own() or self._hosted()
        return ThinkingModel(model, self.thinking_tokens) if self.thinking_tokens else model

    def known(self) -> ModelInfo:
        """What is known of the model without a key and without asking it."""
        known = self._server(with_key=False) or self._own() or self._unreached()
        return Thinker(known, self.thinking_tokens) if self.thinking_tokens else known

    def _own(self) -> Model | None:
        make = OUR_MODELS.get(self.model or "")
        if make and (self.tag or self.headers):
            raise InvalidInput(f"{self.model} is behind no address; leave out --tag and --header")
        return make(str(self.model)) if make else None

    def _unreached(self) -> ModelInfo:
        return Unreached(str(self.model), tag=self.tag)

    def _hosted(self) -> Model:
        try:
            from .inspect_api import HostedModel  # takes 2 s to import
        except ModuleNotFoundError:
            raise without_inspect(str(self.model)) from None
        return HostedModel(str(self.model), tag=self.tag, headers=headers_in(self.headers))

    def _server(self, *, with_key: bool) -> ServerModel | None:
        headers = headers_in(self.headers)
        if self.base_url:
            key = os.environ.get(SERVER_KEY_VARIABLE, "")
            access = Access(SERVER_KEY_VARIABLE, key, headers)
            name = self.model or _only_model_at(self.base_url, access)
            api: Api = "completions" if self.as_text else "chat"
            return ServerModel(name, self.base_url, access, api=api, tag=self.tag)
        provider = PROVIDERS.get(self.provider)
        name = str(self.model).partition("/")[2]
        another_service = self.provider == "openai" and "/" in name
        if not provider or another_service or self.by_inspect:
            return None
        base_model = self.provider == "openai" and name.startswith(OPENAI_BASE_MODELS)
        key = os.environ.get(provider.key_variable, "") if with_key else ""
        if with_key and not key:
            raise InvalidInput(f"{self.model} needs a key: set {provider.key_variable}")
        return ServerModel(
            name,
            os.environ.get(provider.address_variable) or provider.address,
            Access(provider.key_variable, key, provider.own_headers() | headers),
            api="completions" if self.as_text or base_model else "chat",
            provider=self.provider,
            tag=self.tag,
        )


def parsed(name: str | None, base_url: str | None = None) -> Name:
    """Take a model's name apart.

    Args:
        name: as in the table above.
        base_url: the address of an OpenAI-compatible server, with its ``/v1``.

    Raises:
        InvalidInput: if there can be no such model.
    """
    name, base_url = with_address(name, base_url)
    thinking = _THINKING.match(name or "")
    if thinking and name:
        inner = parsed(name[thinking.end() :], base_url)
        return replace(inner, thinking_tokens=int(thinking[1] or THINKING_TOKENS))
    if base_url and not base_url.startswith(("http://", "https://")):
        raise InvalidInput(f"--base-url is no http address: {base_url!r} (try http://{base_url})")
    if not base_url and name is None:
        raise InvalidInput("no model was named; for example --model openai/gpt-4o")
    bare = name.removeprefix(TEXT_PREFIX) if name else None
    by_inspect = bool(name and name.startswith(BY_INSPECT) and not base_url)
    found = Name(bare, base_url, as_text=bare != name)
    if name and by_inspect:
        return replace(parsed(name.removeprefix(BY_INSPECT)), by_inspect=True)
    if base_url or bare in OUR_MODELS:
        return found
    if found.provider in ("", "cdta"):
        if near := "" if found.provider else with_provider(str(bare)):
            raise InvalidInput(f"unknown model: {name!r} (did you mean {near!r}?)")
        raise unknown_value("model", str(name), [*OUR_MODELS, "PROVIDER/MODEL"])
    if found.as_text and found.provider not in PROVIDERS:
        raise InvalidInput(
            f"{name!r}: only {' and '.join(PROVIDERS)} have base models to be asked with a text, "
            "and servers given by --base-url"
        )
    return found


def model_named(name: str | None, base_url: str | None = None) -> Model:
    """The model that goes by ``name``, ready to be asked; see `parsed`."""
    return parsed(name, base_url).load()


def known_by_name(name: str | None, base_url: str | None = None) -> ModelInfo:
    """What is known of it without a key and without asking it; see `parsed`."""
    return parsed(name, base_url).known()


@dataclass
class Unreached:
    """What is known of one of Inspect's models by its name, its address and its arguments."""

    name: str
    endpoint: str = ""
    model_args: Mapping[str, object] = field(default_factory=dict)
    connections: int = 16
    tag: str = ""

    def __post_init__(self) -> None:
        self.may_think = self.provider != TEXT_PROVIDER

    @property
    def max_tokens(self) -> int:
        """Few for base models."""
        return BASE_MODEL_TOKENS if self.provider == TEXT_PROVIDER else CHAT_TOKENS

    @property
    def provider(self) -> str:
        """The first part of an Inspect name."""
        return self.name.split("/")[0]

    @property
    def identity(self) -> Mapping[str, object]:
        """That of the model once it is reached."""
        return inspect_identity(self.name, self.endpoint, self.model_args, self.tag)


def inspect_identity(
    name: str,
    base_url: str | None = None,
    model_args: Mapping[str, object] | None = None,
    tag: str = "",
) -> dict[str, object]:
    """What tells a model that Inspect AI reaches from others, known without reaching it."""
    provider, service, *_ = name.split("/")
    speaks_for = service if provider.startswith("openai-api") else provider
    variable = f"{speaks_for.upper().replace('-', '_')}_BASE_URL"
    return {
        "name": name,
        "endpoint": base_url or os.environ.get(variable, ""),
        "api": "inspect",
        "stop": STOP_SEQUENCES,
        "model_args": {key: str(value) for key, value in (model_args or {}).items()},
        **({"tag": tag} if tag else {}),
    }


def _only_model_at(base_url: str, access: Access) -> str:
    async def served() -> list[str]:
        server = ServerModel("", base_url, access)
        try:
            return await server.models_served()
        finally:
            await server.close()

    names = run_interruptible(served())
    if len(names) != 1:
        raise InvalidInput(
            f"{base_url} serves {shortlist(names) or 'no model'}; name one with --model"
        )
    return names[0]
