"""Forecast a run: requests, tokens, dollars and seconds, each with a range.

The dry run says what is certain: which requests have no cached answer. The rest is not: how many
positions have to be searched, how long the answers are, and what they cost when they are sent.
`forecast` draws these many times from what is known, and adds each draw up. The range holds 95% of
the draws, and narrows as answers arrive.
"""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from ..client.budget import NOTHING, Range
from ..client.cache import ModelCache, open_cache
from ..client.pricing import pricing_for, unknown_price_note
from ..client.session import model_info
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..providers.base import ModelInfo
from ..task.conditions import CONTROL_CONDITIONS, DIAGNOSIS_CONDITIONS, MOST_REQUESTS
from ..task.option_info import COMMON
from ..task.plan import plan_for
from ..task.spec import Spec
from ..task.types import Plan
from .dry_run import Remaining, remaining
from .simulation import DRAWS, SEED, Draw, SearchDraws, StepDraws, pace_note
from .tokens import AnswerLength

LOW_EFFORTS = ("none", "minimal", "low")
ON_COMMON = (
    f"--pool {COMMON} measures another population: the positions of the default pool where at "
    "least one of four older models has the habit, not all those of this model"
)
DIAGNOSIS = (
    f"diagnosis: {len(DIAGNOSIS_CONDITIONS)} requests per sample and {len(CONTROL_CONDITIONS)} per "
    f"control, so up to {MOST_REQUESTS} per sample instead of 2"
)
SAME_MODEL = "not included: one request to check that the model has not changed"


class Figures(NamedTuple):
    """Requests, tokens, cost in US dollars and time; the cost is None if the price is unknown."""

    requests: Range = NOTHING
    input_tokens: Range = NOTHING
    output_tokens: Range = NOTHING
    dollars: Range | None = NOTHING
    seconds: Range = NOTHING

    def plus(self, other: "Figures") -> "Figures":
        """Add figures one by one; unknown costs count as nothing."""
        pairs = zip(self, other, strict=True)
        return Figures(*((mine or NOTHING).plus(theirs or NOTHING) for mine, theirs in pairs))


