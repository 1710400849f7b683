"""Replay a run from its cached answers: what it still has to ask, and what the answers show so far.

The search and the sampling are those of the run itself. Nothing is sent and no API key is needed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from ..client.cache import ModelCache
from ..datasets.pools import positions_drawn, positions_for
from ..datasets.search import Query, Search, SelectionConfig
from ..datasets.selection import controls_for, first_requests, known_dataset, selection_requests
from ..datasets.storage import Dataset
from ..game.position import Position
from ..providers.base import Answer, ModelInfo, Question, Request, RequestVariant, Settings, Usage
from ..task.conditions import control_conditions
from ..task.samples import trials_for
from ..task.spec import Spec
from ..task.types import Plan

# More cached answers add little to the estimate of their length.
MAX_CACHED = 100
# Requests that show how long the next ones are, and that are sent before a cost is approved.
PROBES = 20


@dataclass
class Step:
    """The requests of one step of a run.

    Attributes:
        settings: the settings of the requests.
        variant: the request variant that the model accepts, as far as known.
        unanswered: the requests without an answer; only the first while positions are searched.
        answered: how many requests have a cached answer.
        used: questions and tokens of cached answers.
        is_open: whether the number of requests depends on the search.
    """

    settings: Settings
    variant: RequestVariant
    unanswered: list[Request] = field(default_factory=list)
    answered: int = 0
    used: list[tuple[Question, Usage]] = field(default_factory=list)
    is_open: bool = False

    def add(self, request: Request, answer: Answer | None) -> None:
        """Add a request and its answer, if there is one."""
        if not answer:
            self.unanswered.append(request)
            return
        self.answered += 1
        if answer.usage.output_tokens:
            self.used.append((request.question, answer.usage))

    @property
    def to_send(self) -> int:
        """How many requests will be sent, whatever the search finds."""
        return 0 if self.is_open else len(self.unanswered)


@dataclass
class Remaining:
    """What a run still has to ask.

    Attributes:
        dataset: to build the dataset; measuring: to measure its positions.
        per_sample: requests for each position that is still to be found.
        wanted: how many positions.
        search: the search for positions, as far as answers are cached; None if they are known.
        gave_up: whether it ended there, because the pool holds too few.
    """

    dataset: Step
    measuring: Step
    per_sample: int
    wanted: int
    search: Search | None = None
    gave_up: bool = False

    @property
    def to_find(self) -> int:
        """Positions that are still to be found."""
        if not self.search or self.search.done or self.gave_up:
            return 0
        return self.wanted - len(self.search.hits)

    @property
    def is_complete(self) -> bool:
        """Whether the run has nothing left to ask."""
        return not (self.to_find or self.dataset.to_send or self.measuring.to_send)


def remaining(spec: Spec, plan: Plan, info: ModelInfo, cache: ModelCache) -> Remaining:
    """Replay a run from the cache.

    Raises:
        InvalidInput: if the spec is invalid.
    """
    per_position = len(plan.conditions) + spec.diagnose * len(control_conditions(plan))
    if plan.only_dataset:
        per_position = 0
    dataset_step, measuring = (Step(plan.settings, cache.variant(plan.settings)) for _ in range(2))
    rest = Remaining(dataset_step, measuring, per_position, plan.wanted)
    source, controls = positions_for(spec), list[Position]()
    if isinstance(source, Dataset):
        positions: Sequence[Position] = positions_drawn(source, spec)
    else:
        config = SelectionConfig(info, source, plan)
        rest.dataset = Step(config.settings, cache.variant(config.settings))
        selecting = _Selecting(spec, config, cache, rest)
        if dataset := selecting.existing_dataset():
            positions = positions_drawn(dataset, spec)
            controls = selecting.controls(dataset, positions) if spec.diagnose else []
        else:
            positions = selecting.search()
    trials = [] if plan.only_dataset else trials_for(positions, controls, plan)
    for trial, conditions in trials:
        requests = cache.same_limit_if_cut(trial.requests(conditions), plan.settings)
        answers = [cache.answer(request, plan.settings) for request in requests]
        for request, answer in zip(requests, answers, strict=True):
            measuring.add(request, answer)
    return rest


class _Selecting(NamedTuple):
    """Replays the selection of positions from a pool, as far as answers are cached."""

    spec: Spec
    config: SelectionConfig
    cache: ModelCache
    rest: Remaining

    def search(self) -> list[Position]:
        """Search up to the first request without an answer; return what will be measured."""
        spec, config, rest = self.spec, self.config, self.rest
        rest.search = search = Search(config, config.plan.wanted)
        for request in search.requests():
            answer = self._answer(request)
            if not answer:
                waiting = self._unanswered(search.requests())
                rest.dataset.unanswered = [request, *islice(waiting, PROBES - 1)]
                rest.dataset.is_open = True
                break
            rest.dataset.add(request, answer)
            search.observe(answer)
            rest.gave_up = search.gives_up(spec)
            if search.done or rest.gave_up:
                break
        if rest.gave_up:
            return []
        if not search.hits and rest.per_sample:  # these only show how long the answers are
            rest.measuring.is_open = True
            for _, request in first_requests(config, self.cache):
                rest.measuring.add(request, self.cache.answer(request, config.plan.settings))
        return search.hits

    def existing_dataset(self) -> Dataset | None:
        """Return the existing dataset, if any; the first answer names the model's version."""
        config, step = self.config, self.rest.dataset
        first = config.request(Query(0, 0))
        answer, name = self._answer(first), str(config.model.identity["name"])
        version = answer.version if answer else name.rpartition("/")[2]
        dataset = known_dataset(version, self.spec, config)
        if dataset:
            step.add(first, answer)
            for number in range(1, min(MAX_CACHED, len(config.ordered))):
                request = config.request(Query(number, 0))
                if answer := self._answer(request):
                    step.add(request, answer)
        return dataset

    def controls(self, dataset: Dataset, positions: Sequence[Position]) -> list[Position]:
        """Return the run's controls; if their answers are missing, any other positions."""
        config, step = self.config, self.rest.dataset
        missing = list(self._unanswered(selection_requests(dataset, config)))
        if not missing:
            return controls_for(dataset, positions, config, self.cache)
        step.unanswered += [request for request in missing if request not in step.unanswered]
        members = {member.moves for member in dataset.positions}
        others = (position for position in config.ordered if position.moves not in members)
        return list(islice(others, len(positions)))

    def _answer(self, request: Request) -> Answer | None:
        return self.cache.answer(request, self.config.settings)

    def _unanswered(self, requests: Iterable[Request]) -> Iterator[Request]:
        return (request for request in requests if not self._answer(request))
