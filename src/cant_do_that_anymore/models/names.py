"""Model names: our own, a model behind an address, or any that Inspect AI reaches."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import BadInput, unknown
from .baseline import RandomModel
from .human import HumanModel
from .layout import STOP_SEQUENCES
from .model import CHAT_TOKENS, Known, Model
from .server import TEXT_PREFIX, Api, ServerModel
from .stopping import to_the_end

SERVER_KEY_VARIABLE = "CDTA_API_KEY"
OPENAI_BASE_MODELS = ("gpt-3.5-turbo-instruct", "gpt-4-base", "babbage-", "davinci-")
"""How the names of OpenAI's base models begin; they need no prefix."""


@dataclass(frozen=True)
class Provider:
    """A provider that is reached without Inspect AI, since its API is OpenAI's."""

    address: str
    address_variable: str
    key_variable: str


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
}


def _pocket(name: str) -> Model:
    from .pocket import PocketModel  # loads the network and its runtime

    return PocketModel(name)


OUR_MODELS: dict[str, Callable[[str], Model]] = {
    "cdta/pocket": _pocket,
    "cdta/pocket-rules": _pocket,
    "cdta/random": lambda _: RandomModel(),
    "human": lambda _: HumanModel(),
}


def model_named(name: str | None, base_url: str | None = None) -> Model:
    """The model that goes by ``name``.

    Args:
        name: one of our own, ``openai/MODEL``, any Inspect AI name, or with ``base_url`` the name
            the server knows it by; ``completions/`` before it asks over the completions API.
        base_url: the address of an OpenAI-compatible server, with its ``/v1``.

    Raises:
        BadInput: if there is no such model, or a key is missing.
    """
    if base_url:
        return _served(name, base_url)
    if name is None:
        raise BadInput("no model was named; for example --model openai/gpt-4o")
    if name in OUR_MODELS:
        return OUR_MODELS[name](name)
    if name.startswith("cdta/"):
        raise unknown("model", name, OUR_MODELS)
    provider = PROVIDERS.get(name.removeprefix(TEXT_PREFIX).split("/")[0])
    if provider and "/" in name.removeprefix(TEXT_PREFIX):
        return _provided(name, provider)
    if "/" not in name:
        known = [*OUR_MODELS, f"openai/{name}", f"anthropic/{name}"]
        raise unknown("model", name, known)
    from .hosted import HostedModel  # takes 2 s to import

    return HostedModel(name)


@dataclass
class _Unreached:
    """What is known of a model by its name alone."""

    name: str
    endpoint: str = ""
    connections: int = 16
    max_tokens: int = CHAT_TOKENS
    conceded: tuple[str, ...] = ()

    @property
    def provider(self) -> str:
        """The first part of an Inspect name."""
        return self.name.split("/")[0]

    @property
    def identity(self) -> Mapping[str, object]:
        """That of the model once it is reached."""
        return inspect_identity(self.name)


def known_by_name(name: str | None, base_url: str | None = None) -> Known:
    """What is known of the model that goes by ``name``, without a key and without asking it.

    Raises:
        BadInput: if there can be no such model.
    """
    if base_url:
        return _served(name, base_url)
    if name is None:
        raise BadInput("no model was named; for example --model openai/gpt-4o")
    if name in OUR_MODELS:
        return OUR_MODELS[name](name)
    bare = name.removeprefix(TEXT_PREFIX)
    if name.startswith("cdta/") or "/" not in bare:
        raise unknown("model", name, [*OUR_MODELS, f"openai/{bare}", f"anthropic/{bare}"])
    provider = PROVIDERS.get(bare.split("/")[0])
    return _at_provider(name, provider, "") if provider else _Unreached(name)


def inspect_identity(
    name: str, base_url: str | None = None, model_args: Mapping[str, object] | None = None
) -> dict[str, object]:
    """What tells a model that Inspect AI reaches from others, known without reaching it."""
    variable = f"{name.split('/')[0].upper().replace('-', '_')}_BASE_URL"
    return {
        "name": name,
        "endpoint": base_url or os.environ.get(variable, ""),
        "api": "inspect",
        "stop": STOP_SEQUENCES,
        "model_args": {key: str(value) for key, value in (model_args or {}).items()},
    }


def _served(name: str | None, base_url: str) -> Model:
    if not base_url.startswith(("http://", "https://")):
        raise BadInput(f"--base-url is no http address: {base_url!r} (try http://{base_url})")
    key = os.environ.get(SERVER_KEY_VARIABLE, "")
    name, api = _name_and_api(name or _only_model_at(base_url, key))
    return ServerModel(name, base_url, key=key, key_variable=SERVER_KEY_VARIABLE, api=api)


def _only_model_at(base_url: str, key: str) -> str:
    async def served() -> list[str]:
        server = ServerModel("", base_url, key=key, key_variable=SERVER_KEY_VARIABLE)
        try:
            return await server.models_served()
        finally:
            await server.close()

    names = to_the_end(served())
    if len(names) != 1:
        raise BadInput(f"{base_url} serves {', '.join(names) or 'no model'}; name one with --model")
    return names[0]


def _provided(name: str, provider: Provider) -> Model:
    key = os.environ.get(provider.key_variable, "")
    if not key:
        raise BadInput(f"{name} needs a key: set {provider.key_variable}")
    return _at_provider(name, provider, key)


def _at_provider(name: str, provider: Provider, key: str) -> Model:
    address = os.environ.get(provider.address_variable) or provider.address
    name, api = _name_and_api(name)
    plain = name.partition("/")[2]
    if name.startswith("openai/") and plain.startswith(OPENAI_BASE_MODELS):
        api = "completions"
    return ServerModel(
        plain,
        address,
        key=key,
        key_variable=provider.key_variable,
        api=api,
        provider=name.partition("/")[0],
    )


def _name_and_api(name: str) -> tuple[str, Api]:
    if name.startswith(TEXT_PREFIX):
        return name.removeprefix(TEXT_PREFIX), "completions"
    return name, "chat"
