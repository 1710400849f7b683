"""What a run will ask, as far as that can be foreseen, and what is kept of it.

The search and the drawing are those of the run itself, fed with the answers that are kept from
before, and with imagined ones where there is none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median

from ..client.cache import ModelCache
from ..client.pricing import is_patient
from ..datasets.pools import given_dataset, positions_drawn, positions_for
from ..datasets.search import BUILT, DRAWS, Query, Search, SelectionConfig, asked_in_waves
from ..datasets.selection import asks_behind, controls_for, found_dataset, prefix_if_sufficient
from ..datasets.storage import Dataset, rates_on_all, rates_on_common
from ..game.position import Position
from ..providers.base import Answer, ModelInfo, Question, Request, RequestVariant, Settings, Usage
from ..providers.request_variants import NO_TEMPERATURE, reasoning_budget
from ..task.samples import trials_for
from ..task.spec import COMMON, Spec
from ..task.types import Plan, Sample

ENOUGH_KEPT = 100
"""More answers say little more about how long they are."""
_IMAGINED = "imagined"
WEIGHT_OF_OTHERS = 10
"""What other models play counts as so many positions more that were asked."""


@dataclass
class Part:
    """The questions of one step of a run.

    Attributes:
        settings: what they are asked with.
        form: the form in which the model wants them, as far as known.
        to_ask: those that have no answer.
        answered: how many of those that were looked at have one.
        kept: those among them whose tokens were counted, and the tokens.
    """

    settings: Settings
    form: RequestVariant
    to_ask: list[Request] = field(default_factory=list)
    answered: int = 0
    kept: list[tuple[Question, Usage]] = field(default_factory=list)

    @property
    def thinks(self) -> bool:
        """Whether there is room to think: the model is known to, or it is asked to."""
        return reasoning_budget(self.form, self.settings) > 0

    def add(self, ask: Request, answer: Answer | None) -> None:
        """Count a question and its answer, if there is one."""
        if not answer:
            self.to_ask.append(ask)
            return
        self.answered += 1
        if answer.usage.output_tokens:
            self.kept.append((ask.question, answer.usage))


@dataclass(frozen=True)
class Foreseen:
    """The questions of a run.

    Attributes:
        dataset: to find the positions; measuring: to measure them.
        imagined: what is not known of the positions, and taken for granted; "" if they are known.
        samples: those of which all answers are kept, if the run is to stop by itself.
        looks: how often it then still looks whether it may stop.
    """

    dataset: Part
    measuring: Part
    imagined: str
    samples: list[Sample]
    looks: int = 1

    @property
    def to_ask(self) -> int:
        """How many questions have no answer."""
        return len(self.dataset.to_ask) + len(self.measuring.to_ask)

    @property
    def next_step(self) -> Part:
        """The step whose questions will be asked whatever the answers are."""
        if not self.imagined:
            return self.measuring
        first = [ask for ask in self.dataset.to_ask if not ask.draw]
        return replace(self.dataset, to_ask=first)


def foresee(spec: Spec, plan: Plan, known: ModelInfo, kept: ModelCache, under_way: int) -> Foreseen:
    """Foresee a run in which so many questions are under way at once, or as many as a wave has."""

    def part(settings: Settings) -> Part:
        return Part(settings, kept.form(settings))

    at_hand, measuring = positions_for(spec), part(plan.settings)
    controls: list[Position] = []
    if isinstance(at_hand, Dataset):
        positions = positions_drawn(at_hand, spec, plan)
        selection, imagined = part(plan.settings), ""
    else:
        criteria = SelectionConfig(known, at_hand, plan)
        selection = part(criteria.settings)
        found = _found(spec, criteria, kept, selection)
        if spec.fallback_dataset and not found:
            found = given_dataset(spec.fallback_dataset, plan.change)
        dataset, imagined = (
            (found, "")
            if found
            else _imagined(
                criteria,
                kept,
                selection,
                None if spec.batch else under_way,
                patient=is_patient(spec, known),
            )
        )
        positions = positions_drawn(dataset, spec, plan)
        if spec.diagnose:
            controls = _controls(dataset, positions, criteria, kept, selection)
    samples: list[Sample] = []
    for place, (draw, conditions) in enumerate(trials_for(positions, controls, plan)):
        asks = list(draw.asks(conditions))
        same_limit_only = kept.had_truncation(asks, plan.settings)
        asks = [replace(ask, same_limit_only=same_limit_only) for ask in asks]
        answers = [kept.answer(ask, plan.settings) for ask in asks]
        for ask, answer in zip(asks, answers, strict=True):
            measuring.add(ask, answer)
        told = [answer for answer in answers if answer]
        if plan.precision and len(told) == len(asks) and place < len(positions):
            samples.append(draw.sample(told, conditions, plan.reading))
    return Foreseen(selection, measuring, imagined, samples)


def _found(spec: Spec, criteria: SelectionConfig, kept: ModelCache, part: Part) -> Dataset | None:
    """The dataset that exists, if one does; the first question tells the model's version."""
    first = criteria.ask(Query(0, 0))
    answer = kept.answer(first, criteria.settings)
    version = answer.version if answer else _likely_version(criteria.model)
    found = prefix_if_sufficient(found_dataset(version, criteria), criteria.plan.wanted)
    if not found or (spec.fresh and found.origin == BUILT):
        return None
    part.add(first, answer)
    for number in range(1, min(ENOUGH_KEPT, len(criteria.ordered))):
        ask = criteria.ask(Query(number, 0))
        if answer := kept.answer(ask, criteria.settings):
            part.add(ask, answer)
    return found


