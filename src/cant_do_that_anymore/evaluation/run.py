"""The whole run: one model on one dataset under both rule sets.

Read top to bottom, this is the story of the evaluation: learn the model's exact version, find or
build its dataset, draw samples, ask each position under both rule sets, judge, compute.
"""

import logging
import platform
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import get_args

from ..errors import BadInput, Unfinished, unknown
from ..game.position import Position, read_positions, shipped_pool
from ..game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules, rules_named
from ..home import answers_file
from ..models.asking import Ask, Asking
from ..models.model import Known, Model, Settings
from ..models.names import model_named
from ..models.stopping import to_the_end
from ..models.store import Store
from ..progress import progress
from .datasets import Dataset, dataset_named
from .judging import Reading
from .metrics import Results, Sample, compute, judged
from .notes import notes_on
from .prices import Cost, cost_of, purse_for
from .selection import SHIPPED, Criteria, Pool, dataset_for, found_dataset, version_of
from .spec import DEFAULT_MODEL, SAMPLES, Eval, Spec
from .watch import Watch
from .wordings import Wording, question, wording_named

log = logging.getLogger(__name__)

CUT_SEED = 123
"""The original's: runs with the same limit measure the same samples there and here."""

PROTOCOL = "1"
"""Changes whenever scores stop being comparable with those of earlier versions."""


KEPT = "every answer was kept from an earlier run; another seed asks anew"


@dataclass(frozen=True)
class Plan:
    """A spec with its names looked up: everything that makes scores comparable or not."""

    eval: Eval
    rules: Rules
    wording: Wording
    reading: Reading
    settings: Settings
    wanted: int


def versions_here() -> dict[str, str]:
    """The versions of all software that has a part in the numbers."""
    packages = ("cant-do-that-anymore", "chess", "numpy", "genai-prices")
    return {
        **{package: version(package) for package in packages},
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Run:
    """One model on one dataset under both rule sets: answers, outcomes, metrics.

    Attributes:
        model: the name it was asked for by; ``version`` is what it calls itself.
        endpoint: its address, where it has one.
        dataset: where the positions came from.
        samples: every position with both answers and outcomes.
        notes: what a reader of the numbers should know, one sentence each.
        protocol: runs of different protocols cannot be compared.
        versions: of the software that made it.
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
    cost: Cost = field(default_factory=Cost)
    protocol: str = PROTOCOL
    versions: dict[str, str] = field(default_factory=versions_here)


def evaluate(spec: Spec, model: Model | None = None, *, quiet: bool = False) -> Run:
    """Measure a model: the one that the spec names, unless another is given.

    Every answer is kept under ``CDTA_HOME``: a run that was stopped in any way asks nothing twice
    when it is started again.

    Raises:
        BadInput: if the spec cannot work.
        Unfinished: if the run was stopped or too many answers are missing.
        Problem: if the model cannot be reached, or answers cannot be saved.
    """
    return to_the_end(run(spec, model or _model(spec), quiet=quiet))


def build_dataset(spec: Spec, model: Model | None = None, *, quiet: bool = False) -> Dataset:
    """Find or build a model's dataset without measuring; takes and raises what `evaluate` does."""

    async def build(model: Model) -> Dataset:
        async with _asking(spec, model) as asking:
            return await _dataset(spec, plan_for(spec, model), asking, quiet=quiet)

    return to_the_end(build(model or _model(spec)))


async def run(spec: Spec, model: Model, *, quiet: bool) -> Run:
    """Measure ``model`` as ``spec`` says; see `evaluate`."""
    started, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    plan = plan_for(spec, model)
    async with _asking(spec, model) as asking:
        dataset = await _dataset(spec, plan, asking, quiet=quiet)
        positions = drawn(dataset.positions, spec.to_draw, spec.seed)
        if spec.max_samples:
            positions = [positions[i] for i in kept(len(positions), spec.max_samples)]
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
        notes=[
            *notes_on(samples, results, plan.rules, plan.reading, plan.wanted),
            *([] if asking.asked else [KEPT]),
        ],
        started_at=started_at,
        seconds=round(time.monotonic() - started, 2),
        cost=cost_of(asking, dataset, samples),
    )


def plan_for(spec: Spec, model: Known) -> Plan:
    """Look up what the spec names.

    Raises:
        BadInput: if something it names does not exist or cannot work.
    """
    _check(spec)
    rules, wording = rules_named(spec.rules), wording_named(spec.wording)
    wording.text(rules)
    if rules is STANDARD:
        raise BadInput("the rules of a run must differ from standard chess; see cdta rules")
    wanted = min(spec.to_draw, spec.max_samples or spec.to_draw)
    if wanted < 1:
        raise BadInput(f"the number of samples must be at least 1, not {wanted}")
    settings = Settings(spec.temperature, spec.max_tokens or model.max_tokens, spec.seed)
    return Plan(spec.eval, rules, wording, spec.reading, settings, wanted)


