"""Requests, tokens, cost and time of a run before anything is spent.

Nothing is asked and no key is needed. Only what would be asked is counted: answers that are kept
from before are not asked for again, and say how long the others will be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..client.budget import Price
from ..client.cache import ModelCache
from ..client.pricing import rate_for
from ..client.session import is_remote, model_info
from ..client.store import opened_store, store_to_read
from ..metrics.stopping import (
    HALF_WIDTH,
    USUAL_IMPACT,
    USUAL_SHARE,
    enough_for_corrected,
    enough_for_specific,
    expected_samples,
    is_reached,
    looks,
    on_expected_samples,
    shares_expected,
    stages,
)
from ..providers.base import ModelInfo, Usage
from ..providers.chain_of_thought import Thinker
from ..task.conditions import ASKED, ASKED_OF_CONTROLS
from ..task.spec import Spec, plan_for
from ..task.types import Eval, Plan
from .cheaper import cheaper_than
from .foresight import Foreseen, foresee
from .lengths import Lengths, lengths_of
from .pace import WAVES, Pace
from .tokens import Span

STEPS = "finding the dataset", "measuring"
SAME_MODEL = "not counted: the question that tells whether it is still the model that answered"


@dataclass(frozen=True)
class Way:
    """One way in which a model may answer all questions of a step.

    Attributes:
        title: which.
        tokens: of one answer.
        cost: of all in US dollars; None if the price is unknown.
        seconds: for all.
    """

    title: str
    tokens: Span
    cost: Span | None
    seconds: Span


@dataclass(frozen=True)
class Step:
    """Part of a run: the requests to be made, and what they come to in each way of answering.

    Attributes:
        kept: how many answers are there already, as far as it was looked.
    """

    requests: int
    input_tokens: int
    ways: tuple[Way, ...]
    kept: int = 0


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        dataset: finding the positions where the model has the habit.
        measuring: asking each of the samples under every condition.
        total: both.
        assumptions: what the figures rest on, one sentence each.
        cheaper: options that cost less as a rule, if the run costs more than --ask-above.
    """

    model: str
    eval: Eval
    dataset: Step
    measuring: Step
    total: Step
    assumptions: tuple[str, ...]
    cheaper: tuple[str, ...]


def foreseen_for(spec: Spec, known: ModelInfo) -> Foreseen:
    """What a run will ask, by the answers that are kept until now.

    Raises:
        InvalidInput: if the spec cannot work.
    """
    with opened_store(fresh=True) if spec.fresh else store_to_read() as store:
        return foreseen_by(spec, plan_for(spec, known), known, ModelCache(known, store))


def foreseen_by(spec: Spec, plan: Plan, known: ModelInfo, kept: ModelCache) -> Foreseen:
    """The same by these answers; with a precision, as many samples as it is expected to take."""
    under_way = 2 * (spec.max_connections or known.connections)
    for stage in stages(plan):
        foreseen = foresee(spec, stage, known, kept, under_way)
        if foreseen.to_ask or is_reached(foreseen.samples, plan):
            break
    if not plan.precision or not foreseen.to_ask:
        return foreseen
    size = expected_samples(plan.precision, plan.wanted, shares_expected(foreseen.samples))
    whole = replace(plan, wanted=max(size, stage.wanted))
    to_come = [each for each in looks(plan.wanted) if stage.wanted <= each <= whole.wanted]
    return replace(foresee(spec, whole, known, kept, under_way), looks=len(to_come))


