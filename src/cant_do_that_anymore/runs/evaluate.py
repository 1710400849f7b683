"""Evaluate one model: select its dataset, ask every condition, compute the results.

Read top to bottom, this is the story of the evaluation: see that the model is still the one whose
answers are kept, learn its exact version, find or build its dataset, draw samples, ask each
position under every condition, judge, compute. A run that is to be of some precision does so with
more and more samples until it is.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from ..client.budget import Budget
from ..client.client import Client
from ..client.pricing import rate_for, searches_whole_pool
from ..client.session import create_model, open_client
from ..costs.approval import RunningCost, cost_of, forecast_cost, require_approval
from ..datasets.pools import Pool, given_dataset, positions_drawn, positions_for
from ..datasets.search import SelectionConfig
from ..datasets.selection import dataset_for, find_controls, find_dataset, version_of
from ..datasets.storage import Dataset, notes_on_dataset
from ..errors import Interrupted
from ..game.position import Position
from ..interrupts import run_interruptible
from ..metrics.compute import compute
from ..metrics.notes import notes_on, on_moved_alias, version_of_all, versions_of
from ..metrics.stopping import expected_sample_size, is_reached, on_precision, stages
from ..progress import progress, status_callback
from ..providers.base import Model, Request
from ..providers.local import progress_listener
from ..task.conditions import ASKED_OF_CONTROLS
from ..task.quality_guard import QualityGuard
from ..task.samples import Trial, trials_for
from ..task.spec import Spec, plan_for
from ..task.spill import spill_file
from ..task.types import Condition, Plan, Sample
from .identity_check import save_fingerprint, verify_identity, verify_identity_in
from .results import Run

log = logging.getLogger(__name__)

KEPT = "every answer was kept from an earlier run; another seed asks anew"


def evaluate(
    spec: Spec, model: Model | None = None, *, quiet: bool = False, purse: Budget | None = None
) -> Run:
    """Measure a model: the one that the spec names, unless another is given.

    Every answer is kept under ``CDTA_HOME``: a run that was stopped in any way asks nothing twice
    when it is started again. Several runs may share a purse.

    Raises:
        InvalidInput: if the spec cannot work.
        Incomplete: if the run was stopped or too many answers are missing.
        UserError: if the model cannot be reached, or answers cannot be saved.
    """
    model = model or create_model(spec)
    plan, at_hand = plan_for(spec, model), positions_for(spec, quiet=quiet)
    work = _run(spec, plan, at_hand, model, quiet=quiet, purse=purse)
    return run_interruptible(work, kept=not spec.fresh)


@dataclass(frozen=True)
class Selection:
    """What a run is about: a dataset, the positions drawn of it, and in a diagnosis controls."""

    dataset: Dataset
    positions: Sequence[Position]
    controls: Sequence[Position]


def select(spec: Spec, model: Model | None = None, *, quiet: bool = False) -> Selection:
    """Find or build a model's dataset without measuring; takes and raises what `evaluate` does."""
    model = model or create_model(spec)
    plan, at_hand = plan_for(spec, model), positions_for(spec, quiet=quiet)

    async def chosen() -> Selection:
        async with open_client(spec, model) as asking:
            await verify_identity(spec, plan, at_hand, asking, quiet=quiet)
            return await select_async(spec, plan, at_hand, asking, billed=plan, quiet=quiet)

    return run_interruptible(chosen(), kept=not spec.fresh)


async def select_async(
    spec: Spec, plan: Plan, at_hand: Dataset | Pool, asking: Client, *, billed: Plan, quiet: bool
) -> Selection:
    """The same within a loop that runs; before, what the billed plan costs to find is checked."""
    if bill := await forecast_cost(spec, billed, asking, quiet=quiet):
        require_approval([bill.finding], [], [spec])
    outlook = RunningCost(rate_for(spec, asking.model), 0)
    return await _chosen(spec, plan, at_hand, asking, outlook, quiet=quiet)


