"""What an answer costs, and how much a command may spend: a limit stops it."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

from ..errors import Interrupted, InvalidInput
from ..formatting import dollars
from ..habits.base import Message
from ..providers.base import Answer, ModelInfo, Request, Usage, add_costs
from ..task.spec import Spec

MILLION = 1_000_000
# Number of tokens to price at once: far below where long prompts cost more.
_TOKENS_PRICED = 1000
# Dollars that a command may spend if the user sets no limit.
DEFAULT_MAX_COST = 5.0
# Between English prose and moves, whose characters are tokens.
CHARACTERS_PER_TOKEN = 3
# Tokens that a chat template adds per message: two markers, the role, a line break.
TURN_TOKENS = 4


@dataclass(frozen=True)
class Price:
    """US dollars per input token and per output token."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """Return the cost of an answer."""
        return usage.input_tokens * self.input + usage.output_tokens * self.output


FREE = Price(0.0, 0.0)


@dataclass
class CostLimit:
    """The US dollars that a command may spend, and has spent; its runs share one.

    ``dearest`` is the cost of the dearest answer of the present run so far, new or cached.
    """

    limit: float = DEFAULT_MAX_COST
    spent: float = 0.0
    dearest: float = 0.0

    def __str__(self) -> str:
        return f"the limit of {dollars(self.limit)} with {dollars(self.spent)} spent"


class CostLimitReached(Interrupted):
    """The next request could pass the cost limit."""


def cost_limit_for(spec: Spec, model: ModelInfo) -> CostLimit:
    """Return the limit that the spec sets, or else the default.

    Raises:
        InvalidInput: if the user set a limit and the price of the model is unknown.
    """
    if spec.max_cost is None:
        return CostLimit()
    if not price_for(spec, model):
        raise InvalidInput(f"{unknown_price_note(model)}, or limit the run with -n instead")
    return CostLimit(spec.max_cost)


def price_for(spec: Spec, model: ModelInfo) -> Price | None:
    """Return the price that the spec sets, or else the model's list price; None if unknown."""
    if spec.price:
        return Price(*(float(price) / MILLION for price in spec.price))
    return FREE if model.is_local else _list_price(model)


def _list_price(model: ModelInfo) -> Price | None:
    """Return the price in the offline list of ``genai-prices``; None if it is not listed."""
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price  # takes half a second to import

    query: dict[str, Any] = dict(model.price_query)
    tokens = Tokens(input_tokens=_TOKENS_PRICED, output_tokens=_TOKENS_PRICED)
    try:
        price = calc_price(tokens, **query)
    except LookupError:
        return None
    given, written = float(price.input_price), float(price.output_price)
    return Price(given / _TOKENS_PRICED, written / _TOKENS_PRICED)


def unknown_price_note(model: ModelInfo) -> str:
    """Say that no limit holds for a model, and what to do."""
    return f"the price of {model.name} is unknown, so nothing limits its cost; set --price IN,OUT"


class Spending:
    """Pays for answers, within the limit of a command.

    Attributes:
        limit: what the command may spend, and has spent.
        total: the dollars that this client spent; None if unknown.
    """

    def __init__(self, limit: CostLimit, price: Price | None) -> None:
        self.limit = limit
        self.limit.dearest = 0.0  # the model of an earlier run may have been dearer
        self.total: float | None = None if price is None else 0.0
        self._price = price

    def check(self, in_flight: int) -> None:
        """Stop if so many answers, at the dearest so far, pass the limit.

        Raises:
            CostLimitReached: if they do.
        """
        if self.limit.spent + in_flight * self.limit.dearest > self.limit.limit:
            resume = "To continue, run the same command with a higher --max-cost"
            raise CostLimitReached(f"stopped at {self.limit}", resume)

    def affordable_answers(self) -> float:
        """Return how many more answers are affordable, but at least one: `check` judges that."""
        if not self.limit.dearest:
            return inf
        return max(1.0, (self.limit.limit - self.limit.spent) / self.limit.dearest)

    def paid(self, request: Request, answer: Answer) -> Answer:
        """Pay for an answer, and return it with its cost, if its tokens are counted."""
        is_known = is_counted(answer) or self._price == FREE
        usage = answer.usage if is_known else rough_usage(request.question.messages, answer)
        cost = self._cost_of(usage)
        self._pay(cost)
        if is_known:
            return replace(answer, cost=cost if self._price else None)
        self.total = None
        return answer

    def compare(self, cached: Answer) -> None:
        """Compare the cost of a cached answer with the dearest."""
        self.limit.dearest = max(self.limit.dearest, self._cost_of(cached.usage))

    @property
    def facts(self) -> list[str]:
        """What the command has spent, for a progress line; nothing if that is free or unknown."""
        return [f"{dollars(self.limit.spent)} spent"] if self.total else []

    def pay_lost(self) -> None:
        """Pay for an answer that got lost, as much as for the dearest."""
        self._pay(self.limit.dearest)

    def _pay(self, cost: float) -> None:
        self.limit.spent += cost
        self.limit.dearest = max(self.limit.dearest, cost)
        self.total = add_costs(self.total, cost)

    def _cost_of(self, usage: Usage) -> float:
        """Return what an answer costs by its tokens; 0 if the price is unknown."""
        return self._price.of(usage) if self._price else 0.0


def is_counted(answer: Answer) -> bool:
    """Whether the provider counted the tokens of an answer.

    Every prompt has input tokens, and every answer with text or reasoning has output tokens.
    """
    has_output = bool(answer.text or answer.has_reasoning)
    return answer.usage.input_tokens > 0 and (answer.usage.output_tokens > 0 or not has_output)


def rough_usage(messages: tuple[Message, ...], answer: Answer) -> Usage:
    """Return about as many tokens as a question and its answer have, by their characters."""
    characters = len(answer.text) + len(answer.reasoning)
    return Usage(rough_tokens(messages), characters // CHARACTERS_PER_TOKEN)


def rough_tokens(messages: tuple[Message, ...]) -> int:
    """Return about as many tokens as messages have."""
    characters = sum(len(message.content) for message in messages)
    return characters // CHARACTERS_PER_TOKEN + TURN_TOKENS * len(messages)
