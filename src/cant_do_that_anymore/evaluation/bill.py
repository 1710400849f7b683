"""No surprise bill: what a run is going to cost, learnt from its first answers."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from math import inf
from typing import NamedTuple

from ..client.budget import FREE, Price
from ..client.client import Client
from ..client.pricing import rate_for
from ..client.session import create_model, model_info, open_client
from ..datasets.pools import positions_for
from ..errors import Incomplete
from ..interrupts import run_interruptible
from ..progress import progress_display
from ..providers.base import ModelInfo
from ..providers.request_variants import limit_of
from ..task.spec import Spec, plan_for
from ..task.types import Plan
from .cheaper import cheaper_than
from .estimate import cost, foreseen_by
from .foresight import Foreseen, Part
from .lengths import lengths_of

FEW, ENOUGH = 5, 20
"""So many answers tell whether more can be afforded, and so many what a run will cost."""
MOST_TO_LEARN = 0.2
"""What the others of these answers may cost, as a share of the limit."""


class TooDear(Incomplete):
    """What is to come costs more than may be spent without a word."""


class Due(NamedTuple):
    """Questions that are still to be asked, and what they will cost in US dollars."""

    questions: int
    dollars: float


class Bill(NamedTuple):
    """What is still to come of a run: to find its positions, and to measure them."""

    finding: Due
    measuring: Due


async def bill_for(
    spec: Spec, plan: Plan, asking: Client, *, quiet: bool, may_ask: bool = True
) -> Bill | None:
    """Ask a few questions of a run, if none were yet, and say what the others will cost.

    The answers are kept. None, and nothing is asked, where there is a limit already, where the
    price is unknown, or where asking is free.
    """
    price, limit = _price_to_tell(spec, asking.model), spec.ask_above
    if not price or limit is None:
        return None
    foreseen = foreseen_by(spec, plan, asking.model, asking.kept)
    for enough, most in ((FEW, inf), (ENOUGH, MOST_TO_LEARN * limit)):
        part = foreseen.next_step
        first = replace(part, to_ask=part.to_ask[: max(0, enough - part.answered)])
        if not may_ask or _cost(spec, first, first, asking.model, price) > most:
            break
        if first.to_ask:
            with progress_display(f"the first answers of {asking.model.name}", quiet=quiet):
                await _ask(first, asking)
            foreseen = foreseen_by(spec, plan, asking.model, asking.kept)
    return _bill(spec, foreseen, asking.model, price)


def bill_of(spec: Spec, *, quiet: bool, may_ask: bool) -> Bill | None:
    """The same of a run that is still to begin; raises what that does."""
    if not _price_to_tell(spec, model_info(spec)):
        return None
    positions_for(spec, quiet=quiet)  # a pool is mined when first wanted
    model = create_model(spec)
    plan = plan_for(spec, model)

    async def billed() -> Bill | None:
        async with open_client(spec, model) as asking:
            return await bill_for(spec, plan, asking, quiet=quiet, may_ask=may_ask)

    return run_interruptible(billed(), kept=not spec.fresh)


def check_dues(finding: Sequence[Due], measuring: Sequence[Due], specs: Sequence[Spec]) -> None:
    """Stop before more is spent than may be without a word, which is the same in all specs.

    Raises:
        TooDear: if all of them together cost more; it says what is cheaper for all specs.
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
    raise TooDear(
        f"by its first answers, what is still to come costs about ${total:,.2f} ({questions:,} "
        f"questions), more than the ${above:g} of --ask-above; {hint}--max-cost USD goes on within "
        "that limit" + ("" if specs[0].fresh else "; all answers are saved")
    )


def _price_to_tell(spec: Spec, model: ModelInfo) -> Price | None:
    """The price, unless it is unknown, or nothing, or the user has set a limit."""
    price = rate_for(spec, model)
    return None if price == FREE or spec.max_cost is not None or spec.ask_above is None else price


async def _ask(part: Part, asking: Client) -> None:
    """Ask and keep the answers; what fails is for the run to tell, which asks it again."""
    async with aclosing(asking.answers(part.to_ask, part.settings)) as answers:
        async for _ in answers:
            pass


def _bill(spec: Spec, foreseen: Foreseen, known: ModelInfo, price: Price) -> Bill:
    parts = foreseen.dataset, foreseen.measuring
    return Bill(
        *(
            Due(len(part.to_ask), _cost(spec, part, other, known, price))
            for part, other in (parts, parts[::-1])
        )
    )


def _cost(spec: Spec, part: Part, other: Part, known: ModelInfo, price: Price) -> float:
    """By the tokens of the answers so far; where those are not counted, the most it may be."""
    if not part.kept and not other.kept:
        limit = limit_of(part.form, part.settings)
        return sum(price.max_cost(ask.question, limit) for ask in part.to_ask)
    lengths = lengths_of(spec, known, part, other)
    return max(
        cost(len(part.to_ask), lengths, tokens.most, known, price)
        for tokens in lengths.answer.values()
    )
