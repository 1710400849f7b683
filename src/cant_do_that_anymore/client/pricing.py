"""Token prices over time, from the offline list of the library ``genai-prices``."""

import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from math import ceil
from typing import Any

from ..errors import nearest
from ..providers.base import Answer, ModelInfo, Question, RequestVariant, Settings, Usage
from ..providers.request_variants import limit_of
from ..task.spec import Spec

MILLION = 1_000_000
# Number of tokens to price at once: far below where long prompts cost more.
_TOKENS_PRICED = 1000
# How far ahead prices are looked up: no command is expected to take longer.
HORIZON = timedelta(days=7)
# No chat template wraps a message in more tokens than this.
MAX_TOKENS_AROUND_MESSAGE = 8


@dataclass(frozen=True)
class Price:
    """US dollars per input token, per output token and per request.

    Input tokens from the provider's prompt cache and reasoning tokens cost the same as other
    tokens, unless they have a price of their own.
    """

    input: float
    output: float
    request: float = 0.0
    cached: float | None = None
    thinking: float | None = None

    def of(self, usage: Usage, requests: int) -> float:
        """Return the cost of ``requests`` requests that used ``usage`` in total."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        reasoning = min(usage.thinking_tokens, usage.output_tokens)
        return (
            (usage.input_tokens - cached) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + (usage.output_tokens - reasoning) * self.output
            + reasoning * (self.output if self.thinking is None else self.thinking)
            + requests * self.request
        )

    def max_cost(
        self,
        question: Question,
        settings: Settings,
        variant: RequestVariant,
        input_factor: float = 1.0,
    ) -> float:
        """Return the most that a question can cost in a request variant.

        ``input_factor`` is how many times our bound of the input tokens a server has counted.
        """
        if self == FREE:
            return 0.0
        input_tokens = ceil(input_factor * max_input_tokens(question))
        limit = limit_of(variant, settings)
        return max(self.of(Usage(input_tokens, limit, reasoning), 1) for reasoning in (0, limit))


def is_counted(answer: Answer) -> bool:
    """Whether the provider counted the tokens of an answer.

    Every prompt has input tokens, and every answer with text or reasoning has output tokens.
    """
    usage = answer.usage
    if not usage.output_tokens and (answer.text or answer.has_reasoning):
        return False
    return usage.input_tokens > 0


def max_input_tokens(question: Question) -> int:
    """Return an upper bound on the prompt's tokens, for any common tokenizer."""
    tokens = sum(_max_tokens(message.content) for message in question.messages)
    return ceil(tokens) + MAX_TOKENS_AROUND_MESSAGE * len(question.messages)


@lru_cache(maxsize=4096)  # prompts consist of few different messages
def _max_tokens(text: str) -> float:
    """Bound the tokens of a text."""
    return sum(map(_max_tokens_of_word, text.split()))


@lru_cache(maxsize=10_000)
def _max_tokens_of_word(word: str) -> float:
    """Bound the tokens of a word and the space before it.

    In prose a token averages at least two bytes. Anything else, such as a move, a FEN or a number,
    has at most one token per byte.
    """
    size = len(word.encode()) + 1
    is_prose = len(word) > 1 and word.strip(string.punctuation).isalpha()
    return size / 2 if is_prose else size


FREE = Price(0.0, 0.0)


@dataclass
class Pricing:
    """The prices of a model's requests: now, and within `HORIZON` at the least and the most.

    Attributes:
        at: the price at a time.
        changes: the times at which it may change.
        is_user_price: whether it is the user's own price, which includes any discount.
    """

    at: Callable[[datetime], Price]
    changes: Sequence[datetime] = ()
    is_user_price: bool = False

    def __post_init__(self) -> None:
        prices = [astuple(self.at(moment)) for moment in (datetime.now(UTC), *self.changes)]
        columns = list(zip(*prices, strict=True))
        self.cheapest, self.dearest = (
            Price(*(now and end(column) for now, column in zip(prices[0], columns, strict=True)))
            for end in (min, max)
        )

    @property
    def now(self) -> Price:
        """The price of an answer that arrives now."""
        return self.at(datetime.now(UTC)) if self.changes else self.dearest

    def of(self, answer: Answer, requests: int = 1) -> float | None:
        """Return what an answer cost when it arrived, or else costs now; None if unknown.

        A price that the user sets counts for all answers, also for earlier ones.
        """
        if answer.cost is not None and not self.is_user_price:
            return answer.cost
        price = self.now
        is_known = is_counted(answer) or not (price.input or price.output)
        return price.of(answer.paid_usage, requests) if is_known else None


def pricing_for(spec: Spec, model: ModelInfo) -> Pricing | None:
    """Return the price that the spec sets, or else the model's list prices; None if unknown."""
    if not spec.price:
        return list_pricing(model)
    price = Price(*(float(dollars) / MILLION for dollars in spec.price))
    return Pricing(lambda _: price, is_user_price=True)


def list_pricing(model: ModelInfo) -> Pricing | None:
    """Return the list prices of a model that the price list has; None if unknown."""
    if model.is_local:
        return Pricing(lambda _: FREE)
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price  # takes half a second to import

    query: dict[str, Any] = dict(model.price_query)

    def price_at(moment: datetime) -> Price:
        def list_price(**tokens: int) -> float:
            priced = calc_price(Tokens(**tokens), **query, genai_request_timestamp=moment)
            return float(priced.total_price)

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
        return Price(input_price, output_price, request, cached, reasoning)

    try:
        return Pricing(price_at, list(_price_changes(query)))
    except LookupError:
        return None


def unknown_price_note(model: ModelInfo) -> str:
    """Say that the price list does not have a model, with similar names of the same provider."""
    from genai_prices.data_snapshot import get_snapshot

    places = [model.price_query.get(key) for key in ("provider_id", "provider_api_url")]
    hint = ""
    with suppress(LookupError):
        provider = get_snapshot().find_provider(None, *places)
        names = [entry.id for entry in provider.models]
        hint = f" ({nearest(model.price_query['model_ref'], names)})"
    return f"price: {model.name} is not in the price list{hint}; --price IN,OUT gives its price"


def _price_changes(query: dict[str, Any]) -> Iterator[datetime]:
    """Yield the times within `HORIZON` at which the list's price of a model changes."""
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import StartDateConstraint, TimeOfDateConstraint

    places = {"provider": None, "provider_id": None, "provider_api_url": None}
    _, model = get_snapshot().find_provider_model(**places | query)
    now = datetime.now(UTC)
    for price in model.prices if isinstance(model.prices, list) else ():
        match price.constraint:
            case TimeOfDateConstraint(start_time=start, end_time=end):
                for clock in (start, end):
                    at = clock if clock.tzinfo else clock.replace(tzinfo=UTC)
                    moment = datetime.combine(now.date(), at)
                    yield moment if moment > now else moment + timedelta(days=1)
            case StartDateConstraint(start_date=date):
                moment = datetime.combine(date, time(), UTC)
                if now < moment < now + HORIZON:
                    yield moment
