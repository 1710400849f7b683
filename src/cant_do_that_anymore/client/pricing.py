"""What an answer costs, and how much a command may spend."""

from dataclasses import dataclass
from typing import Any

from ..errors import Incomplete, InvalidInput
from ..habits.base import Message
from ..providers.base import Answer, ModelInfo, Usage
from ..task.spec import Spec

MILLION = 1_000_000
# Number of tokens to price at once: far below where long prompts cost more.
_TOKENS_PRICED = 1000
# Dollars that a command may spend if the user sets no limit.
DEFAULT_MAX_COST = 5.0
# In English prose, by the providers' rule of thumb.
CHARACTERS_PER_TOKEN = 4
# Tokens that a chat template adds per message: two markers, the role, a line break.
TURN_TOKENS = 4


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
    reasoning: float | None = None

    def of(self, usage: Usage, requests: int = 1) -> float:
        """Return the cost of ``requests`` requests that used ``usage`` in total."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        reasoning = min(usage.thinking_tokens, usage.output_tokens)
        return (
            (usage.input_tokens - cached) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + (usage.output_tokens - reasoning) * self.output
            + reasoning * (self.output if self.reasoning is None else self.reasoning)
            + requests * self.request
        )


FREE = Price(0.0, 0.0)


@dataclass
class CostLimit:
    """The US dollars that a command may spend, and has spent; its runs share one.

    ``dearest`` is the cost of its dearest answer so far.
    """

    limit: float = DEFAULT_MAX_COST
    spent: float = 0.0
    dearest: float = 0.0


class CostLimitReached(Incomplete):
    """The next request could pass the cost limit."""


def cost_limit_for(spec: Spec, model: ModelInfo) -> CostLimit:
    """Return the limit that the spec sets, or else the default.

    Raises:
        InvalidInput: if the user set a limit and the price of the model is unknown.
    """
    if spec.max_cost is None:
        return CostLimit()
    if not price_for(spec, model):
        raise InvalidInput(
            f"a cost limit needs a price, but the price of {model.name} is unknown; give it with "
            "--price IN,OUT in dollars per million tokens, or limit the run with -n instead"
        )
    return CostLimit(spec.max_cost)


def price_for(spec: Spec, model: ModelInfo) -> Price | None:
    """Return the price that the spec sets, or else the model's list price; None if unknown."""
    if spec.price:
        return Price(*(float(dollars) / MILLION for dollars in spec.price))
    return FREE if model.is_local else _list_price(model)


def _list_price(model: ModelInfo) -> Price | None:
    """Return the price in the offline list of ``genai-prices``; None if it is not listed."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price  # takes half a second to import

    query: dict[str, Any] = dict(model.price_query)

    def dollars(*kinds: str) -> float:
        tokens = Tokens(**dict.fromkeys(kinds, _TOKENS_PRICED))
        return float(calc_price(tokens, **query).total_price)

    try:
        request = dollars()
        given, written, cached, reasoning = (
            (dollars(*kinds) - request) / _TOKENS_PRICED
            for kinds in (
                ("input_tokens",),
                ("output_tokens",),
                ("input_tokens", "cache_read_tokens"),
                ("output_tokens", "output_reasoning_tokens"),
            )
        )
    except LookupError:
        return None
    return Price(given, written, request, cached, reasoning)


def unknown_price_note(model: ModelInfo) -> str:
    """Say that the price list does not have a model."""
    return (
        f"{model.name} is not in the price list, so its cost is unknown and not limited; set "
        "--price IN,OUT"
    )


def is_counted(answer: Answer) -> bool:
    """Whether the provider counted the tokens of an answer.

    Every prompt has input tokens, and every answer with text or reasoning has output tokens.
    """
    usage = answer.usage
    if not usage.output_tokens and (answer.text or answer.has_reasoning):
        return False
    return usage.input_tokens > 0


def rough_usage(messages: tuple[Message, ...], answer: Answer) -> Usage:
    """Return about as many tokens as a question and its answer have, by their characters."""
    reasoning = round(len(answer.reasoning) / CHARACTERS_PER_TOKEN)
    reply = round(len(answer.text) / CHARACTERS_PER_TOKEN)
    return Usage(rough_tokens(messages), reply + reasoning, reasoning)


def rough_tokens(messages: tuple[Message, ...]) -> int:
    """Return about as many tokens as messages have.

    Tokenizers separate letters and digits, so every character of a move is a token.
    """
    words = [word for message in messages for word in message.content.split()]
    moves = [word for word in words if any(map(str.isdigit, word))]
    prose = sum(len(word) + 1 for word in words) - sum(len(move) + 1 for move in moves)
    of_prose = round(prose / CHARACTERS_PER_TOKEN)
    return sum(map(len, moves)) + of_prose + TURN_TOKENS * len(messages)
