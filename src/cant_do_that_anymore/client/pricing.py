"""Token prices from the offline list of the library ``genai-prices``."""

from typing import Any

from ..errors import InvalidInput
from ..formatting import dollars
from ..providers.base import Answer, ModelInfo, Usage
from ..task.spec import Spec
from .budget import FREE, Budget, Price, is_counted

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

    def list_price(**tokens: int) -> float:
        return float(calc_price(Tokens(**tokens), **query).total_price)

    try:
        request = list_price()
        input_price, output_price, cached, reasoning = (
            (list_price(**dict.fromkeys(token_kinds, _TOKENS_PRICED)) - request) / _TOKENS_PRICED
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
            f"--max-cost needs a price, but the price of {model.name} is unknown; give it with "
            "--price IN,OUT in dollars per million tokens, or limit the run with -n instead"
        )


class RunningCost:
    """Projects the total requests and cost of a run from its answers so far, cached ones included.

    Attributes:
        a_sample: requests per position once it is selected.
    """

    def __init__(self, price: Price | None, a_sample: int) -> None:
        self.a_sample = a_sample
        self._price = price
        self._seen = 0
        self._used = Usage()
        self._counted = True

    def observe(self, answer: Answer) -> None:
        """Count an answer."""
        self._seen += 1
        self._used += answer.usage
        self._counted &= bool(answer.error) or is_counted(answer)

    def in_total(self, remaining: float) -> list[str]:
        """Format the projected cost and the progress, given the number of remaining requests."""
        total = self._seen + remaining
        cost = self.cost_of(total)
        progress = f"{self._seen:,} of about {total:,.0f} requests"
        return [f"about {cost} in total", progress] if cost else [progress]

    def cost_of(self, questions: float) -> str:
        """Format the projected cost of this many requests, in tokens if the price is unknown.

        Empty if the model is free or if tokens were not counted.
        """
        if self._price == FREE or not self._seen or not self._counted:
            return ""
        share = questions / self._seen
        if self._price:
            return dollars(share * self._price.of(self._used, self._seen))
        return f"{share * (self._used.input_tokens + self._used.output_tokens):,.0f} tokens"
