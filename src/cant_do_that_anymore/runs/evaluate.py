"""Evaluate one model: select its dataset, ask every condition, compute the results.

Read top to bottom, `_run` is the story of an evaluation: verify that the model is still the one
whose answers are cached, have the cost approved, find or build its dataset, draw samples, ask about
each position under every condition, score the answers, compute the results.
"""

import logging
import time
from contextlib import aclosing
from dataclasses import replace
from functools import cache, partial

from ..client.budget import Budget, RunningCost
from ..client.client import Client
from ..client.session import create_model, open_client
from ..costs.approval import cost_of, follow_cost, lost_answer_notes, require_approval
from ..datasets.pools import Pool, positions_for
from ..datasets.selection import Selection, select_positions
from ..datasets.storage import Dataset, belongs_to, notes_on_dataset
from ..errors import Interrupted
from ..interrupts import run_interruptible
from ..metrics.compute import compute
from ..metrics.notes import moved_alias_notes, notes_on, version_of_all, versions_of
from ..progress import progress
from ..providers.base import Model
from ..task.conditions import control_conditions
from ..task.plan import plan_for
from ..task.samples import QualityGuard, trials_for
from ..task.spec import Spec
from ..task.types import Plan, Sample, Samples, answers_of
from .identity_check import verify_identity
from .results import ALL_CACHED, Run

log = logging.getLogger(__name__)

MAX_ERROR_RATE = 0.05  # share of samples that may have no answer


def evaluate(
    spec: Spec, model: Model | None = None, *, quiet: bool = False, budget: Budget | None = None
) -> Run:
    """Evaluate a model: the one that the spec names, unless another is given.

    Every answer is cached under ``CDTA_HOME``, so a run that was interrupted in any way sends no
    request twice when it is started again. Several runs may share a budget.

    Raises:
        InvalidInput: if the spec is invalid.
        Incomplete: if the run was stopped or too many answers are missing.
        UserError: if the model cannot be reached, or answers cannot be saved.
    """
    model = model or create_model(spec)
    plan, source = plan_for(spec, model.info), positions_for(spec, quiet=quiet)
    run = _run(spec, plan, source, model, quiet=quiet, budget=budget)
    return run_interruptible(run, cached=not spec.fresh)


async def _run(
    spec: Spec,
    plan: Plan,
    source: Dataset | Pool,
    model: Model,
    *,
    quiet: bool,
    budget: Budget | None,
) -> Run:
    started, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    of_controls = control_conditions(plan) if spec.diagnose else ()
    per_position = len(plan.conditions) + len(of_controls)
    async with open_client(spec, model, budget) as client:
        had_answers = not client.cache.is_empty
        identity_notes = await model.warnings()
        for warning in identity_notes:
            _warn_once(warning)
        identity_notes += await verify_identity(spec, plan, source, client, quiet=quiet)
        if not budget:  # a caller that passes a budget has already approved the cost
            await require_approval(spec, plan, client, quiet=quiet)
        running_cost = follow_cost(spec, plan, client, per_position)
        selection = await select_positions(spec, plan, source, client, running_cost, quiet=quiet)
        dataset, n = selection.dataset, len(selection.positions)
        drawn = replace(dataset, positions=list(selection.positions))
        if had_answers and drawn.version and not (spec.dataset or spec.fallback_dataset):
            identity_notes += await verify_identity(spec, plan, drawn, client, quiet=quiet)
        all_samples = await _measure(client, selection, plan, running_cost, quiet=quiet)
        samples, controls = all_samples[:n], all_samples[n:]
        if client.n_new:
            client.cache.record_fingerprints(await model.fingerprints())
    _check_failures("samples", samples)
    _check_failures("controls", controls)
    results, versions = compute(samples, plan, controls), versions_of(all_samples)
    if not belongs_to(dataset, versions, model.info.endpoint):
        dataset = replace(dataset, seconds=0.0)
    seconds_now = time.monotonic() - started
    of_answers = dataset.seconds + sum(answer.seconds for answer in answers_of(all_samples))
    return Run(
        model=model.info.name,
        version=version_of_all(versions, model.info.name),
        endpoint=model.info.endpoint,
        identity=dict(model.info.identity),
        plan=plan,
        dataset=dataset,
        samples=samples,
        results=results,
        notes=[
            *identity_notes,
            *notes_on(samples, results, plan, controls),
            *([] if spec.dataset else moved_alias_notes(dataset, versions)),
            *notes_on_dataset(dataset),
            *([] if client.n_new else [ALL_CACHED]),
            *lost_answer_notes(client.meter),
        ],
        started_at=started_at,
        seconds=round(seconds_now + max(0.0, of_answers - client.seconds_of_new), 2),
        seconds_now=round(seconds_now, 2),
        cost=cost_of(client, dataset, all_samples, versions),
        controls=controls,
        cached=not spec.fresh,
    )


