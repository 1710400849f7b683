"""The whole run: one model on one dataset under both rule sets.

Read top to bottom, this is the story of the evaluation: learn the model's exact version, find or
build its dataset, draw samples, ask each position under both rule sets, judge, compute.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from ..errors import BadInput, Unfinished
from ..game.position import Position, read_positions, shipped_pool
from ..game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules, rules_named
from ..home import home
from ..models.asking import Ask, Asking
from ..models.model import Model, Settings
from ..models.names import model_named
from ..models.progress import progress
from ..models.store import Store
from .datasets import Dataset
from .judging import Reading
from .metrics import Results, Sample, compute, judged
from .notes import notes_on
from .selection import SHIPPED, Criteria, Pool, dataset_for, version_of
from .spec import DEFAULT_MODEL, SAMPLES, Eval, Spec
from .watch import CutOffWatch
from .wordings import Wording, question, wording_named

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """A spec with its names looked up: everything that makes scores comparable or not."""

    eval: Eval
    rules: Rules
    wording: Wording
    reading: Reading
    settings: Settings
    wanted: int


@dataclass(frozen=True)
class Run:
    """One model on one dataset under both rule sets: answers, outcomes, metrics.

    Attributes:
        model: the name it was asked for by; ``version`` is what it calls itself.
        endpoint: its address, where it has one.
        dataset: where the positions came from.
        samples: every position with both answers and outcomes.
        notes: what a reader of the numbers should know, one sentence each.
    """

    model: str
    version: str
    endpoint: str
    plan: Plan
    dataset: Dataset
    samples: list[Sample] = field(repr=False)
    results: Results
    notes: list[str]
    started_at: str
    seconds: float


def evaluate(spec: Spec, *, quiet: bool = False) -> Run:
    """Measure a model.

    Every answer is kept under ``CDTA_HOME``: a run that was stopped in any way asks nothing twice
    when it is started again.

    Raises:
        BadInput: if the spec cannot work.
        Unfinished: if the run was stopped or too many answers are missing.
        Problem: if the model cannot be reached, or answers cannot be saved.
    """
    return _to_the_end(run(spec, _model(spec), quiet=quiet))


def build_dataset(spec: Spec, *, quiet: bool = False) -> Dataset:
    """Find or build a model's dataset without measuring; raises as `evaluate` does."""

    async def build() -> Dataset:
        model = _model(spec)
        async with _asking(spec, model) as asking:
            return await _dataset(spec, plan_for(spec, model), asking, quiet=quiet)

    return _to_the_end(build())


async def run(spec: Spec, model: Model, *, quiet: bool) -> Run:
    """Measure ``model`` as ``spec`` says; see `evaluate`."""
    started, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    plan = plan_for(spec, model)
    async with _asking(spec, model) as asking:
        dataset = await _dataset(spec, plan, asking, quiet=quiet)
        positions = drawn(dataset.positions, plan.wanted, spec.seed)
        samples = await _measured(asking, positions, plan, quiet=quiet)
    _check_failures(samples, spec.max_error_rate)
    results = compute(samples)
    return Run(
        model=model.name,
        version=Counter(sample.standard.version for sample in samples).most_common(1)[0][0],
        endpoint=model.endpoint,
        plan=plan,
        dataset=dataset,
        samples=samples,
        results=results,
        notes=notes_on(samples, results, plan.rules, plan.reading, plan.wanted),
        started_at=started_at,
        seconds=round(time.monotonic() - started, 2),
    )


def plan_for(spec: Spec, model: Model) -> Plan:
    """Look up what the spec names.

    Raises:
        BadInput: if something it names does not exist or cannot work.
    """
    rules, wording = rules_named(spec.rules), wording_named(spec.wording)
    wording.text(rules)
    if rules is STANDARD:
        raise BadInput("the rules of a run must differ from standard chess; see cdta rules")
    wanted = SAMPLES[spec.eval] if spec.n is None else spec.n
    if wanted < 1:
        raise BadInput(f"the number of samples must be at least 1, not {wanted}")
    settings = Settings(spec.temperature, spec.max_tokens or model.max_tokens, spec.seed)
    return Plan(spec.eval, rules, wording, spec.reading, settings, wanted)


