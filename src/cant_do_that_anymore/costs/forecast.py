"""Forecast a run: requests, tokens, cost and time before anything is spent.

The forecast counts only the requests that the run would send (`dry_run`). The cached answers also
predict how long the others will be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..client.budget import Price
from ..client.pricing import rate_for
from ..client.session import model_info
from ..errors import UserError
from ..formatting import percentage
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..metrics.stopping import (
    HALF_WIDTH,
    USUAL_IMPACT,
    USUAL_SHARE,
    enough_for_corrected,
    enough_for_specific,
    expected_sample_size,
    on_expected_samples,
)
from ..providers.base import ModelInfo, Usage
from ..task.conditions import OF_CONTROLS, OF_DIAGNOSIS
from ..task.spec import Spec, check_batch
from ..task.types import Eval
from .dry_run import forecast_with_store
from .tokens import Lengths, RequestStep, Span, lengths_of

# A precision that tells whether a habit is mostly dropped or mostly kept.
ROUGH_PRECISION = 0.1


def cheaper_than(spec: Spec, *, searches: bool, measures: bool = True) -> list[str]:
    """Return options that usually make evaluating the same model cheaper.

    Args:
        spec: the planned evaluation.
        searches: whether the dataset still has to be built.
        measures: whether the run goes on after the dataset is built.
    """
    options = []
    default_rules = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
    if searches and spec.pool is None and default_rules:
        options.append("--pool common")
    if measures and spec.eval == "all" and spec.n is None:
        options.append("--eval all_small")
    max_samples = spec.to_draw
    if (
        measures
        and spec.precision is None
        and expected_sample_size(ROUGH_PRECISION, max_samples) < max_samples
    ):
        options.append(f"--precision {ROUGH_PRECISION:g}")
    if not spec.batch and _supports_batches(spec):
        options.append("--batch")
    return options


def _supports_batches(spec: Spec) -> bool:
    """Whether the model is known to support batches; unknown for the user's own servers."""
    if spec.base_url:
        return False
    try:
        check_batch(spec, model_info(spec))
    except UserError:
        return False
    return True


SECONDS_PER_ANSWER = 1.0
TOKENS_PER_SECOND = 50.0
BUNDLED_ANSWERS_PER_SECOND = 100.0
SECONDS_PER_BATCH = 24 * 3600.0
# Usual number of batches for building the dataset and for measuring.
WAVES = 2, 1


_Seconds = Callable[[int, float, int], float]


def _pace(info: ModelInfo, connections: int, looks: int | None) -> tuple[_Seconds, str]:
    """Return the seconds for answers by number, length and waves of batches; and the assumptions.

    ``looks`` is None without batches, else how many looks at the precision wait for all of them.
    """
    if looks:
        each_look = f", for each of {looks} looks at the precision" if looks > 1 else ""
        return (
            lambda questions, _, waves: looks * waves * SECONDS_PER_BATCH if questions else 0.0,
            "a batch takes 24 h at most, and the dataset takes two, one time in five more"
            + each_look,
        )
    if info.is_local:
        return (
            lambda questions, *_: questions / BUNDLED_ANSWERS_PER_SECOND,
            f"assumes {BUNDLED_ANSWERS_PER_SECOND:.0f} answers per second for bundled models",
        )
    return (
        lambda questions, tokens, _: (
            questions * max(SECONDS_PER_ANSWER, tokens / TOKENS_PER_SECOND) / connections
        ),
        f"assumes {TOKENS_PER_SECOND:.0f} tokens per second, at least {SECONDS_PER_ANSWER:g} s per "
        f"answer, and {connections} concurrent requests",
    )


STEPS = "finding the dataset", "measuring"
SAME_MODEL = "not included: one request to check that the model has not changed"


def _format_basis(figure: str, bases: Sequence[str]) -> list[str]:
    """Format the basis of a figure, once if it is the same for both steps."""
    if len(set(bases)) < 2:
        return [f"{figure}: {basis}" for basis in bases[:1]]
    return [f"{figure} in {step}: {basis}" for step, basis in zip(STEPS, bases, strict=True)]


def _diagnosis_sizes() -> str:
    corrected, specific = (
        " to ".join(f"{enough(USUAL_SHARE, impact):,}" for impact in (USUAL_IMPACT, 0))
        for enough in (enough_for_corrected, enough_for_specific)
    )
    return (
        f"diagnosis: {len(OF_DIAGNOSIS)} questions a sample and {len(OF_CONTROLS)} a control, so "
        f"up to {len(OF_DIAGNOSIS) + len(OF_CONTROLS)} a sample instead of 2; for ±{HALF_WIDTH:g} "
        f"the corrected impact factor takes about -n {corrected}, the specific one {specific} "
        f"(half of the habit yields, or none; {percentage(USUAL_SHARE, 0)} special moves under the "
        "placebo)"
    )