def _controls(
    dataset: Dataset,
    positions: Sequence[Position],
    criteria: SelectionConfig,
    kept: ModelCache,
    part: Part,
) -> list[Position]:
    """Those of the run; where answers are imagined or lost, all that is no member may be one."""
    if dataset.origin != _IMAGINED:
        behind = asks_behind(dataset, criteria)
        lost = [ask for ask in behind if not kept.answer(ask, criteria.settings)]
        part.to_ask += [ask for ask in lost if ask not in part.to_ask]
        if not lost:
            return controls_for(dataset, positions, criteria, kept)
    members = {position.moves for position in dataset.positions}
    others = (each for each in criteria.ordered if each.moves not in members)
    return list(islice(others, len(positions)))


def _likely_version(model: ModelInfo) -> str:
    return str(model.identity["name"]).rpartition("/")[2]


def _imagined(
    criteria: SelectionConfig, kept: ModelCache, part: Part, under_way: int | None, *, patient: bool
) -> tuple[Dataset, str]:
    """The dataset as it may come out, and what that rests on."""
    search, settings = Search(criteria, criteria.plan.wanted), criteria.settings
    draws = DRAWS if NO_TEMPERATURE in kept.form(settings) else 1
    basis, plays = "", _spread(0.0)
    for ask in search.asks():
        answer = kept.answer(ask, settings)
        part.add(ask, answer)
        if answer:
            search.observe(answer)
        else:
            if not basis:
                rate, basis = _hit_rate(search, criteria.pool.name)
                if draws == 1 and criteria.model.may_think:
                    basis += "; each of those is asked twice more if it takes no temperature"
                plays = _spread(rate)
            search.advance(search.asks_again or next(plays), draws)
        if search.done or (search.is_hopeless and not patient):
            break
    if under_way is None:
        is_batched = asked_in_waves(criteria.plan.wanted, len(search.hits) / search.asked)
        under_way = max(0, is_batched - search.asked)
    for ask in islice(search.asks(), under_way if basis else 0):  # when the last hit is found
        part.add(ask, kept.answer(ask, settings))
    version = _likely_version(criteria.model)
    hits = search.hits or criteria.ordered[:1]
    return Dataset(version, _IMAGINED, hits, asked=search.asked), basis


def _spread(rate: float) -> Iterator[bool]:
    """Hits at that rate, as evenly as can be."""
    due = 0.0
    while True:
        due += rate
        yield due >= 1
        due -= due >= 1


def _hit_rate(search: Search, pool: str) -> tuple[float, str]:
    """The share of positions whose special move the model plays, and what that rests on."""
    rates = rates_on_common() if pool == COMMON else rates_on_all()
    hits = len(search.hits) + WEIGHT_OF_OTHERS * median(rates)
    rate = hits / (search.asked + WEIGHT_OF_OTHERS)
    among = ", each among the positions of the others" if pool == COMMON else ""
    others = (
        f"the middle of the shipped datasets ({100 * min(rates):.1f} to {100 * max(rates):.1f} %"
        f"{among})"
    )
    if search.asked:
        others = f"by {len(search.hits):,} of {search.asked:,} asked so far and {others}"
    return rate, (
        f"the special move is taken to be played in {100 * rate:.1f} % of positions, {others}"
    )
