"""Cost of a run: projected from its first answers, approved by the user, and in the end."""

from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from ..client.budget import FREE, Price, is_counted
from ..client.client import Client
from ..client.pricing import rate_for
from ..client.session import create_model, model_info, open_client
from ..datasets.pools import positions_for
from ..datasets.storage import Dataset, is_own
from ..errors import Incomplete
from ..interrupts import run_interruptible
from ..progress import progress_display
from ..providers.base import Answer, ModelInfo, Usage
from ..providers.request_variants import limit_of
from ..task.spec import Spec, plan_for
from ..task.types import Plan, Sample, answers_of
from .forecast import RequestForecast, cheaper_than, cost, foreseen_by
from .tokens import RequestStep, lengths_of


class RunningCost:
    """The questions and the cost of a run, by its answers so far, kept ones among them.

    Attributes:
        a_sample: how many questions a position takes once it is found.
        beyond: how many positions a run usually takes after those that are measured now.
    """

    def __init__(self, price: Price | None, a_sample: int) -> None:
        self.a_sample = a_sample
        self.beyond = 0
        self._price = price
        self._seen = 0
        self._used = Usage()
        self._counted = True

    def see(self, answer: Answer) -> None:
        """Count an answer."""
        self._seen += 1
        self._used += answer.usage
        self._counted &= bool(answer.error) or is_counted(answer)

    def after(self, dataset: Dataset) -> float:
        """The questions about those positions, to find them and to measure them."""
        each = (dataset.asked or 0) / len(dataset.positions) + self.a_sample
        return max(0, self.beyond) * each

    def in_all(self, to_come: float) -> str:
        """How far a run has come to which so many questions are still to come, and its cost."""
        total = self._seen + to_come
        asked = f"{self._seen:,} of about {total:,.0f} asked"
        return ", ".join(filter(None, (asked, self.cost_of(total))))

    def cost_of(self, questions: float) -> str:
        """What so many questions cost in the mean; in tokens, if nobody knows their price.

        Nothing is said where it is free, or where the tokens were not counted.
        """
        if self._price == FREE or not self._seen or not self._counted:
            return ""
        share = questions / self._seen
        if self._price:
            return f"${share * self._price.of(self._used, self._seen):,.2f}"
        return f"{share * (self._used.input_tokens + self._used.output_tokens):,.0f} tokens"


MIN_ANSWERS, ENOUGH_ANSWERS = 5, 20
"""So many answers tell whether more can be afforded, and so many what a run will cost."""
MOST_TO_LEARN = 0.2
"""What the others of these answers may cost, as a share of the limit."""


class NeedsApproval(Incomplete):
    """What is to come costs more than may be spent without a word."""


class CostItem(NamedTuple):
    """Questions that are still to be asked, and what they will cost in US dollars."""

    questions: int
    dollars: float


class CostForecast(NamedTuple):
    """What is still to come of a run: to find its positions, and to measure them."""

    finding: CostItem
    measuring: CostItem


async def bill_for(
    spec: Spec, plan: Plan, asking: Client, *, quiet: bool, may_ask: bool = True
) -> CostForecast | None:
    """Ask a few questions of a run, if none were yet, and say what the others will cost.

    The answers are kept. None, and nothing is asked, where there is a limit already, where the
    price is unknown, or where asking is free.
    """
    price, limit = _price_to_tell(spec, asking.model), spec.ask_above
    if not price or limit is None:
        return None
    foreseen = foreseen_by(spec, plan, asking.model, asking.cache)
    for enough, most in ((MIN_ANSWERS, inf), (ENOUGH_ANSWERS, MOST_TO_LEARN * limit)):
        part = foreseen.next_step
        first = replace(part, to_ask=part.to_ask[: max(0, enough - part.answered)])
        if not may_ask or _cost(spec, first, first, asking.model, price) > most:
            break
        if first.to_ask:
            with progress_display(f"the first answers of {asking.model.name}", quiet=quiet):
                await _ask(first, asking)
            foreseen = foreseen_by(spec, plan, asking.model, asking.cache)
    return _bill(spec, foreseen, asking.model, price)