def estimate(spec: Spec) -> Estimate:
    """Estimate a run.

    Raises:
        InvalidInput: if the spec cannot work.
    """
    known = model_info(spec)
    foreseen = foreseen_for(spec, known)
    connections = spec.max_connections or known.connections
    pace = Pace(known, connections, foreseen.looks if spec.batch else None)
    price = rate_for(spec, known)
    parts = foreseen.dataset, foreseen.measuring
    lengths = [lengths_of(spec, known, part, other) for part, other in (parts, parts[::-1])]
    dataset, measuring = (
        replace(_step(len(part.to_ask), each, known, price, pace, waves), kept=part.answered)
        for part, each, waves in zip(parts, lengths, WAVES, strict=True)
    )
    total = _total(dataset, measuring)
    said = [each.bases for part, each in zip(parts, lengths, strict=True) if part.to_ask]
    return Estimate(
        model=spec.model or known.name,
        eval=spec.eval,
        dataset=dataset,
        measuring=measuring,
        total=total,
        cheaper=_cheaper(spec, dataset, total),
        assumptions=(
            *([f"dataset: {foreseen.imagined}"] if foreseen.imagined else []),
            *_told("input", [each.input for each in said]),
            *_told("answers", [each.answer for each in said]),
            f"time: {pace.basis}",
            *on_expected_samples(spec.precision, spec.to_draw, foreseen.samples),
            *([_on_diagnosis()] if spec.diagnose else []),
            *([SAME_MODEL] if is_remote(known) and dataset.kept + measuring.kept else []),
        ),
    )


def _cheaper(spec: Spec, dataset: Step, total: Step) -> tuple[str, ...]:
    most = max((way.cost.most for way in total.ways if way.cost), default=0.0)
    if most <= (Spec.ask_above or 0.0):
        return ()
    return tuple(cheaper_than(spec, searches=dataset.requests > 1))


def _total(*steps: Step) -> Step:
    """Both steps together, each in the same way of answering as far as it has several."""
    asked = [step for step in steps if step.requests]
    longest = max((step.ways for step in asked), key=len, default=())
    requests = sum(step.requests for step in asked)
    ways = []
    for number, titled in enumerate(longest):
        each = [(step, step.ways[min(number, len(step.ways) - 1)]) for step in asked]
        costs = [way.cost for _, way in each if way.cost]
        tokens = [
            sum(step.requests * way.tokens[end] for step, way in each) / requests for end in (0, 1)
        ]
        ways.append(
            Way(
                titled.title,
                Span(*tokens),
                cost=Span(*map(sum, zip(*costs, strict=True))) if costs else None,
                seconds=Span(*map(sum, zip(*(way.seconds for _, way in each), strict=True))),
            )
        )
    return Step(requests, sum(step.input_tokens for step in asked), tuple(ways))


def _told(what: str, bases: Sequence[str]) -> list[str]:
    """What the figures of the steps rest on: once, if it is the same for both."""
    if len(set(bases)) < 2:
        return [f"{what}: {basis}" for basis in bases[:1]]
    return [f"{what} in {step}: {basis}" for step, basis in zip(STEPS, bases, strict=True)]


def _on_diagnosis() -> str:
    corrected, specific = (
        " to ".join(f"{enough(USUAL_SHARE, impact):,}" for impact in (USUAL_IMPACT, 0))
        for enough in (enough_for_corrected, enough_for_specific)
    )
    return (
        f"diagnosis: {len(ASKED)} questions a sample and {len(ASKED_OF_CONTROLS)} a control, so up "
        f"to {len(ASKED) + len(ASKED_OF_CONTROLS)} a sample instead of 2; for ±{HALF_WIDTH:g} the "
        f"corrected impact factor takes about -n {corrected}, the specific one {specific} (half "
        f"of the habit yields, or none; {100 * USUAL_SHARE:.0f} % special moves under the placebo)"
    )


def _step(
    questions: int, lengths: Lengths, known: ModelInfo, price: Price | None, pace: Pace, waves: int
) -> Step:
    def all_of(tokens: Span, price: Price) -> Span:
        return Span(*(cost(questions, lengths, each, known, price) for each in tokens))

    ways = (
        Way(
            title,
            tokens,
            cost=all_of(tokens, price) if price else None,
            seconds=Span(*(pace.seconds(questions, each, waves) for each in tokens)),
        )
        for title, tokens in lengths.answer.items()
    )
    return Step(_requests(questions, known), lengths.input_tokens, tuple(ways))


def cost(questions: int, lengths: Lengths, tokens: float, known: ModelInfo, price: Price) -> float:
    """What so many questions cost in US dollars whose answers have so many tokens in the mean."""
    used = Usage(lengths.input_tokens, round(questions * tokens))
    return price.of(used, _requests(questions, known))


def _requests(questions: int, known: ModelInfo) -> int:
    return 2 * questions if isinstance(known, Thinker) else questions
