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

from ..errors import InvalidInput, unknown_value
from ..interrupts import run_interruptible
from .access import BEARER, Access, header_value, normalize_address, resolve_headers
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
        model: the name without prefixes; "" for the only model of a server of one's own.
        provider: the part before the first slash; "" for a server of one's own.
        server: the server or the provider with OpenAI's API; None for any other model.
        as_text: whether to use the completions API.
        thinking_tokens: the token limit of the chain of thought; 0 for no chain of thought.
        tag: distinguishes models behind the same name and address.
        headers: extra HTTP headers, as ``NAME=VALUE`` or ``NAME=env:VARIABLE``.
    """

    model: str
    provider: str
    server: Provider | None
    as_text: bool
    thinking_tokens: int
    tag: str
    headers: tuple[str, ...]

    def info(self) -> ModelInfo:
        """Return the information about the model that needs no key and no request."""
        info = self._inner_info()
        return with_chain_of_thought(info, self.thinking_tokens) if self.thinking_tokens else info

    def load(self) -> Model:
        """Create the model.

        Raises:
            InvalidInput: if there is no such model, or a key is missing.
        """
        info = self._inner_info()
        if self.server:
            model = self.server.load(info, self._access(self.server))
        elif self.model in BUILT_IN_MODELS:
            model = _bundled(self.model)
            model.info = info
        else:
            model = _by_inspect(info, resolve_headers(self.headers))
        return ChainOfThought(model, self.thinking_tokens) if self.thinking_tokens else model

    def _inner_info(self) -> ModelInfo:
        """Return the information about the model without a chain of thought."""
        if self.server:
            info = self._server_info(self.server)
        elif self.model in BUILT_IN_MODELS:
            info = _bundled(self.model).info
        else:
            info = inspect_info(self.model)
        tag = {"tag": self.tag} if self.tag else {}
        return replace(info, identity={**info.identity, **tag})

    def _server_info(self, server: Provider) -> ModelInfo:
        """Return the information about a model by its name at the server."""
        address = os.environ.get(server.address_variable) or server.address
        endpoint = normalize_address(address)
        name = self.model.partition("/")[2] if self.provider else self.model
        name = name or _only_model_at(endpoint, self._access(server))
        is_openais = self.provider == "openai" and name.startswith(OPENAI_BASE_MODELS)
        is_base = self.as_text or is_openais
        return ModelInfo(
            name=f"{TEXT_PREFIX}{name}" if is_base else name,
            identity={
                "name": name,
                "endpoint": endpoint,
                "api": "completions" if is_base else "chat",
                "stop": list(STOP_SEQUENCES) if is_base else [],
            },
            endpoint=endpoint,
            provider=self.provider,
            max_tokens=BASE_MODEL_TOKENS if is_base else None,
            price_query={"model_ref": name, "provider_api_url": endpoint},
        )

    def _access(self, server: Provider) -> Access:
        """Return the headers of requests, with the key."""
        key = header_value(server.key_variable)
        if self.provider and not key:
            raise InvalidInput(f"{self.model} needs a key: set {server.key_variable}")
        headers = {"Authorization": f"{BEARER}{key}"} if key else {}
        for name, variable in server.headers.items():
            if value := header_value(variable):
                headers[name] = value
        return Access(server.key_variable, headers | resolve_headers(self.headers))


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
    thinking = _THINKING.match(name or "")
    thinking_tokens = int(thinking[1] or THINKING_TOKENS) if thinking else 0
    model = _THINKING.sub("", name or "")
    by_inspect = model.startswith(INSPECT_PREFIX) and not base_url
    model = model.removeprefix(INSPECT_PREFIX) if by_inspect else model
    as_text = model.startswith(TEXT_PREFIX)
    model = model.removeprefix(TEXT_PREFIX)
    if base_url:
        server = Provider(normalize_address(base_url), "", SERVER_KEY_VARIABLE)
        return Name(model, "", server, as_text, thinking_tokens, tag, headers)
    provider = _provider_in(model)
    is_other_service = provider == "openai" and model.count("/") > 1
    known = None if by_inspect or is_other_service else PROVIDERS.get(provider)
    if as_text and not known and model not in BUILT_IN_MODELS:
        raise InvalidInput(
            f"{TEXT_PREFIX} works only with {', '.join(PROVIDERS)} and --base-url, not with {model}"
        )
    return Name(model, provider, known, as_text, thinking_tokens, tag, headers)


def _provider_in(model: str) -> str:
    """Return the provider in a model's name.

    Raises:
        InvalidInput: if it names none, or one that has no such model.
    """
    for provider, starts in _USUAL_NAMES.items():
        if model.startswith(starts):
            raise InvalidInput(f"unknown model: {model!r} (did you mean '{provider}/{model}'?)")
    provider, _, rest = model.partition("/")
    if not (provider and rest) or (provider == "cdta" and model not in BUILT_IN_MODELS):
        raise unknown_value("model", model, [*BUILT_IN_MODELS, "PROVIDER/MODEL"])
    return provider


def _by_inspect(info: ModelInfo, headers: Mapping[str, str]) -> Model:
    try:
        from .inspect_api import HostedModel  # takes 2 s to import
    except ModuleNotFoundError:
        extra = info.provider if info.provider in EXTRAS else "inspect"
        raise InvalidInput(
            f"{info.name} needs Inspect AI: pip install 'cant-do-that-anymore[{extra}]'"
        ) from None
    return HostedModel(info, headers)


def _only_model_at(endpoint: str, access: Access) -> str:
    from .openai_api import ServerModel

    info = ModelInfo(name="", identity={"name": ""}, endpoint=endpoint)
    return run_interruptible(ServerModel(info, access).only_model())