def cost(questions: int, lengths: Lengths, tokens: float, info: ModelInfo, price: Price) -> float:
    """Return the cost in US dollars of this many requests, given the mean tokens per answer."""
    used = Usage(lengths.input_tokens, round(questions * tokens))
    return price.of(used, questions * info.requests_per_answer)


@dataclass(frozen=True)
class AnswerMode:
    """One mode in which a model may answer all requests of a step.

    Attributes:
        title: the mode.
        tokens: per answer.
        cost: of all requests in US dollars; None if the price is unknown.
        seconds: for all requests.
    """

    title: str
    tokens: Span
    cost: Span | None
    seconds: Span


@dataclass(frozen=True)
class Step:
    """Part of a run: its requests, and their cost and time in each mode of answering.

    Attributes:
        kept: how many answers are cached, as far as was looked up.
    """

    requests: int
    input_tokens: int
    ways: tuple[AnswerMode, ...]
    kept: int = 0


@dataclass(frozen=True)
class Estimate:
    """Estimated requests, cost and time of a run.

    Attributes:
        dataset: building the dataset of positions where the model has the habit.
        measuring: asking about each sample under every condition.
        total: both.
        assumptions: what the figures are based on, one sentence each.
        cheaper: options that usually cost less, if the run costs more than --ask-above.
    """

    model: str
    eval: Eval
    dataset: Step
    measuring: Step
    total: Step
    assumptions: tuple[str, ...]
    cheaper: tuple[str, ...]


def estimate(spec: Spec) -> Estimate:
    """Estimate the requests, cost and time of a run.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    price, forecast = rate_for(spec, info), forecast_with_store(spec, info)
    connections = spec.max_connections or info.connections
    seconds, on_time = _pace(info, connections, forecast.looks if spec.batch else None)

    def to_step(step: RequestStep, lengths: Lengths, waves: int) -> Step:
        n = len(step.to_ask)
        ways = (
            AnswerMode(
                title,
                tokens,
                Span(*(cost(n, lengths, t, info, price) for t in tokens)) if price else None,
                Span(*(seconds(n, t, waves) for t in tokens)),
            )
            for title, tokens in lengths.answer.items()
        )
        requests = n * info.requests_per_answer
        return Step(requests, lengths.input_tokens, tuple(ways), step.answered)

    steps = forecast.dataset, forecast.measuring
    lengths = [lengths_of(spec, info, step, other) for step, other in (steps, steps[::-1])]
    dataset, measuring = map(to_step, steps, lengths, WAVES)
    total = _total(dataset, measuring)
    pending = [each for step, each in zip(steps, lengths, strict=True) if step.to_ask]
    return Estimate(
        model=spec.model or info.name,
        eval=spec.eval,
        dataset=dataset,
        measuring=measuring,
        total=total,
        cheaper=_cheaper(spec, dataset, total),
        assumptions=(
            *([f"dataset: {forecast.imagined}"] if forecast.imagined else []),
            *_format_basis("input", [each.input_basis for each in pending]),
            *_format_basis("answers", [each.answer_basis for each in pending]),
            f"time: {on_time}",
            *on_expected_samples(spec.precision, spec.to_draw, forecast.samples),
            *([_diagnosis_sizes()] if spec.diagnose else []),
            *([SAME_MODEL] if not info.is_local and dataset.kept + measuring.kept else []),
        ),
    )


def _cheaper(spec: Spec, dataset: Step, total: Step) -> tuple[str, ...]:
    most = max((way.cost.most for way in total.ways if way.cost), default=0.0)
    if most <= (Spec.ask_above or 0.0):
        return ()
    return tuple(cheaper_than(spec, searches=dataset.requests > 1))


def _total(*steps: Step) -> Step:
    """Add up the steps, mode by mode; a step with fewer modes repeats its last."""
    pending = [step for step in steps if step.requests]
    longest = max((step.ways for step in pending), key=len, default=())
    requests = sum(step.requests for step in pending)
    ways = []
    for number, mode in enumerate(longest):
        step_modes = [(step, step.ways[min(number, len(step.ways) - 1)]) for step in pending]
        costs = [way.cost for _, way in step_modes if way.cost]
        tokens = [
            sum(step.requests * way.tokens[end] for step, way in step_modes) / requests
            for end in (0, 1)
        ]
        ways.append(
            AnswerMode(
                mode.title,
                Span(*tokens),
                cost=Span(*map(sum, zip(*costs, strict=True))) if costs else None,
                seconds=Span(*map(sum, zip(*(way.seconds for _, way in step_modes), strict=True))),
            )
        )
    return Step(requests, sum(step.input_tokens for step in pending), tuple(ways))