@cache
def _warn_once(message: str) -> None:
    """Log a warning, once in all runs of a command."""
    log.warning(message)


async def _measure(
    client: Client, selection: Selection, plan: Plan, running_cost: RunningCost, *, quiet: bool
) -> list[Sample]:
    """Ask about every position under every condition and score the answers; controls come last."""
    samples: list[Sample] = []
    guard = QualityGuard(plan.settings)
    trials = trials_for(selection.positions, selection.controls, plan)
    requests = (
        request
        for trial, conditions in trials
        for request in client.cache.same_limit_if_cut(trial.requests(conditions), plan.settings)
    )
    roomy = {condition.name for condition in plan.conditions if condition.tokens}
    remaining = sum(len(conditions) for _, conditions in trials)
    person = client.model.on_progress
    title = "measuring your habits" if person else f"measuring {client.model.info.name}"
    with progress(title, len(trials), quiet=quiet, to=person) as advance:
        async with aclosing(client.answers(requests, plan.settings)) as answers:
            for trial, conditions in trials:
                replies = [await anext(answers) for _ in conditions]
                sample = trial.sample(replies, conditions, plan.reading)
                for name, answer in sample.answers.items():
                    usable, baseline = sample.replies[name].usable, name == plan.baseline.name
                    if name not in roomy:
                        guard.observe(answer, usable=usable, baseline=baseline)
                    running_cost.observe(answer, "measuring")
                samples.append(sample)
                remaining -= len(conditions)
                running_cost.check(0, remaining)
                advance(facts=partial(running_cost.in_total, 0, remaining))
    return samples


def _check_failures(kind: str, samples: Samples) -> None:
    failed = [sample for sample in samples if not sample.answered]
    if len(failed) > MAX_ERROR_RATE * len(samples):
        errors = (answer.error for answer in failed[0].answers.values())
        first = next(filter(None, errors))
        message = f"{len(failed)} of {len(samples)} {kind} have no answer (the first: {first})"
        raise Interrupted(message, "the others are saved")


def select(spec: Spec, *, quiet: bool) -> Selection:
    """Find or build a model's dataset without measuring; arguments and errors as in `evaluate`."""
    model = create_model(spec)
    plan, source = plan_for(spec, model.info), positions_for(spec, quiet=quiet)

    async def selected() -> Selection:
        async with open_client(spec, model) as client:
            await verify_identity(spec, plan, source, client, quiet=quiet)
            return await select_async(spec, plan, source, client, billed=plan, quiet=quiet)

    return run_interruptible(selected(), cached=not spec.fresh)


async def select_async(
    spec: Spec, plan: Plan, source: Dataset | Pool, client: Client, *, billed: Plan, quiet: bool
) -> Selection:
    """Find or build a dataset in a running event loop; the user approves the billed plan first."""
    await require_approval(spec, replace(billed, only_dataset=True), client, quiet=quiet)
    running_cost = follow_cost(spec, replace(plan, only_dataset=True), client, 0)
    return await select_positions(spec, plan, source, client, running_cost, quiet=quiet)