async def _run(
    spec: Spec,
    plan: Plan,
    at_hand: Dataset | Pool,
    model: Model,
    *,
    quiet: bool,
    purse: Budget | None,
) -> Run:
    started, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    async with open_client(spec, model, purse) as asking:
        changes = await verify_identity(spec, plan, at_hand, asking, quiet=quiet)
        # Whoever gives a purse knows what it is for.
        if not purse and (bill := await forecast_cost(spec, plan, asking, quiet=quiet)):
            require_approval([bill.finding], [bill.measuring], [spec])
        a_sample = len(plan.conditions) + (len(ASKED_OF_CONTROLS) if spec.diagnose else 0)
        price = rate_for(spec, model)
        for stage in stages(plan):  # what was asked in one is kept for the next
            outlook = RunningCost(price, a_sample)
            chosen = await _chosen(spec, stage, at_hand, asking, outlook, quiet=quiet)
            drawn = replace(chosen.dataset, positions=list(chosen.positions))
            changes += await verify_identity_in(drawn, spec, plan, asking, quiet=quiet)
            outlook.beyond = expected_sample_size(plan.precision, plan.wanted) - len(
                chosen.positions
            )
            everything = await _measured(asking, chosen, plan, outlook, quiet=quiet)
            dataset, n = chosen.dataset, len(chosen.positions)
            samples, controls = everything[:n], everything[n:]
            if n < stage.wanted or is_reached(samples, plan):
                break
        await save_fingerprint(asking)
    _check_failures("samples", samples, spec.max_error_rate)
    _check_failures("controls", controls, spec.max_error_rate)
    results, versions = compute(samples, plan, controls), versions_of(everything)
    return Run(
        model=model.name,
        version=version_of_all(versions, model.name),
        endpoint=model.endpoint,
        identity=dict(model.identity),
        plan=plan,
        dataset=dataset,
        samples=samples,
        results=results,
        notes=[
            *changes,
            *on_precision(n, results, plan),
            *notes_on(samples, results, plan, controls),
            *([] if spec.dataset else on_moved_alias(dataset, versions)),
            *notes_on_dataset(dataset),
            *([] if asking.asked else [KEPT]),
        ],
        started_at=started_at,
        seconds=round(time.monotonic() - started, 2),
        cost=cost_of(price, asking, dataset, everything, versions),
        controls=controls,
        kept=not spec.fresh,
    )


async def _chosen(
    spec: Spec,
    plan: Plan,
    at_hand: Dataset | Pool,
    asking: Client,
    outlook: RunningCost,
    *,
    quiet: bool,
) -> Selection:
    if isinstance(at_hand, Dataset):
        return Selection(at_hand, positions_drawn(at_hand, spec, plan), [])
    criteria = SelectionConfig(asking.model, at_hand, plan)
    dataset = await _dataset(spec, criteria, asking, outlook, quiet=quiet)
    positions = positions_drawn(dataset, spec, plan)
    controls = await find_controls(dataset, positions, criteria, asking) if spec.diagnose else []
    return Selection(dataset, positions, controls)


async def _dataset(
    spec: Spec, criteria: SelectionConfig, asking: Client, outlook: RunningCost, *, quiet: bool
) -> Dataset:
    version = await version_of(asking, criteria, quiet=quiet)
    if not spec.fallback_dataset:
        patient = searches_whole_pool(spec, asking.model)
        return await dataset_for(
            asking,
            version,
            criteria,
            outlook,
            hoped=expected_sample_size(spec.precision, spec.to_draw),
            patient=patient,
            quiet=quiet,
            fresh=spec.fresh,
        )
    if found := find_dataset(version, criteria):
        return found
    log.warning("%s has no dataset; that of %s is taken instead", version, spec.fallback_dataset)
    return given_dataset(spec.fallback_dataset, criteria.plan.change)


async def _measured(
    asking: Client, chosen: Selection, plan: Plan, outlook: RunningCost, *, quiet: bool
) -> list[Sample]:
    """Ask every position under every condition and judge the answers; controls come last."""
    samples: list[Sample] = []
    watch, place = QualityGuard(plan.settings), spill_file()
    asked = trials_for(chosen.positions, chosen.controls, plan)
    to_come = sum(len(conditions) for _, conditions in asked) + outlook.after(chosen.dataset)
    asks = (ask for draw, conditions in asked for ask in _asks(draw, asking, plan, conditions))
    person = progress_listener(asking.model)
    what = "measuring your habits" if person else f"measuring {asking.model.name}"
    with progress(what, len(asked), quiet=quiet, to=person) as advance:
        async with aclosing(
            asking.answers(asks, plan.settings, on_status=status_callback(advance))
        ) as answers:
            for draw, conditions in asked:
                replies = [await anext(answers) for _ in conditions]
                sample = draw.sample(replies, conditions, plan.reading)
                for name, answer in sample.answers.items():
                    usable, baseline = sample.replies[name].usable, name == plan.baseline.name
                    watch.see(answer, usable=usable, baseline=baseline)
                    outlook.see(answer)
                samples.append(replace(sample, said=place.spill(sample.answers)))
                to_come -= len(conditions)
                advance(remark=partial(outlook.in_all, to_come))
    return samples


def _asks(
    draw: Trial, asking: Client, plan: Plan, conditions: Sequence[Condition]
) -> list[Request]:
    """The questions of a sample; all of them anew if a smaller limit has cut off one before."""
    asks = list(draw.requests(conditions))
    same_limit_only = asking.cache.had_truncation(asks, plan.settings)
    return [replace(ask, same_limit_only=True) for ask in asks] if same_limit_only else asks


def _check_failures(what: str, samples: Sequence[Sample], most: float) -> None:
    failed = [sample for sample in samples if not sample.answered]
    if len(failed) > most * len(samples):
        errors = (answer.error for answer in failed[0].answers.values())
        first = next(filter(None, errors))
        why = f"{len(failed)} of {len(samples)} {what} have no answer (the first: {first})"
        raise Interrupted(why, "the others are saved")