class Forecast(NamedTuple):
    """What a run still needs.

    Attributes:
        model: its display name.
        spec: the run.
        dataset: to build the dataset of positions where the model has the habit.
        measuring: to ask about each sample under every condition.
        total: both.
        at_once: the total if the model replies without reasoning; None where it is known whether.
        assumptions: what the figures are based on, one sentence each.
        key: distinguishes datasets that have to be built; None if the positions are known.
        answer: the length of an answer when measuring.
    """

    model: str
    spec: Spec
    dataset: Figures
    measuring: Figures
    total: Figures
    at_once: Figures | None
    assumptions: tuple[str, ...]
    key: str | None
    answer: AnswerLength

    @property
    def heading(self) -> str:
        """The model, the eval, and any effort and pool."""
        effort, pool = self.spec.reasoning_effort, self.spec.pool
        settings = [f"{effort} effort" if effort else "", f"pool {pool}" if pool else ""]
        return ", ".join(filter(None, (self.model, self.spec.eval, *settings)))

    @property
    def steps(self) -> dict[str, Figures]:
        """The steps that need requests, their total, and the total without reasoning.

        Empty if no request has to be sent.
        """
        steps = {"dataset": self.dataset, "measuring": self.measuring}
        rows = {title: step for title, step in steps.items() if step.requests.high}
        both = {"total": self.total} if len(rows) > 1 else {}
        return rows | both | ({"without reasoning": self.at_once} if self.at_once else {})

    @property
    def cheaper(self) -> list[str]:
        """Options that usually make evaluating the same model cheaper."""
        spec = self.spec
        measures = self.measuring.requests.high > 0
        is_default = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
        reasons = self.answer.low > self.answer.reply and not self.answer.at_once
        options = {
            f"--pool {COMMON}": self.key and spec.pool is None and is_default,
            "--eval all_small": measures and spec.eval == "all" and spec.n is None,
            "--reasoning-effort low": reasons and spec.reasoning_effort not in LOW_EFFORTS,
        }
        return [option for option, applies in options.items() if applies]

    @property
    def advice(self) -> list[str]:
        """Cheaper options, if the cost of the run may need approval."""
        cost = self.total.dollars
        return self.cheaper if cost and cost.high > (Spec.ask_above or 0.0) else []

    def rows(self) -> list[dict[str, object]]:
        """Return one row for each step and figure: the expected value, with a 95% range."""
        run = {"model": self.model, "eval": self.spec.eval}
        return [
            run
            | {"step": step, "measure": name, "value": figure.expected}
            | {"low": figure.low, "high": figure.high}
            for step, figures in self.steps.items()
            for name, figure in figures._asdict().items()
            if figure
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        names = ("dataset", "measuring", "total", "at_once")
        steps = {name: _as_json(getattr(self, name)) for name in names}
        run = {"model": self.model, "eval": self.spec.eval}
        return run | steps | {"assumptions": self.assumptions, "cheaper": self.advice}


def _as_json(value: Any) -> Any:
    """Return figures and ranges as JSON values."""
    if not isinstance(value, (Figures, Range)):
        return value
    return {name: _as_json(item) for name, item in value._asdict().items()}


def estimate(spec: Spec) -> Forecast:
    """Forecast a run from its cached answers; it sends no request and needs no key.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    info = model_info(spec)
    with open_cache(info, fresh=spec.fresh) as cache:
        return forecast(spec, plan_for(spec, info), info, cache)


def forecast(
    spec: Spec, plan: Plan, info: ModelInfo, cache: ModelCache, like: Forecast | None = None
) -> Forecast:
    """Forecast the rest of a run from its cached answers.

    Without any, its answers are taken to be as long as in another run of the model.
    """
    rest = remaining(spec, plan, info, cache)
    dataset = StepDraws(spec, info, rest.dataset, rest.measuring)
    measuring = StepDraws(spec, info, rest.measuring, rest.dataset)
    for model in (dataset, measuring):
        if like and model.answer.at_once:
            model.answer = like.answer
    random = Random(SEED)
    search = SearchDraws(spec, info, rest.search, rest.dataset, random) if rest.search else None
    unsure = dataset.answer.at_once or measuring.answer.at_once
    draws: list[tuple[Draw, Draw]] = []
    for number in range(DRAWS):
        at_once = unsure and number % 2 == 0
        missing = 0.0 if rest.is_complete else float(rest.to_find)
        searched, found = search.draw(missing) if search else (0.0, missing)
        to_measure = 0.0 if found is None else rest.measuring.to_send + found * rest.per_sample
        of_dataset = dataset.draw(rest.dataset.to_send + searched, random, at_once=at_once)
        draws.append((of_dataset, measuring.draw(to_measure, random, at_once=at_once)))
    totals = [tuple(map(sum, zip(*draw, strict=True))) for draw in draws]
    known_price = pricing_for(spec, info) is not None
    finding, asking, total = (
        _figures(column, known_price) for column in (*zip(*draws, strict=True), totals)
    )
    steps = {"building the dataset": (finding, dataset), "measuring": (asking, measuring)}
    pending = {title: model for title, (needs, model) in steps.items() if needs.requests.high}
    searching = search if rest.to_find else None
    has_cached = rest.dataset.answered or rest.measuring.answered
    assumptions = [
        searching.basis if searching else "",
        ON_COMMON if str(spec.pool) == COMMON else "",
        *_format_basis("input", {title: model.input_basis for title, model in pending.items()}),
        *_format_basis("answers", {title: model.answer.basis for title, model in pending.items()}),
        pace_note(spec, info),
        DIAGNOSIS if spec.diagnose else "",
        "" if known_price else unknown_price_note(info),
        SAME_MODEL if has_cached and not info.is_local else "",
    ]
    return Forecast(
        info.name,
        spec,
        finding,
        asking,
        total,
        _figures(totals[::2], known_price) if unsure and pending else None,
        tuple(filter(None, assumptions)) if pending else (_on_nothing_to_send(rest),),
        rest.search.config.digest if rest.search and rest.to_find else None,
        measuring.answer,
    )


def _on_nothing_to_send(rest: Remaining) -> str:
    """Say why a run has nothing to send."""
    if not (rest.search and rest.gave_up):
        return "all answers are cached"
    hits, searched = len(rest.search.hits), rest.search.searched
    return (
        f"the model plays the special move in {hits:,} of {searched:,} positions, too few for the "
        f"{rest.search.target:,} wanted, and the run stops there; use --keep-looking to search on"
    )


def _figures(draws: Sequence[Draw], known_price: bool) -> Figures:
    """Return the mean of the draws, and the range of 95% of them."""
    ranges = []
    for column in zip(*draws, strict=True):
        ordered = sorted(column)
        tail = round(0.025 * (len(ordered) - 1))
        ranges.append(Range(ordered[tail], fmean(ordered), ordered[-1 - tail]))
    figures = Figures(*ranges)
    return figures if known_price else figures._replace(dollars=None)


def _format_basis(figure: str, bases: Mapping[str, str]) -> list[str]:
    """Format the basis of a figure for each step, or once if it is the same for all."""
    if len(set(bases.values())) < 2:
        return [f"{figure}: {basis}" for basis in {*bases.values()}]
    return [f"{figure}, {step}: {basis}" for step, basis in bases.items()]
