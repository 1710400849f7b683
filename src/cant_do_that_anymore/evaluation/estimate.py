"""Requests, tokens, cost and time of a run before anything is spent.

Nothing is asked and no key is needed. Only what would be asked is counted: answers that are kept
from before are not asked for again, and say how long the others will be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..models.kept import Kept
from ..models.model import Known, Usage
from ..models.names import OUR_MODELS, known_by_name
from ..models.purse import Price
from ..models.reasoning import Thinker
from ..models.store import opened_store
from .diagnosis import ASKED, ASKED_OF_CONTROLS
from .foresight import Foreseen, foresee
from .lengths import Lengths, lengths_of
from .precision import is_reached, stages
from .prices import price_for
from .sizes import (
    HALF_WIDTH,
    USUAL_IMPACT,
    USUAL_SHARE,
    enough_for_corrected,
    enough_for_specific,
    expected_samples,
    on_expected_samples,
    shares_expected,
)
from .spec import DEFAULT_MODEL, Spec, plan_for
from .tokens import Span
from .vocabulary import Eval, Plan

SECONDS_AN_ANSWER = 1.0
TOKENS_A_SECOND = 50.0
OUR_ANSWERS_A_SECOND = 100.0
STEPS = "finding the dataset", "measuring"
SECONDS_A_BATCH = 24 * 3600.0
WAVES = 2, 1
"""Of each step, as a rule."""


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
    """Part of a run: the requests to be made, and what they come to in each way of answering."""

    requests: int
    input_tokens: int
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        dataset: finding the positions where the model has the habit.
        measuring: asking each of the samples under every condition.
        assumptions: what the figures rest on, one sentence each.
    """

    model: str
    eval: Eval
    dataset: Step
    measuring: Step
    assumptions: tuple[str, ...]


def known_for(spec: Spec) -> Known:
    """What is known of the model that the spec names, without asking it."""
    return known_by_name(spec.model or (None if spec.base_url else DEFAULT_MODEL), spec.base_url)


def foreseen_for(spec: Spec, known: Known) -> Foreseen:
    """What a run will ask, by the answers that are kept until now.

    Raises:
        BadInput: if the spec cannot work.
    """
    with opened_store(fresh=spec.fresh) as store:
        return foreseen_by(spec, plan_for(spec, known), known, Kept(known, store))


def foreseen_by(spec: Spec, plan: Plan, known: Known, kept: Kept) -> Foreseen:
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
    return foresee(spec, whole, known, kept, under_way)


def estimate(spec: Spec, seconds_an_answer: float | None = None) -> Estimate:
    """Estimate a run; the time of an answer goes by its tokens, unless it was measured.

    Raises:
        BadInput: if the spec cannot work.
    """
    known = known_for(spec)
    foreseen = foreseen_for(spec, known)
    connections = spec.max_connections or known.connections
    pace = _Pace(known, connections, seconds_an_answer, in_batches=spec.batch)
    price = price_for(spec, known)
    parts = foreseen.dataset, foreseen.measuring
    lengths = [lengths_of(spec, known, part, other) for part, other in (parts, parts[::-1])]
    dataset, measuring = (
        _step(len(part.to_ask), each, known, price, pace, waves)
        for part, each, waves in zip(parts, lengths, WAVES, strict=True)
    )
    said = [each.bases for part, each in zip(parts, lengths, strict=True) if part.to_ask]
    return Estimate(
        model=spec.model or known.name,
        eval=spec.eval,
        dataset=dataset,
        measuring=measuring,
        assumptions=(
            *([f"dataset: {foreseen.imagined}"] if foreseen.imagined else []),
            *_told("input", [each.input for each in said]),
            *_told("answers", [each.answer for each in said]),
            f"time: {pace.basis}",
            *on_expected_samples(spec.precision, spec.to_draw, foreseen.samples),
            *([_on_diagnosis()] if spec.diagnose else []),
        ),
    )


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
    questions: int,
    lengths: Lengths,
    known: Known,
    price: Price | None,
    pace: "_Pace",
    waves: int,
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


def cost(questions: int, lengths: Lengths, tokens: float, known: Known, price: Price) -> float:
    """What so many questions cost in US dollars whose answers have so many tokens in the mean."""
    used = Usage(lengths.input_tokens, round(questions * tokens))
    return price.of(used, _requests(questions, known))


def _requests(questions: int, known: Known) -> int:
    return 2 * questions if isinstance(known, Thinker) else questions


@dataclass(frozen=True)
class _Pace:
    """How quickly answers come, many at once."""

    known: Known
    connections: int
    measured: float | None
    in_batches: bool

    def seconds(self, questions: int, tokens: float, waves: int) -> float:
        """For so many answers of so many tokens, or at most for so many waves of them."""
        if self.in_batches:
            return waves * SECONDS_A_BATCH if questions else 0.0
        if self.known.name in OUR_MODELS:
            return questions / OUR_ANSWERS_A_SECOND
        one = self.measured or max(SECONDS_AN_ANSWER, tokens / TOKENS_A_SECOND)
        return questions * one / self.connections

    @property
    def basis(self) -> str:
        """What the times rest on."""
        if self.in_batches:
            return "a batch takes 24 h at most, and the dataset takes two, one time in five more"
        if self.known.name in OUR_MODELS:
            return f"{OUR_ANSWERS_A_SECOND:.0f} answers a second are taken for our own models"
        if self.measured:
            one = f"{self.measured:.1f} s an answer, as in the pilot"
        else:
            least = f"{SECONDS_AN_ANSWER:g} s an answer at least"
            one = f"{TOKENS_A_SECOND:.0f} tokens a second are taken, and {least}"
        return f"{one}, with {self.connections} questions at once"