def _check(spec: Spec) -> None:
    for what, given, valid in (
        ("eval", spec.eval, SAMPLES),
        ("reading", spec.reading, get_args(Reading)),
    ):
        if given not in valid:
            raise unknown(what, given, valid)
    if not 0 <= spec.temperature < inf:
        raise BadInput(f"the temperature must be a number from 0 up, not {spec.temperature}")
    for name in ("max_tokens", "max_connections", "max_samples"):
        given = getattr(spec, name)
        if given is not None and given < 1:
            raise BadInput(f"{name} must be at least 1, not {given}")
    if spec.pool and spec.dataset:
        raise BadInput("give a pool to choose from or a dataset to take as it is, not both")


def drawn(positions: Sequence[Position], n: int, seed: int) -> list[Position]:
    """``n`` positions without replacement, or all in seeded order if there are fewer.

    The same seed draws the same samples from the same dataset as the original does.
    """
    return Random(seed).sample(positions, min(n, len(positions)))


def kept(n: int, most: int) -> list[int]:
    """Which ``most`` of ``n`` samples drawn are measured: the same as in the original."""
    indices = list(range(n))
    Random(CUT_SEED).shuffle(indices)
    return indices[:most]


async def _dataset(spec: Spec, plan: Plan, asking: Asking, *, quiet: bool) -> Dataset:
    if spec.dataset:
        return given_dataset(spec.dataset, plan.rules)
    pool = pool_for(spec, plan.rules)
    if spec.eval == "all_diagonal":
        return Dataset("", pool.name, list(pool.positions))
    criteria = criteria_for(asking.model, pool, plan)
    version = await version_of(asking, criteria)
    if spec.fallback_dataset:
        return _existing_dataset(version, spec.fallback_dataset, criteria)
    return await dataset_for(asking, version, criteria, plan.wanted, quiet=quiet)


def _existing_dataset(version: str, fallback: str, criteria: Criteria) -> Dataset:
    found = found_dataset(version, criteria)
    if found:
        return found
    log.warning("%s has no dataset; that of %s is taken instead", version, fallback)
    return given_dataset(fallback, criteria.rules)


def given_dataset(given: Path | str, rules: Rules) -> Dataset:
    """The positions of a file, or the dataset of that name, as they are."""
    path = Path(given)
    if path.exists() or path.suffix in (".jsonl", ".gz"):
        return Dataset("", str(given), positions_in(path, rules))
    found, facts = dataset_named(str(given))
    if facts["rules"] != rules.key:
        raise BadInput(f"the dataset {str(given)!r} is for {facts['rules']}, not for {rules.key}")
    return found


def criteria_for(model: Known, pool: Pool, plan: Plan) -> Criteria:
    """What the dataset of a run depends on."""
    return Criteria(model, pool, plan.rules, plan.wording, plan.reading, plan.settings.max_tokens)


def pool_for(spec: Spec, rules: Rules) -> Pool:
    """The positions to choose from: the pool that the spec names, or the shipped one."""
    if spec.pool:
        return Pool(str(spec.pool), positions_in(spec.pool, rules))
    if rules is not BISHOPS_AS_KNIGHTS:
        raise BadInput(
            f"no pool is shipped for {rules.key}; make one with "
            f"`cdta mine --rules {rules.key} GAMES.pgn -o pool.jsonl` and give it with --pool"
        )
    return Pool(SHIPPED, shipped_pool("diagonal" if spec.eval == "all_diagonal" else "pool"))


def positions_in(path: Path, rules: Rules) -> list[Position]:
    """The positions of a file that holds at least one."""
    positions = read_positions(Path(path), rules)
    if not positions:
        raise BadInput(f"{path} holds no positions")
    return positions


async def _measured(
    asking: Asking, positions: Sequence[Position], plan: Plan, *, quiet: bool
) -> list[Sample]:
    """Ask every position under both rule sets and judge the answers."""
    samples: list[Sample] = []
    watch = Watch(plan.settings.max_tokens)
    asks = both_questions(positions, plan)
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


def both_questions(positions: Sequence[Position], plan: Plan) -> Iterator[Ask]:
    """Every position under the standard rules and under the changed ones."""
    times_asked: Counter[tuple[str, ...]] = Counter()
    for position in positions:
        draw = times_asked[position.moves]  # other special moves make no other question
        times_asked[position.moves] += 1
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
    with TemporaryDirectory() as nowhere:
        answers = Path(nowhere) / "answers.sqlite" if spec.fresh else answers_file()
        store = Store(answers)
        try:
            yield Asking(model, store, spec.max_connections, purse_for(model, spec.max_cost))
        finally:
            await model.close()
            store.close()
