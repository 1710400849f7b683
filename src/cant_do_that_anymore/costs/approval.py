"""Approval of a run's cost before it is spent, and the cost of a finished run."""

import logging
from collections.abc import Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from math import ceil, floor, log10
from statistics import fmean

from ..client.budget import NOTHING, Budget, BudgetExceeded, Meter, RunningCost
from ..client.client import Client
from ..client.pricing import FREE, pricing_for
from ..client.session import create_model, model_info, open_client
from ..datasets.pools import positions_for
from ..datasets.selection import PROBED_POSITIONS
from ..datasets.storage import Dataset, belongs_to
from ..errors import InvalidInput, NeedsApproval
from ..formatting import between, dollars, pluralize
from ..interrupts import run_interruptible
from ..progress import progress_display
from ..providers.base import Answer, ModelInfo, add_costs
from ..task.plan import plan_for
from ..task.spec import Spec
from ..task.types import Plan, Sample, answers_of
from .dry_run import PROBES, remaining
from .forecast import Figures, Forecast, forecast

log = logging.getLogger(__name__)

# Answers that tell whether more are affordable before the cost is approved.
MIN_ANSWERS = 5
# A limit is refused if the low end of the forecast is this many times as much.
REFUSAL_FACTOR = 2
# A new forecast is shown if it is so many times the high end of the one before.
FORECAST_WARNING_FACTOR = 1.2
# So few samples are not worth suggesting.
MIN_SAMPLES = 10
# Maximum cost of the first requests, as a share of what may be spent without approval.
MAX_PROBE_SHARE = 0.2


async def require_approval(spec: Spec, plan: Plan, client: Client, *, quiet: bool) -> None:
    """Forecast a run, and stop if its cost may exceed what the user has approved.

    Args:
        spec: the run.
        plan: its plan, which may end with the dataset.
        client: sends a few requests of the run first, unless their answers are cached.
        quiet: whether to hide the progress.

    Raises:
        NeedsApproval: if the cost may exceed ``ask_above``, and no limit is set.
        InvalidInput: if the limit is certainly too low.
    """
    if _has_limit(spec, client.model.info):
        result = await _with_probes(spec, plan, client, quiet=quiet)
        check_approval(result.total, spec, client.meter.budget, result.cheaper)


def follow_cost(spec: Spec, plan: Plan, client: Client, per_sample: int) -> RunningCost:
    """Follow the cost of a run; forecast the rest again when it will exceed the forecast."""

    def forecast_again(change: str) -> None:
        result = forecast(spec, plan, client.model.info, client.cache)
        check_approval(result.total, spec, client.meter.budget, result.cheaper, change)

    return RunningCost(per_sample, client.meter, forecast_again)


def _has_limit(spec: Spec, info: ModelInfo) -> bool:
    """Whether the run costs something that is known, and has a limit or asks for approval."""
    pricing = pricing_for(spec, info)
    limited = spec.max_cost is not None or spec.ask_above is not None
    return limited and pricing is not None and pricing.dearest != FREE


async def _with_probes(
    spec: Spec, plan: Plan, client: Client, *, quiet: bool, like: Forecast | None = None
) -> Forecast:
    """Forecast a run with a limit; sends a few of its requests first, unless answers are cached.

    The last of them measure the first positions found, since a model may reason longer under the
    changed rules. Nothing is sent if the model answered for another run that is like this one.
    """
    run = spec, plan, client.model.info, client.cache
    limit = (spec.ask_above if spec.max_cost is None else spec.max_cost) or 0.0
    result = forecast(*run, like)
    low = result.total.dollars.low if result.total.dollars else 0.0
    is_refused = spec.max_cost is not None and low > REFUSAL_FACTOR * spec.max_cost
    if like or (is_refused and not result.at_once):
        return result  # no first answers are needed to tell
    price = client.meter.pricing.dearest if client.meter.pricing else FREE
    for wanted in (MIN_ANSWERS, PROBES, None):
        rest = remaining(*run)
        step = rest.dataset if rest.dataset.unanswered and wanted else rest.measuring
        missing = (wanted or PROBED_POSITIONS * rest.per_sample) - step.answered
        probes = step.unanswered[: min(PROBES, max(0, missing))]
        cost = sum(
            price.max_cost(probe.question, probe.settings(step.settings), step.variant)
            for probe in probes
        )
        if used := rest.dataset.used + rest.measuring.used:  # what other answers will cost
            cost = len(probes) * fmean(price.of(usage, 1) for _, usage in used)
        if step.answered + rest.dataset.answered and cost > MAX_PROBE_SHARE * limit:
            break
        if probes:
            title = f"the first answers of {client.model.info.name}"
            # The forecast says what would be enough. The run will retry failures and report them.
            with progress_display(title, quiet=quiet), suppress(BudgetExceeded):
                async with aclosing(client.answers(probes, step.settings)) as answers:
                    async for _ in answers:
                        pass
    return forecast(*run)


