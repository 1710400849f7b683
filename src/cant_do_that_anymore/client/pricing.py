"""Token prices from the list of the library ``genai-prices``, which needs no network."""

from typing import Any

from ..errors import InvalidInput
from ..providers.base import ModelInfo
from ..providers.catalogue import OUR_MODELS
from ..task.spec import Spec
from .budget import FREE, Budget, Price

A_MILLION = 1_000_000
_A_LOT = 1000
"""Prices are asked for so many tokens at once; far below where long prompts cost more."""
_PROVIDERS = {"grok": "x-ai", "azureai": "azure"}
"""Providers that Inspect AI and the price list call by different names."""


def price_for(spec: Spec, model: ModelInfo) -> Price | None:
    """The price that the spec gives, or else the model's; None if unknown."""
    if not spec.price:
        return price_of(model)
    return Price(*(float(each) / A_MILLION for each in spec.price))


def price_of(model: ModelInfo) -> Price | None:
    """The price of a model by its address, or by its name at a provider; None if unknown."""
    if model.name in OUR_MODELS:
        return FREE
    from genai_prices import Usage as Tokens  # takes half a second to import
    from genai_prices import calc_price

    name = str(model.identity["name"])
    if model.identity["api"] == "inspect":
        provider, _, name = name.partition("/")
        whose: dict[str, Any] = {"provider_id": _PROVIDERS.get(provider, provider)}
    else:
        whose = {"provider_api_url": model.endpoint}

    def dollars(**tokens: int) -> float:
        return float(calc_price(Tokens(**tokens), name, **whose).total_price)

    try:
        request = dollars()
        many_in, many_out, cached, thought = (
            (dollars(**dict.fromkeys(kinds, _A_LOT)) - request) / _A_LOT
            for kinds in (
                ["input_tokens"],
                ["output_tokens"],
                ["input_tokens", "cache_read_tokens"],
                ["output_tokens", "output_reasoning_tokens"],
            )
        )
    except LookupError:
        return None
    return Price(many_in, many_out, request, cached, thought)


def rate_for(spec: Spec, model: ModelInfo) -> Price | None:
    """The same for questions as the spec has them asked: less in batches."""
    price = price_for(spec, model)
    return price.in_batch if price and spec.batch else price


def is_patient(spec: Spec, model: ModelInfo) -> bool:
    """Whether a search goes on although it gives too little: it is wanted to, or costs nothing."""
    return spec.keep_looking or price_for(spec, model) == FREE


def purse_for(spec: Spec, model: ModelInfo) -> Budget:
    """A purse that holds as many dollars as may be spent, or no end of them.

    Raises:
        InvalidInput: if there is a limit and no price to keep it by.
    """
    if spec.max_cost is None:
        return Budget()
    check_price(spec, model)
    return Budget(spec.max_cost)


def check_price(spec: Spec, model: ModelInfo) -> None:
    """Refuse to keep a cost limit with a model whose price is unknown.

    Raises:
        InvalidInput: if it is.
    """
    if not price_for(spec, model):
        raise InvalidInput(
            f"--max-cost cannot be kept: the price of {model.name} is unknown; give it with "
            "--price IN,OUT in dollars for a million tokens, or limit the run with -n instead"
        )
