"""Model names: our own, a model behind an address, OpenAI's, or any that Inspect AI reaches."""

import asyncio
import os
from collections.abc import Callable

from ..errors import BadInput, unknown
from .baseline import RandomModel
from .model import Model
from .server import Api, ServerModel

OPENAI_ADDRESS = "https://api.openai.com/v1"
SERVER_KEY_VARIABLE = "CDTA_API_KEY"
TEXT_PREFIX = "completions/"
"""Before the name of a base model: it is asked over the completions API, with one text."""


def _pocket(name: str) -> Model:
    from .pocket import PocketModel  # loads the network and its runtime

    return PocketModel(name)


OUR_MODELS: dict[str, Callable[[str], Model]] = {
    "cdta/pocket": _pocket,
    "cdta/pocket-rules": _pocket,
    "cdta/random": lambda _: RandomModel(),
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
    if name.removeprefix(TEXT_PREFIX).startswith("openai/"):
        return _openai(name)
    if "/" not in name:
        known = [*OUR_MODELS, f"openai/{name}", f"anthropic/{name}"]
        raise unknown("model", name, known)
    from .hosted import HostedModel  # takes 2 s to import

    return HostedModel(name)


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

    names = asyncio.run(served())
    if len(names) != 1:
        raise BadInput(f"{base_url} serves {', '.join(names) or 'no model'}; name one with --model")
    return names[0]


def _openai(name: str) -> Model:
    key = os.environ.get("OPENAI_API_KEY", "")
    if not key:
        raise BadInput(f"{name} needs a key: set OPENAI_API_KEY")
    address = os.environ.get("OPENAI_BASE_URL") or OPENAI_ADDRESS
    plain, api = _name_and_api(name)
    plain = plain.removeprefix("openai/")
    return ServerModel(plain, address, key=key, key_variable="OPENAI_API_KEY", api=api)


def _name_and_api(name: str) -> tuple[str, Api]:
    if name.startswith(TEXT_PREFIX):
        return name.removeprefix(TEXT_PREFIX), "completions"
    return name, "chat"
