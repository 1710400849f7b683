"""Cost of a run: projected from its first answers, approved by the user, and at the end."""

from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from ..client.budget import FREE, Price
from ..client.client import Client
from ..client.pricing import rate_for
from ..client.session import create_model, model_info, open_client
from ..datasets.pools import positions_for
from ..datasets.storage import Dataset, is_own
from ..errors import Incomplete
from ..formatting import dollars
from ..interrupts import run_interruptible
from ..progress import progress_display
from ..providers.base import Answer, ModelInfo, Usage
from ..providers.request_variants import limit_of
from ..task.spec import Spec, plan_for
from ..task.types import Plan, Sample, answers_of
from .dry_run import forecast_with_cache
from .forecast import cheaper_than, cost
from .tokens import RequestStep, lengths_of

# Answers needed to tell whether more are affordable, and to project the cost of a run.
MIN_ANSWERS, ENOUGH_ANSWERS = 5, 20
# Maximum cost of getting from the first number of answers to the second, as a share of the limit.
MAX_PROBE_SHARE = 0.2


class NeedsApproval(Incomplete):
    """The forecast exceeds what may be spent without approval."""


class CostItem(NamedTuple):
    """Remaining requests, and their expected cost in US dollars."""

    questions: int
    dollars: float


class CostForecast(NamedTuple):
    """Expected cost of the rest of a run: to select its positions, and to measure them."""

    finding: CostItem
    measuring: CostItem


async def forecast_cost(
    spec: Spec, plan: Plan, client: Client, *, quiet: bool, may_ask: bool = True
) -> CostForecast | None:
    """Forecast the cost of a run; sends a few of its requests first, unless answers are cached.

    Returns None without sending anything if a cost limit is set, the price is unknown, or the model
    is free. New answers are cached.
    """
    price, limit = _price_to_approve(spec, client.model.info), spec.ask_above
    if not price or limit is None:
        return None
    forecast = forecast_with_cache(spec, plan, client.model.info, client.cache)
    for wanted, max_cost in ((MIN_ANSWERS, inf), (ENOUGH_ANSWERS, MAX_PROBE_SHARE * limit)):
        step = forecast.next_step
        probe = replace(step, to_ask=step.to_ask[: max(0, wanted - step.answered)])
        if not may_ask or _cost(spec, probe, probe, client.model.info, price) > max_cost:
            break
        if probe.to_ask:
            with progress_display(f"the first answers of {client.model.info.name}", quiet=quiet):
                await _ask(probe, client)
            forecast = forecast_with_cache(spec, plan, client.model.info, client.cache)
    steps = forecast.dataset, forecast.measuring
    finding, measuring = (
        CostItem(len(step.to_ask), _cost(spec, step, other, client.model.info, price))
        for step, other in (steps, steps[::-1])
    )
    return CostForecast(finding, measuring)


def forecast_cost_of_spec(spec: Spec, *, quiet: bool, may_ask: bool) -> CostForecast | None:
    """Forecast the cost of a run that has not started; raises the same errors as the run."""
    if not _price_to_approve(spec, model_info(spec)):
        return None
    positions_for(spec, quiet=quiet)  # mines the pool on first use
    model = create_model(spec)
    plan = plan_for(spec, model.info)

    async def forecast() -> CostForecast | None:
        async with open_client(spec, model) as client:
            return await forecast_cost(spec, plan, client, quiet=quiet, may_ask=may_ask)

    return run_interruptible(forecast(), cached=not spec.fresh)


def require_approval(
    finding: Sequence[CostItem], measuring: Sequence[CostItem], specs: Sequence[Spec]
) -> None:
    """Stop if the forecast for all specs exceeds their common limit without approval.

    Raises:
        NeedsApproval: if it does; the message suggests options that make all specs cheaper.
    """
    items = [*finding, *measuring]
    questions, total = sum(item.questions for item in items), sum(item.dollars for item in items)
    above = specs[0].ask_above
    if above is None or total <= above:
        return
    searches, measures = any(item.questions > 1 for item in finding), bool(measuring)
    first, *others = (cheaper_than(spec, searches=searches, measures=measures) for spec in specs)
    cheaper = ", ".join(option for option in first if all(option in other for other in others))
    hint = f"cheaper: {cheaper}; " if cheaper else ""
    raise NeedsApproval(
        f"the remaining {questions:,} requests will cost about {dollars(total)} by the first "
        f"answers, above the {dollars(above)} limit of --ask-above; {hint}to continue, set "
        "--max-cost USD" + ("" if specs[0].fresh else "; all answers are saved")
    )


def _price_to_approve(spec: Spec, model: ModelInfo) -> Price | None:
    """Return the price, or None if it is unknown, zero, or the user has set a limit."""
    price = rate_for(spec, model)
    return None if price == FREE or spec.max_cost is not None or spec.ask_above is None else price


async def _ask(step: RequestStep, client: Client) -> None:
    """Send the requests and cache the answers; the run will retry failures and report them."""
    async with aclosing(client.answers(step.to_ask, step.settings)) as answers:
        async for _ in answers:
            pass


def _cost(
    spec: Spec, step: RequestStep, other: RequestStep, info: ModelInfo, price: Price
) -> float:
    """Compute the cost from the tokens so far, or the maximum cost if tokens were not counted."""
    if not step.kept and not other.kept:
        limit = limit_of(step.variant, step.settings)
        return sum(price.max_cost(request.question, limit) for request in step.to_ask)
    lengths = lengths_of(spec, info, step, other)
    return max(
        cost(len(step.to_ask), lengths, tokens.most, info, price)
        for tokens in lengths.answer.values()
    )


@dataclass(frozen=True)
class Cost:
    """Cost in US dollars at list prices; None if the price is unknown or tokens were not counted.

    Attributes:
        measuring: of all answers of the samples, including cached ones.
        dataset: of all requests that built the dataset, including cached ones.
        spent: of the requests that this command itself sent; cached answers cost nothing.
    """

    measuring: float | None = None
    dataset: float | None = None
    spent: float | None = None


def cost_of(
    price: Price | None,
    client: Client,
    dataset: Dataset,
    samples: Sequence[Sample],
    versions: Collection[str],
) -> Cost:
    """Return the cost of a run at this price, if these versions answered."""
    if not price:
        return Cost()
    used, n_answers, counted = Usage(), 0, True
    for answer in answers_of(samples):
        if not answer.error:
            used, n_answers = used + answer.usage, n_answers + 1
            counted &= price.is_metered(answer)
    own = is_own(dataset, versions, client.model.info.endpoint)
    dataset_metered = own and price.is_metered(Answer(usage=dataset.usage))
    return Cost(
        measuring=price.of(used, n_answers) if counted else None,
        dataset=price.of(dataset.usage, dataset.asked)
        if dataset.asked and dataset_metered
        else None,
        spent=client.meter.spent,
    )