def bill_of(spec: Spec, *, quiet: bool, may_ask: bool) -> CostForecast | None:
    """The same of a run that is still to begin; raises what that does."""
    if not _price_to_tell(spec, model_info(spec)):
        return None
    positions_for(spec, quiet=quiet)  # a pool is mined when first wanted
    model = create_model(spec)
    plan = plan_for(spec, model)

    async def billed() -> CostForecast | None:
        async with open_client(spec, model) as asking:
            return await bill_for(spec, plan, asking, quiet=quiet, may_ask=may_ask)

    return run_interruptible(billed(), kept=not spec.fresh)


def require_approval(
    finding: Sequence[CostItem], measuring: Sequence[CostItem], specs: Sequence[Spec]
) -> None:
    """Stop before more is spent than may be without a word, which is the same in all specs.

    Raises:
        NeedsApproval: if all of them together cost more; it says what is cheaper for all specs.
    """
    dues = [*finding, *measuring]
    questions, total = sum(due.questions for due in dues), sum(due.dollars for due in dues)
    above = specs[0].ask_above
    if above is None or total <= above:
        return
    searches, measures = any(due.questions > 1 for due in finding), bool(measuring)
    first, *others = (cheaper_than(each, searches=searches, measures=measures) for each in specs)
    cheaper = ", ".join(option for option in first if all(option in other for other in others))
    hint = f"cheaper: {cheaper}; " if cheaper else ""
    raise NeedsApproval(
        f"by its first answers, what is still to come costs about ${total:,.2f} ({questions:,} "
        f"questions), more than the ${above:g} of --ask-above; {hint}--max-cost USD goes on within "
        "that limit" + ("" if specs[0].fresh else "; all answers are saved")
    )


def _price_to_tell(spec: Spec, model: ModelInfo) -> Price | None:
    """The price, unless it is unknown, or nothing, or the user has set a limit."""
    price = rate_for(spec, model)
    return None if price == FREE or spec.max_cost is not None or spec.ask_above is None else price


async def _ask(part: RequestStep, asking: Client) -> None:
    """Ask and keep the answers; what fails is for the run to tell, which asks it again."""
    async with aclosing(asking.answers(part.to_ask, part.settings)) as answers:
        async for _ in answers:
            pass


def _bill(spec: Spec, foreseen: RequestForecast, known: ModelInfo, price: Price) -> CostForecast:
    parts = foreseen.dataset, foreseen.measuring
    return CostForecast(
        *(
            CostItem(len(part.to_ask), _cost(spec, part, other, known, price))
            for part, other in (parts, parts[::-1])
        )
    )


def _cost(
    spec: Spec, part: RequestStep, other: RequestStep, known: ModelInfo, price: Price
) -> float:
    """By the tokens of the answers so far; where those are not counted, the most it may be."""
    if not part.kept and not other.kept:
        limit = limit_of(part.form, part.settings)
        return sum(price.max_cost(ask.question, limit) for ask in part.to_ask)
    lengths = lengths_of(spec, known, part, other)
    return max(
        cost(len(part.to_ask), lengths, tokens.most, known, price)
        for tokens in lengths.answer.values()
    )


@dataclass(frozen=True)
class Cost:
    """US dollars by the price list; None where there is no price, or tokens were not counted.

    Attributes:
        measuring: of all answers of the samples, whenever they were asked.
        dataset: of all questions asked to find the dataset, whenever they were asked.
        spent: of what this command itself asked; answers kept from before cost nothing new.
    """

    measuring: float | None = None
    dataset: float | None = None
    spent: float | None = None


def cost_of(
    price: Price | None,
    asking: Client,
    dataset: Dataset,
    samples: Sequence[Sample],
    versions: Collection[str],
) -> Cost:
    """What a run cost at that price, as far as tokens were counted, if these versions answered."""
    if not price:
        return Cost()
    used, paid, counted = Usage(), 0, True
    for answer in answers_of(samples):
        if not answer.error:
            used, paid = used + answer.usage, paid + 1
            counted &= price.is_metered(answer)
    own = is_own(dataset, versions, asking.model.endpoint)
    found = own and price.is_metered(Answer(usage=dataset.usage))
    return Cost(
        measuring=price.of(used, paid) if counted else None,
        dataset=price.of(dataset.usage, dataset.asked) if dataset.asked and found else None,
        spent=asking.meter.spent,
    )
