"""Who is compared: the runs of one model under one plan, taken together."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

from ..datasets.storage import Dataset
from ..game.rules import identity_of
from ..metrics.compute import compute
from ..metrics.measures import IMPACT
from ..metrics.notes import notes_on
from ..metrics.types import Results
from ..runs.results import Run
from ..task.types import Plan, Sample
from .labels import labels, shown

OWN_TEMPERATURE = "the provider's own"


@dataclass(frozen=True)
class Contender:
    """One model, and all its runs that differ in nothing but the seed.

    Attributes:
        label: what it is called among the others.
        runs: in the order of their seeds.
        samples_by_run: of each run, those that no earlier one has; whatever is counted, measured or
            drawn of the model goes by these, and so do the ``controls``.
        results: what they come to together; askings of one position in several runs stay samples
            of one game, so intervals do not shrink merely because the same was asked again.
    """

    label: str
    runs: tuple[Run, ...]
    samples_by_run: tuple[list[Sample], ...]
    controls: list[Sample]
    results: Results

    @property
    def samples(self) -> list[Sample]:
        """Of all runs, each once."""
        return [sample for samples in self.samples_by_run for sample in samples]

    @property
    def plan(self) -> Plan:
        """Of its first run."""
        return self.runs[0].plan

    @property
    def seeds(self) -> list[int]:
        """Those of its runs, each once."""
        return list(dict.fromkeys(run.plan.settings.seed for run in self.runs))

    @property
    def notes(self) -> list[str]:
        """Those of its run, or those on its runs together and what else one of them has."""
        if len(self.runs) == 1:
            return self.runs[0].notes
        derived = {
            note
            for run in self.runs
            for note in notes_on(run.samples, run.results, run.plan, run.controls)
        }
        others = (note for run in self.runs for note in run.notes if note not in derived)
        return list(dict.fromkeys((*self.notes_together, *others)))

    @property
    def notes_together(self) -> list[str]:
        """As on a run: the same about each of its runs would be much to read."""
        plan = replace(self.plan, wanted=self.wanted)
        return notes_on(self.samples, self.results, plan, self.controls)

    @property
    def wanted(self) -> int:
        """How many samples there would be if no run, but for those that stop, lacked any."""
        lacking = (r.plan.wanted - len(r.samples) for r in self.runs if not r.plan.precision)
        return len(self.samples) + sum(lacking)

    @property
    def has_junk(self) -> bool:
        """Whether answers without a move could carry its numbers away."""
        return IMPACT in self.results.bounds

    @property
    def positions(self) -> frozenset[str]:
        """The ids of all it was asked about."""
        return frozenset(sample.position.id for sample in self.samples)

    @property
    def tokens(self) -> int:
        """Of all questions and answers behind its samples."""
        return int(self.results.metrics["usage_total_tokens"] or 0)

    @property
    def dollars(self) -> float | None:
        """What those answers cost; None where a price is unknown.

        Of a run that repeats others in part, it is as large a share as its own samples are.
        """
        total = 0.0
        for run, samples in zip(self.runs, self.samples_by_run, strict=True):
            if run.cost.measuring is None:
                return None
            total += run.cost.measuring * len(samples) / max(1, len(run.samples))
        return total

    @property
    def seconds(self) -> float:
        """How long its runs took."""
        return sum(run.seconds for run in self.runs)

    def by_position(self) -> dict[tuple[str, int], Sample]:
        """The samples by position, a position's askings by their number."""
        times: Counter[str] = Counter()
        found = {}
        for sample in self.samples:
            found[sample.position.id, times[sample.position.id]] = sample
            times[sample.position.id] += 1
        return found


def contenders(runs: Sequence[Run]) -> list[Contender]:
    """The runs by model and plan; one that is given twice, or repeats kept answers, counts once."""
    groups = grouped(runs)
    names = labels([group[0] for group in groups])
    return [_contender(name, group) for name, group in zip(names, groups, strict=True)]


def grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Those that differ in nothing but the seed together."""
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if _alike(group[0], run)), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    return groups


def _contender(label: str, runs: Sequence[Run]) -> Contender:
    # Of runs with one seed the longest comes first, so that what repeats it is seen to.
    ordered = sorted(runs, key=lambda run: (run.plan.settings.seed, -len(run.samples)))
    kept: list[tuple[Run, list[Sample]]] = []
    for run in ordered:
        new = _new(run, [earlier for earlier, _ in kept])
        if new or not kept:
            kept.append((run, new))
    samples = [sample for _, new in kept for sample in new]
    runs_kept = [run for run, _ in kept]
    controls = [
        control
        for place, run in enumerate(runs_kept)
        for control in _new(run, runs_kept[:place], "controls")
    ]
    # Where one of them stopped by itself, intervals allow for that.
    plan = max((run.plan for run in runs_kept), key=lambda plan: bool(plan.precision))
    results = compute(samples, plan, controls)
    return Contender(label, tuple(runs_kept), tuple(new for _, new in kept), controls, results)


def _new(
    run: Run, earlier: Sequence[Run], kind: Literal["samples", "controls"] = "samples"
) -> list[Sample]:
    """The samples that no earlier run has: with one seed, kept answers come again."""
    new: list[Sample] = getattr(run, kind)
    for other in earlier:
        if other.plan.settings == run.plan.settings:
            known = {(s.position.id, s.draw): s.replies for s in getattr(other, kind)}
            again = [s for s in new if (s.position.id, s.draw) in known]
            # Answers that differ were asked anew, and then those that agree were as well.
            if all(known[s.position.id, s.draw] == s.replies for s in again):
                new = [s for s in new if (s.position.id, s.draw) not in known]
    return new


def _alike(one: Run, other: Run) -> bool:
    return (
        _identity(one) == _identity(other)
        and (one.version, one.protocol) == (other.version, other.protocol)
        and _positions(one) == _positions(other)
        and not one.plan.differences(other.plan)
    )


def _positions(run: Run) -> tuple[str, str, str, str]:
    """Where its positions come from and how they were selected, the same for all seeds."""
    dataset = run.dataset
    return dataset.version, dataset.origin, dataset.pool, dataset.selection


def _identity(run: Run) -> str:
    return json.dumps(run.identity, sort_keys=True, default=str)


def names_without_effort(runs: Sequence[Run]) -> list[str]:
    """What each is called whatever its effort: one name for those that differ in nothing else.

    It is the name that they were asked for by, unless this is that of others as well.
    """
    bare = [_without_effort(run) for run in runs]
    groups = grouped(bare)
    firsts = [group[0] for group in groups]
    told, asked_for = labels(firsts), [first.model for first in firsts]
    pairs = list(zip(told, asked_for, strict=True))
    called = [label if asked_for.count(name) > 1 else name for label, name in pairs]
    unique = called if len(set(called)) == len(called) else told
    names = {id(run): name for name, group in zip(unique, groups, strict=True) for run in group}
    return [names[id(run)] for run in bare]


def _without_effort(run: Run) -> Run:
    settings = replace(run.plan.settings, reasoning_effort=None)
    selected_at = run.plan.select_effort if run.dataset.asked else None  # or nobody selected
    return replace(run, plan=replace(run.plan, settings=settings, select_effort=selected_at))


def differences_in_plan(models: Sequence[Contender], but: Collection[str] = ()) -> list[str]:
    """What was not the same for all, one sentence each, but for what is told elsewhere."""
    names = {name for model in models[1:] for name in models[0].plan.differences(model.plan)}
    looked_at: dict[str, Callable[[Run], object]] = {
        **{name: partial(_of_plan, name) for name in sorted(names - {"temperature", *but})},
        "the temperature that was used": _temperature_used,
        "how their datasets were selected": lambda run: (
            f"{run.dataset.origin} {run.dataset.selection}".strip()
        ),
    }
    notes = []
    for what, of in looked_at.items():
        values = {m.label: " and ".join(sorted({shown(of(r)) for r in m.runs})) for m in models}
        if len(set(values.values())) > 1:
            who = "; ".join(f"{label}: {value}" for label, value in values.items())
            notes.append(f"the runs differ in {what}, which may be why they score apart ({who})")
    return notes


def _of_plan(name: str, run: Run) -> object:
    plan, attribute = run.plan, name.replace(" ", "_")
    if attribute == "conditions":
        return ", ".join(f"{each.name} {each.text!r:.40}" for each in plan.conditions)
    if attribute == "change":
        return identity_of(plan.change)
    return getattr(plan if hasattr(plan, attribute) else plan.settings, attribute)


def _temperature_used(run: Run) -> object:
    return OWN_TEMPERATURE if run.own_temperature else run.plan.settings.temperature


def common_dataset(models: Sequence[Contender]) -> Dataset | None:
    """The dataset that all were measured on, if it was the same for all.

    Who stops by itself was measured on the beginning of it.
    """
    datasets = [run.dataset for model in models for run in model.runs]
    same = len({(each.version, each.origin, each.endpoint) for each in datasets}) == 1
    by_size = sorted((model.positions for model in models), key=len)
    stops = any(run.plan.precision for model in models for run in model.runs)
    beginnings = stops and all(fewer <= more for fewer, more in pairwise(by_size))
    return datasets[0] if same and (beginnings or len(set(by_size)) == 1) else None