def drawn(positions: Sequence[Position], n: int, seed: int) -> list[Position]:
    """``n`` positions without replacement, or all in seeded order if there are fewer.

    The same seed draws the same samples from the same dataset as the original does.
    """
    return Random(seed).sample(positions, min(n, len(positions)))


async def _dataset(spec: Spec, plan: Plan, asking: Asking, *, quiet: bool) -> Dataset:
    if spec.dataset:
        return Dataset("", str(spec.dataset), _positions_in(spec.dataset, plan.rules))
    pool = _pool(spec, plan.rules)
    if spec.eval == "all_diagonal":
        return Dataset("", pool.name, list(pool.positions))
    criteria = Criteria(pool, plan.rules, plan.wording, plan.reading, plan.settings.max_tokens)
    version = await version_of(asking, criteria)
    return await dataset_for(asking, version, criteria, plan.wanted, quiet=quiet)


def _pool(spec: Spec, rules: Rules) -> Pool:
    if spec.pool:
        return Pool(str(spec.pool), _positions_in(spec.pool, rules))
    if rules is not BISHOPS_AS_KNIGHTS:
        raise BadInput(
            f"no pool is shipped for {rules.key}; make one with "
            f"`cdta mine --rules {rules.key} GAMES.pgn -o pool.jsonl` and give it with --pool"
        )
    return Pool(SHIPPED, shipped_pool("diagonal" if spec.eval == "all_diagonal" else "pool"))


def _positions_in(path: Path, rules: Rules) -> list[Position]:
    positions = read_positions(path, rules)
    if not positions:
        raise BadInput(f"{path} holds no positions")
    return positions


async def _measured(
    asking: Asking, positions: Sequence[Position], plan: Plan, *, quiet: bool
) -> list[Sample]:
    """Ask every position under both rule sets and judge the answers."""
    samples: list[Sample] = []
    watch = CutOffWatch(plan.settings.max_tokens)
    asks = _both_questions(positions, plan)
    with progress(f"measuring {asking.model.name}", len(positions), quiet=quiet) as advance:
        async with aclosing(asking.answers(asks, plan.settings)) as answers:
            for position in positions:
                standard, variant = await anext(answers), await anext(answers)
                sample = judged(position, standard, variant, plan.rules, plan.reading)
                watch.see(standard, sample.standard_judgement.move, STANDARD)
                watch.see(variant, sample.variant_judgement.move, plan.rules)
                samples.append(sample)
                advance()
    return samples


def _both_questions(positions: Sequence[Position], plan: Plan) -> Iterator[Ask]:
    times_asked: Counter[str] = Counter()
    for position in positions:
        draw = times_asked[position.id]
        times_asked[position.id] += 1
        for rules in (STANDARD, plan.rules):
            yield Ask(question(position.moves, rules, plan.wording), "measuring", draw)


def _check_failures(samples: Sequence[Sample], most: float) -> None:
    failed = [sample for sample in samples if not sample.answered]
    if len(failed) > most * len(samples):
        error = failed[0].standard.error or failed[0].variant.error
        raise Unfinished(
            f"{len(failed)} of {len(samples)} samples have no answer (the first: {error}); the "
            "others are saved, run the same command again to ask only for those"
        )


def _model(spec: Spec) -> Model:
    return model_named(spec.model or (None if spec.base_url else DEFAULT_MODEL), spec.base_url)


@asynccontextmanager
async def _asking(spec: Spec, model: Model) -> AsyncIterator[Asking]:
    store = Store(home() / "answers.sqlite")
    try:
        yield Asking(model, store, spec.max_connections)
    finally:
        await model.close()
        store.close()


def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_until_stopped(work))
    with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own
        return thread.submit(asyncio.run, work).result()


async def _until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Await; on Ctrl-C or SIGTERM finish what is in flight, save it and say how to go on."""
    task = asyncio.current_task()
    assert task
    with suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        raise Unfinished(
            "stopped; all answers so far are saved, run the same command again to go on"
        ) from None
