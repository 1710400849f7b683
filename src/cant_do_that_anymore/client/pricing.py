"""Token prices from the offline list of the library ``genai-prices``."""

from typing import Any

from ..errors import InvalidInput
from ..providers.base import ModelInfo
from ..task.spec import Spec
from .budget import FREE, Budget, Price

MILLION = 1_000_000
# Number of tokens to price at once: far below where long prompts cost more.
_TOKENS_PRICED = 1000


def price_for(spec: Spec, model: ModelInfo) -> Price | None:
    """Return the price that the spec sets, or else the model's list price; None if unknown."""
    if not spec.price:
        return price_of(model)
    return Price(*(float(price) / MILLION for price in spec.price))


def price_of(model: ModelInfo) -> Price | None:
    """Return the list price of a model that the price list has; None if unknown."""
    if model.is_local:
        return FREE
    from genai_prices import Usage as Tokens  # takes half a second to import
    from genai_prices import calc_price

    query: dict[str, Any] = dict(model.price_query)

    def dollars(**tokens: int) -> float:
        return float(calc_price(Tokens(**tokens), **query).total_price)

    try:
        request = dollars()
        input_price, output_price, cached, reasoning = (
            (dollars(**dict.fromkeys(token_kinds, _TOKENS_PRICED)) - request) / _TOKENS_PRICED
            for token_kinds in (
                ["input_tokens"],
                ["output_tokens"],
                ["input_tokens", "cache_read_tokens"],
                ["output_tokens", "output_reasoning_tokens"],
            )
        )
    except LookupError:
        return None
    return Price(input_price, output_price, request, cached, reasoning)


def rate_for(spec: Spec, model: ModelInfo) -> Price | None:
    """Return the price of the spec's requests, with the discount for batches."""
    price = price_for(spec, model)
    return price.in_batch if price and spec.batch else price


def searches_whole_pool(spec: Spec, model: ModelInfo) -> bool:
    """Whether to search the whole pool even if few positions qualify: on request, or if free."""
    return spec.keep_looking or price_for(spec, model) == FREE


def budget_for(spec: Spec, model: ModelInfo) -> Budget:
    """Return a budget of the spec's ``max_cost``, or an unlimited one.

    Raises:
        InvalidInput: if there is a limit and the price is unknown.
    """
    if spec.max_cost is None:
        return Budget()
    check_price(spec, model)
    return Budget(spec.max_cost)


def check_price(spec: Spec, model: ModelInfo) -> None:
    """Check that the model's price is known, so that a cost limit can hold.

    Raises:
        InvalidInput: if it is unknown.
    """
    if not price_for(spec, model):
        raise InvalidInput(
            f"--max-cost cannot be kept: the price of {model.name} is unknown; give it with "
            "--price IN,OUT in dollars for a million tokens, or limit the run with -n instead"
        )