def forecast_of_spec(
    spec: Spec, *, quiet: bool, like: Forecast | None, budget: Budget
) -> Forecast | None:
    """Forecast a run that has not started; None if it costs nothing or its price is unknown."""
    if not _has_limit(spec, model_info(spec)):
        return None
    positions_for(spec, quiet=quiet)  # mines the pool on first use
    model = create_model(spec)
    plan = plan_for(spec, model.info)

    async def run() -> Forecast:
        async with open_client(spec, model, budget) as client:
            return await _with_probes(spec, plan, client, quiet=quiet, like=like)

    return run_interruptible(run(), cached=not spec.fresh)


def check_approval(
    figures: Figures, spec: Spec, budget: Budget, cheaper: Sequence[str], change: str | None = None
) -> None:
    """Compare a forecast with the limits of a command; raises as `require_approval`.

    At first, what is spent and the high end of the rest have to be approved. If something changed
    later, what is spent and the expected rest have to be, and a limit that is too low only gets a
    warning.
    """
    cost, requests = (figures.dollars or NOTHING).plus(budget.later), figures.requests
    above, limit, is_first = spec.ask_above, spec.max_cost, change is None
    if not cost.high:
        return  # nothing is left to send
    spent, counts = budget.paid, between(f"{requests.low:,.0f}", f"{requests.high:,.0f}")

    def projected() -> str:
        so_far = f"{budget.spent}{change or ''}; " if budget.paid else ""
        return (
            f"{so_far}the rest will cost {between(dollars(cost.low), dollars(cost.high))}, about "
            f"{dollars(cost.expected)} ({counts} requests)"
        )

    hint = f"; to save money, try {', '.join(cheaper)}" if cheaper else ""
    total = budget.known + (cost.high if is_first else cost.expected)
    earlier, budget.high = budget.high, budget.known + cost.high
    if limit is not None and spent + cost.low > limit:
        affordable = int(spec.n_positions * (limit - spent) / cost.expected)
        is_worthwhile = is_first and not spec.dataset and affordable >= MIN_SAMPLES
        fewer = f", or about -n {affordable} within this limit" if is_worthwhile else ""
        too_little = (
            f"--max-cost {limit:g} is too little to finish: {projected()}; "
            f"--max-cost {_round_up(spent + cost.high):.12g} would be enough{fewer}{hint}"
        )
        if cost.low > REFUSAL_FACTOR * limit and is_first:
            raise InvalidInput(too_little)
        if not budget.warned:
            log.warning(too_little)
        budget.warned = True
    elif limit is None and above is not None and total > above:
        raise NeedsApproval(
            lambda: f"{projected()}, which may exceed the {dollars(above)} of --ask-above{hint}",
            approve=_round_up(1.02 * max(cost.high, 2 * cost.expected)),  # the next has checks, too
            cached=not spec.fresh,
        )
    elif not is_first and total > FORECAST_WARNING_FACTOR * earlier:
        log.warning(projected())


def _round_up(amount: float) -> float:
    """Round an amount up to two digits, or to cents."""
    unit = max(0.01, 10.0 ** (floor(log10(amount)) - 1))
    return ceil(amount / unit) * unit


@dataclass(frozen=True)
class Cost:
    """Cost in US dollars; None if the price is unknown or tokens were not counted.

    Attributes:
        total: all that the result cost: dataset, samples, controls, retries and checks.
        measuring: of all answers of the samples and controls, including cached ones.
        dataset: of all requests that built the dataset, including cached ones.
        spent: of the requests that this command itself sent; cached answers cost nothing.
    """

    total: float | None = None
    measuring: float | None = None
    dataset: float | None = None
    spent: float | None = None


def lost_answer_notes(meter: Meter) -> list[str]:
    """Say how lost answers are counted, if there are any."""
    counted = "; the cost counts each like an answer that arrived" if meter.spent else ""
    lost = f"{pluralize(meter.lost, 'answer')} got lost in transit and may have been billed"
    return [lost + counted] if meter.lost else []


def cost_of(
    client: Client, dataset: Dataset, samples: Sequence[Sample], versions: Collection[str]
) -> Cost:
    """Return the cost of a run if these versions answered."""
    if not (pricing := client.meter.pricing):
        return Cost()
    answers = (answer for answer in answers_of(samples) if not answer.error)
    measuring, finding = add_costs(*map(pricing.of, answers)), None
    built_it = dataset.asked and belongs_to(dataset, versions, client.model.info.endpoint)
    if built_it:
        finding = pricing.of(Answer(usage=dataset.usage, cost=dataset.cost), dataset.asked or 0)
    spent = client.meter.spent
    extra = None if spent is None else max(0.0, spent - client.cost_of_new)
    return Cost(
        add_costs(measuring, finding if built_it else 0.0, extra), measuring, finding, spent
    )
