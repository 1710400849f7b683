"""Evaluate one model: its dataset, every condition, scores, results. Read from top to bottom."""

import time
from contextlib import aclosing, suppress
from functools import partial

from ..client.client import Client, StartOver, from_cache_again
from ..client.pricing import CostLimit, price_for, unknown_price_note
from ..client.session import create_model, open_client
from ..datasets.pools import source_for
from ..datasets.selection import Selection, select_items
from ..datasets.storage import Dataset
from ..errors import Interrupted
from ..formatting import warn_once
from ..habits.base import Pool
from ..interrupts import run_interruptible
from ..metrics.compute import compute
from ..metrics.notes import notes_on, version_of_all, versions_of
from ..progress import progress
from ..providers.base import Model
from ..task.plan import plan_for
from ..task.samples import FirstReplies, trials_for
from ..task.spec import Spec
from ..task.types import Plan, Sample
from .cost_limit import affordable_client
from .identity import check_identity
from .run import ALL_CACHED, Run, cost_of

MAX_MISSING = 0.05  # the share of samples that may have no answer


def evaluate(
    spec: Spec, model: Model | None = None, *, quiet: bool = False, limit: CostLimit | None = None
) -> Run:
    """Evaluate a model: the one that the spec names, unless another is given.

    Every answer is cached under ``CDTA_HOME``, so a run that was interrupted in any way sends no
    request twice when it is started again. Several runs may share a cost limit.

    Raises:
        InvalidInput: if the spec is invalid.
        Incomplete: if the run was stopped, costs too much, or too many answers are missing.
        UserError: if the model cannot be reached, or answers cannot be saved.
    """
    started, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    model = model or create_model(spec)
    plan, source = plan_for(spec, model.info), source_for(spec, quiet=quiet)

    async def select_and_ask() -> tuple[Client, Selection, list[Sample]]:
        async with affordable_client(spec, model, limit) as client:
            await _check_model(spec, plan, source, client)
            while True:
                with suppress(StartOver):  # then begin again, from the cache
                    # Where does this model have the habit?
                    selection = await select_items(spec, plan, source, client, quiet=quiet)
                    # What does it answer there, before and after the change? And at controls?
                    samples = await _ask(client, selection, plan, quiet=quiet)
                    return client, selection, samples

    client, selection, everything = run_interruptible(select_and_ask())
    n, dataset = len(selection.items), selection.dataset
    samples, controls = everything[:n], everything[n:]
    # How many violations does the rule prevent?
    results = compute(samples, controls, plan)
    notes = notes_on(samples, controls, results, plan) + ([] if client.n_new else [ALL_CACHED])
    return Run(
        model=model.info.name,
        version=version_of_all(versions_of(everything), model.info.name),
        endpoint=model.info.endpoint,
        identity=dict(model.info.identity),
        options=spec.non_defaults,
        plan=plan,
        dataset=dataset,
        samples=samples,
        controls=controls,
        results=results,
        notes=notes + client.remarks,
        started_at=started_at,
        seconds=round(time.monotonic() - started, 2),
        cost=cost_of(everything, dataset, client.spending.total),
    )


async def _check_model(spec: Spec, plan: Plan, source: Dataset | Pool, client: Client) -> None:
    """Warn of what the user should know of the model, and check that it is the same as before."""
    client.remarks += await client.model.warnings()
    for warning in client.remarks:
        warn_once(warning)
    if client.model.info.provider and not price_for(spec, client.model.info):
        warn_once(unknown_price_note(client.model.info))
    await check_identity(spec, plan, source, client)


async def _ask(client: Client, selection: Selection, plan: Plan, *, quiet: bool) -> list[Sample]:
    """Ask about every item under every condition and score the answers; controls come last.

    Raises:
        Incomplete: if the first replies are unusable, or too many answers are missing.
    """
    samples: list[Sample] = []
    first_replies = FirstReplies(plan)
    trials = trials_for(selection.items, selection.controls, plan)
    requests = (request for trial in trials for request in trial.requests())
    with progress(f"measuring {client.model.info.name}", len(trials), quiet=quiet) as advance:
        async with aclosing(client.answers(requests, plan.settings)) as answers:
            for trial in trials:
                replies = {c.name: await anext(answers) for c in trial.conditions}
                sample = trial.sample(replies, plan.reading)
                first_replies.observe_sample(sample, trial.conditions)
                samples.append(sample)
                advance(facts=client.spending.facts)
    missing = [sample for sample in samples if not sample.answered]
    if len(missing) > MAX_MISSING * len(samples):
        first = next(answer.error for answer in missing[0].answers.values() if answer.error)
        raise Interrupted(
            f"{len(missing)} of {len(samples)} samples have no answer (the first: {first})"
        )
    return samples


def select(spec: Spec, *, quiet: bool) -> Selection:
    """Find or build a model's dataset without measuring; arguments and errors as in `evaluate`."""
    model = create_model(spec)
    plan, source = plan_for(spec, model.info), source_for(spec, quiet=quiet)

    async def find() -> Selection:
        async with open_client(spec, model) as client:
            await _check_model(spec, plan, source, client)
            find_items = partial(select_items, spec, plan, source, client, quiet=quiet)
            return await from_cache_again(find_items)

    return run_interruptible(find())
