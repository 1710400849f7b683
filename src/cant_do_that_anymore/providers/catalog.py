"""Parse model names and look up their provider, address and adapter.

=========================  ==================================================================
``cdta/reader``            a built-in model (`BUILT_IN_MODELS`)
``openai/gpt-4o``          a provider with OpenAI's API, without Inspect AI (`PROVIDERS`)
``anthropic/claude-...``   any other ``PROVIDER/MODEL``, through Inspect AI
``NAME`` with a base URL   a model as that server names it
``NAME@http://...``        the same in one string; ``@http://...`` for the server's only model
``inspect/...``            prefix for a provider's model: through Inspect AI in any case
``completions/...``        prefix for any of these: a base model, prompted with one text
``cot/...``                prefix for any of these: chain of thought; ``cot-N/`` up to N tokens
=========================  ==================================================================
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..errors import InvalidInput, shortlist, unknown_value
from ..interrupts import run_interruptible
from .access import Access, key_header, normalize_address, resolve_headers
from .base import BASE_MODEL_TOKENS, Model, ModelInfo
from .chain_of_thought import THINKING_TOKENS, ChainOfThought, with_chain_of_thought
from .request_fields import STOP_SEQUENCES

# Providers for which an extra of this package installs their package and Inspect AI.
EXTRAS = ("anthropic", "google", "openai")
SERVER_KEY_VARIABLE = "CDTA_API_KEY"
# Names of OpenAI's base models start like this; they need no ``completions/`` prefix.
OPENAI_BASE_MODELS = ("gpt-3.5-turbo-instruct", "gpt-4-base", "babbage-", "davinci-")
# How names of models start that are often given without their provider.
_USUAL_NAMES = {"openai": ("gpt-", "o3", "o4"), "anthropic": ("claude-",), "google": ("gemini-",)}
TEXT_PROVIDER = "openai-api-completions"  # Inspect's provider of base models: one user message
TEXT_PREFIX = "completions/"  # marks a base model, which gets one text over the completions API
INSPECT_PREFIX = "inspect/"
_THINKING = re.compile(r"^cot(?:-(\d+))?/")
# Providers that Inspect AI and the price list name differently.
_PRICE_LIST_NAMES = {"grok": "x-ai", "azureai": "azure"}


def _openai_api(info: ModelInfo, access: Access) -> Model:
    from .openai_api import ServerModel  # imports an HTTP client

    return ServerModel(info, access)


@dataclass(frozen=True)
class Provider:
    """A provider that needs no Inspect AI.

    ``load`` creates the adapter of a model; ``headers`` has variables by the header they set.
    """

    address: str
    address_variable: str
    key_variable: str
    headers: Mapping[str, str] = field(default_factory=dict)
    load: Callable[[ModelInfo, Access], Model] = _openai_api


PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"},
    ),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
}


def _bundled(name: str) -> Model:
    from .bundled import PocketModel, RandomModel  # imports numpy

    return RandomModel() if name == RandomModel.info.name else PocketModel(name)


BUILT_IN_MODELS = ("cdta/reader", "cdta/pocket", "cdta/pocket-rules", "cdta/random")


def server_info(name: str, address: str, *, is_base: bool = False, provider: str = "") -> ModelInfo:
    """Return what is known about a model on a server, by its name there.

    Raises:
        InvalidInput: if the address is invalid.
    """
    endpoint = normalize_address(address)
    return ModelInfo(
        name=f"{TEXT_PREFIX}{name}" if is_base else name,
        identity={
            "name": name,
            "endpoint": endpoint,
            "api": "completions" if is_base else "chat",
            "stop": list(STOP_SEQUENCES) if is_base else [],
        },
        endpoint=endpoint,
        provider=provider,
        max_tokens=BASE_MODEL_TOKENS if is_base else None,
        price_query={"model_ref": name, "provider_api_url": endpoint},
    )


def inspect_info(
    name: str, base_url: str = "", model_args: Mapping[str, object] | None = None
) -> ModelInfo:
    """Return what is known about an Inspect model from its name, address and arguments alone."""
    provider, service, *_ = name.split("/")
    vendor = service if provider.startswith("openai-api") else provider
    variable = f"{vendor.upper().replace('-', '_')}_BASE_URL"
    return ModelInfo(
        name=name,
        identity={
            "name": name,
            "endpoint": base_url or os.environ.get(variable, ""),
            "api": "inspect",
            "stop": list(STOP_SEQUENCES),
            "model_args": {key: str(value) for key, value in (model_args or {}).items()},
        },
        endpoint=base_url,
        provider=provider,
        max_tokens=BASE_MODEL_TOKENS if provider == TEXT_PROVIDER else None,
        price_query={
            "model_ref": name.partition("/")[2],
            "provider_id": _PRICE_LIST_NAMES.get(provider, provider),
        },
    )


@dataclass(frozen=True)
class Name:
    """The parsed name of a model.

    Attributes:
        model: the name without prefixes; with a ``base_url``, "" for the server's only model.
        as_text: whether to use the completions API.
        by_inspect: whether to use Inspect AI although this package has an adapter.
        thinking_tokens: the token limit of the chain of thought; 0 for no chain of thought.
        tag: distinguishes models behind the same name and address.
        headers: extra HTTP headers, as ``NAME=VALUE`` or ``NAME=env:VARIABLE``.
    """

    model: str
    base_url: str = ""
    as_text: bool = False
    by_inspect: bool = False
    thinking_tokens: int = 0
    tag: str = ""
    headers: tuple[str, ...] = ()

    @property
    def provider(self) -> str:
        """The part before the first slash, or "" if there is none or a base URL is set."""
        first, slash, _ = self.model.partition("/")
        return first if slash and not self.base_url else ""

    def load(self) -> Model:
        """Create the model.

        Raises:
            InvalidInput: if there is no such model, or a key is missing.
        """
        if server := self._server():
            model = server.load(self._inner_info(), self._access(server))
        elif self.model in BUILT_IN_MODELS:
            model = _bundled(self.model)
            model.info = self._inner_info()
        else:
            model = self._inspect_model()
        return ChainOfThought(model, self.thinking_tokens) if self.thinking_tokens else model

    def info(self) -> ModelInfo:
        """Return the information about the model that needs no key and no request."""
        info = self._inner_info()
        return with_chain_of_thought(info, self.thinking_tokens) if self.thinking_tokens else info

    def _inner_info(self) -> ModelInfo:
        """Return the information about the model without a chain of thought."""
        server = self._server()
        if server:
            info = self._server_info(server)
        elif self.model in BUILT_IN_MODELS:
            info = _bundled(self.model).info
        else:
            info = inspect_info(self.model)
        tag = {"tag": self.tag} if self.tag else {}
        return replace(info, identity={**info.identity, **tag})

    def _server(self) -> Provider | None:
        """Return the server or the provider that needs no Inspect AI, if it is one."""
        if self.base_url:
            return Provider(self.base_url, "", SERVER_KEY_VARIABLE)
        another_service = self.provider == "openai" and self.model.count("/") > 1
        return None if another_service or self.by_inspect else PROVIDERS.get(self.provider)

    def _server_info(self, server: Provider) -> ModelInfo:
        name = self.model if self.base_url else self.model.partition("/")[2]
        is_openais = self.provider == "openai" and name.startswith(OPENAI_BASE_MODELS)
        return server_info(
            name or _only_model_at(self.base_url, self._access(server)),
            os.environ.get(server.address_variable) or server.address,
            is_base=self.as_text or is_openais,
            provider=self.provider,
        )

    def _access(self, server: Provider) -> Access:
        headers = key_header(server.key_variable)
        if not (headers or self.base_url):
            raise InvalidInput(f"{self.model} needs a key: set {server.key_variable}")
        for name, variable in server.headers.items():
            if value := os.environ.get(variable):
                headers[name] = value
        return Access(server.key_variable, headers | resolve_headers(self.headers))

    def _inspect_model(self) -> Model:
        try:
            from .inspect_api import HostedModel  # takes 2 s to import
        except ModuleNotFoundError:
            extra = self.provider if self.provider in EXTRAS else "inspect"
            raise InvalidInput(
                f"{self.model} needs Inspect AI: pip install 'cant-do-that-anymore[{extra}]'"
            ) from None
        return HostedModel(self._inner_info(), resolve_headers(self.headers))


def parse_name(
    name: str | None, base_url: str | None = None, tag: str = "", headers: tuple[str, ...] = ()
) -> Name:
    """Parse a model's name.

    Args:
        name: the name, in a form that the module's docstring lists, without an address.
        base_url: the address of an OpenAI-compatible server, including ``/v1``.
        tag: distinguishes models behind the same name and address.
        headers: extra HTTP headers.

    Raises:
        InvalidInput: if no such model can exist.
    """
    address = normalize_address(base_url) if base_url else ""
    thinking = _THINKING.match(name or "")
    bare = _THINKING.sub("", name or "")
    by_inspect = bare.startswith(INSPECT_PREFIX) and not address
    bare = bare.removeprefix(INSPECT_PREFIX) if by_inspect else bare
    parsed = Name(
        bare.removeprefix(TEXT_PREFIX),
        address,
        as_text=bare.startswith(TEXT_PREFIX),
        by_inspect=by_inspect,
        thinking_tokens=int(thinking[1] or THINKING_TOKENS) if thinking else 0,
        tag=tag,
        headers=headers,
    )
    if not address:
        _check_exists(parsed)
    return parsed


def _check_exists(name: Name) -> None:
    """Check that a name is that of a built-in model, or that its provider may be one.

    Raises:
        InvalidInput: if it is not.
    """
    if name.model in BUILT_IN_MODELS:
        return
    for provider, starts in _USUAL_NAMES.items():
        if name.model.startswith(starts):
            full_name = f"{provider}/{name.model}"
            raise InvalidInput(f"unknown model: {name.model!r} (did you mean {full_name!r}?)")
    if name.provider in ("", "cdta"):
        raise unknown_value("model", name.model, [*BUILT_IN_MODELS, "PROVIDER/MODEL"])
    if name.as_text and name.provider not in PROVIDERS:
        raise InvalidInput(
            f"{TEXT_PREFIX}{name.model}: {TEXT_PREFIX} works only with {', '.join(PROVIDERS)} and "
            "servers given by --base-url"
        )


def _only_model_at(base_url: str, access: Access) -> str:
    from .openai_api import ServerModel

    async def served() -> list[str]:
        server = ServerModel(server_info("", base_url), access)
        try:
            if names := await server.models_served():
                return names
            raise InvalidInput(f"{base_url} lists no model; {server.naming_hint}")
        finally:
            await server.close()

    names = run_interruptible(served())
    if len(names) > 1:
        raise InvalidInput(f"{base_url} serves {shortlist(names)}; name one with --model")
    return names[0]
