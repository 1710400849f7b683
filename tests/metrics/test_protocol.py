"""The protocol is complete: an implementation from its text alone gives the numbers of the code.

All before the first test follows docs/protocol.md. The package only makes runs and their numbers.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from math import exp, gamma, lgamma, pi, sqrt
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean, pstdev, variance
from typing import Any, NamedTuple

import numpy as np
import pytest

from cant_do_that_anymore import Answer
from cant_do_that_anymore.comparison.leaderboard import check_baseline, ranking_of
from cant_do_that_anymore.habits.catalog import resolve_change
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import save_run
from cant_do_that_anymore.task.conditions import conditions_for
from cant_do_that_anymore.task.prompts import wordings_named
from run_builders import plan_of, run_from_answers

Samples = Sequence[Any]  # lines of samples.jsonl
Pairs = Sequence[tuple[float, float]]  # of part and whole
Event = tuple[str, str, tuple[str, ...]]  # a condition, a key of its reply, and the values
UNUSABLE = ("unreadable", "truncated", "refused", "error")
AS_SCORED, LOWEST, HIGHEST = (None, None), (0, 1), (1, 0)
SUPPORTS: dict[str, Pairs] = {
    "share": [(0, 1), (1, 1)],
    "difference": [(-1, 1), (0, 1), (1, 1)],
    "drop": [(-1, 0), (0, 0), (0, 1), (1, 1)],
}


def outcome(condition: str, kind: str = "usual") -> Event:
    return condition, "outcome", (kind,)


def violation(condition: str) -> Event:
    return condition, "under_change", ("usual", "forbidden", "illegal", *UNUSABLE)


def holds(event: Event, sample: Any, unusable: int | None = None) -> int:
    reply = sample["replies"][event[0]]
    if unusable is not None and reply["outcome"] in UNUSABLE:
        return unusable
    return int(reply[event[1]] in event[2])


def answered(sample: Any) -> bool:
    return all(reply["outcome"] != "error" for reply in sample["replies"].values())


def bisect(accepted: Callable[[float], bool], inside: float, outside: float) -> float:
    for _ in range(200):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
    return inside


NODES, WEIGHTS = np.polynomial.legendre.leggauss(300)


def integral(of: Callable[[Any], Any], end: float) -> float:
    return float((WEIGHTS * of((NODES + 1) * end / 2)).sum() * end / 2)


@cache
def student(freedom: float, alpha: float) -> float:
    """The two-sided critical value: sqrt(freedom) times the tangent of what is integrated."""
    total = sqrt(pi) / 2 * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2))
    inside = (1 - alpha) * total
    angle = bisect(lambda x: integral(lambda y: np.cos(y) ** (freedom - 1), x) < inside, 0, pi / 2)
    return float(sqrt(freedom) * np.tan(angle))


def chi_squared(x: float, freedom: int) -> float:
    scale = 2 ** (1 - freedom / 2) / gamma(freedom / 2)
    return scale * integral(lambda root: root ** (freedom - 1) * np.exp(-(root**2) / 2), sqrt(x))


def groups_of(samples: Samples) -> list[int]:
    """Merged groups: each sample has the lowest index of those with its group or subject."""
    keys = [(s.get("game_idx", s.get("group", s["id"])), subject_of(s)) for s in samples]
    numbers = list(range(len(keys)))
    while True:
        before = numbers
        for side in (0, 1):
            known = sorted(zip(numbers, keys, strict=True), reverse=True)
            lowest = {key[side]: number for number, key in known}
            numbers = [lowest[key[side]] for key in keys]
        if numbers == before:
            return numbers


def subject_of(sample: Any) -> str:
    return " ".join(sample.get("previous_moves", [sample.get("question")]))


def sums_by(groups: Sequence[int], values: Sequence[float]) -> dict[int, float]:
    return {g: sum(v for v, h in zip(values, groups, strict=True) if h == g) for g in set(groups)}


def score_interval(
    pairs: Pairs, support: Pairs, groups: Sequence[int], alpha: float
) -> tuple[float, float]:
    value = sum(a for a, _ in pairs) / sum(w for _, w in pairs)
    sizes, critical = Counter(groups).values(), NormalDist().inv_cdf(1 - alpha / 2)
    if len(sizes) < len(groups):
        squares = sum(m**2 for m in sizes)
        freedom, added = len(groups) ** 2 / squares, sum(m**3 for m in sizes) / squares
        deviations = [a - value * w for a, w in pairs]
        clustered = sum(d**2 for d in sums_by(groups, deviations).values())
        clustered *= freedom / (freedom - 1) if freedom > 1 else 1
        largest = max((a - value * w) ** 2 for a, w in support)
        alone = sum(d**2 for d in deviations)
        effect = (clustered + largest * added**2) / (alone + largest * added)
        critical = student(freedom, alpha) * sqrt(max(1.0, effect))
    counts = Counter(pairs)

    def accepted(ratio: float) -> bool:
        """Whether the root m is at most c^2 / |S|, given that the sum falls with m."""
        total = sum(n * (a - ratio * w) for (a, w), n in counts.items())
        sign = 1 if total > 0 else -1
        lowest = min(sign * (a - ratio * w) for a, w in support)
        if total == 0 or lowest >= 0:
            return total == 0
        m, seen = critical**2 / abs(total), ((a - ratio * w, n) for (a, w), n in counts.items())
        return m >= -1 / lowest or sum(n * sign * d / (1 + m * sign * d) for d, n in seen) <= 0

    def end(step: float) -> float:
        inside, outside = value, value + step
        while accepted(outside):
            step *= 2
            inside, outside = outside, outside + step
        return bisect(accepted, inside, outside)

    return end(-1.0), end(1.0)


class Side(NamedTuple):
    """A value of a run, or one side of a difference: its kind, its samples and its events."""

    kind: str
    samples: Samples
    a: Event
    b: Event | None = None

    def pairs(self, reading: Any) -> Pairs:
        first = [holds(self.a, sample, reading[0]) for sample in self.samples]
        second = [holds(self.b, s, reading[1]) if self.b else 0 for s in self.samples]
        wholes = first if self.kind == "drop" else [1] * len(first)
        return [(a - b, w) for a, b, w in zip(first, second, wholes, strict=True)]

    def support(self, pairs: Pairs) -> Pairs:
        wholes = {w for _, w in pairs}
        return [p for p in SUPPORTS[self.kind] if len(wholes) > 1 or p[1] in wholes]

    def has_unusable(self) -> bool:
        names = [event[0] for event in (self.a, self.b) if event]
        return any(s["replies"][c]["outcome"] in UNUSABLE for s in self.samples for c in names)

    def is_defined(self) -> bool:
        return any(self.kind != "drop" or holds(self.a, s, unusable=0) for s in self.samples)


def uptake(samples: Samples, condition: str = "changed") -> Side:
    return Side("drop", samples, violation("standard"), violation(condition))


def number(*sides: Side, alpha: float = 0.05, sign: int = 1) -> Any:
    """The value of one side, or the difference of two."""
    rows = [row for row in zip(*(s.samples for s in sides), strict=True) if all(map(answered, row))]
    scored = [side._replace(samples=[row[k] for row in rows]) for k, side in enumerate(sides)]
    if not all(side.is_defined() for side in scored):
        return None
    found = [with_interval(scored, (AS_SCORED, AS_SCORED), alpha)]
    if any(side.has_unusable() for side in sides):
        opposite = (LOWEST, HIGHEST), (HIGHEST, LOWEST)
        found += [with_interval(sides, readings, alpha) for readings in opposite]
    low, high = min(each[1] for each in found), max(each[2] for each in found)
    low, high = sorted((sign * low, sign * high))
    return {"value": sign * found[0][0], "low": low, "high": high, "n": len(rows)}


def with_interval(sides: Sequence[Side], readings: Any, alpha: float) -> tuple[float, float, float]:
    each = [side.pairs(reading) for side, reading in zip(sides, readings, strict=False)]
    values = [sum(a for a, _ in pairs) / sum(w for _, w in pairs) for pairs in each]
    rows = zip(zip(*each, strict=True), groups_of(sides[0].samples), strict=True)
    remaining = [(row, group) for row, group in rows if any(map(any, row))]
    means = [fmean(row[k][1] for row, _ in remaining) for k in range(len(sides))]
    value = values[0] - sum(values[1:])

    def linear(row: Any) -> tuple[float, float]:
        shifts = [(a - v * w) / m for (a, w), v, m in zip(row, values, means, strict=True)]
        return (value + shifts[0] - shifts[1], 1.0) if len(row) == 2 else row[0]

    supports = (side.support(pairs) for side, pairs in zip(sides, each, strict=True))
    support, pairs = map(linear, product(*supports)), [linear(row) for row, _ in remaining]
    return value, *score_interval(pairs, list(support), [group for _, group in remaining], alpha)


def mean(values: Sequence[float], groups: Sequence[int], *, signed: bool = False) -> Any:
    n, center, sizes = len(values), fmean(values), Counter(groups)
    shifts = [(s - sizes[g] * center) / (n - sizes[g]) for g, s in sums_by(groups, values).items()]
    error = sqrt((len(sizes) - 1) / len(sizes) * sum(shift**2 for shift in shifts))
    reach = student(n**2 / sum(m**2 for m in sizes.values()) - 1, 0.05) * error
    factor = exp(reach / center)
    ends = (center - reach, center + reach) if signed else (center / factor, center * factor)
    return {"value": center, "low": ends[0], "high": ends[1], "n": n}


def wordings(samples: Samples, names: Sequence[str], pooled: Any) -> Any:
    dealt: dict[str, list[Any]] = {name: [] for name in names}
    for sample in samples:
        dealt[names[int(sample["id"], 16) // 2 % len(names)]].append(sample)
    found = {name: number(uptake(own)) for name, own in dealt.items()}
    values, sizes = ([estimate[key] for estimate in found.values()] for key in ("value", "n"))
    half = (pooled["high"] - pooled["low"]) / 2
    errors = np.array([(half / 1.959963984540054) ** 2 * sum(sizes) / n for n in sizes])

    def probability(x: float) -> float:
        weights = 1 / (errors + x**2)
        squares = (values - np.average(values, weights=weights)) ** 2
        return chi_squared(float((squares * weights).sum()), len(values) - 1)

    spread = min(1.0, sqrt(max(0.0, variance(values) - float(errors.mean()))))
    low = bisect(lambda x: probability(x) >= 0.975, 0, 1)
    high = bisect(lambda x: probability(x) >= 0.025, 0, 1)
    ends = {"low": min(low, spread), "high": max(high, spread)}
    return {"spread": {"value": spread, **ends, "n": len(values)}, "by_wording": found}


def diagnosis(samples: Samples, controls: Samples, alpha: float) -> Any:
    after, before = outcome("changed"), outcome("standard")
    right, wrong = outcome("knows_allowed", "right"), outcome("knows_forbidden", "wrong")
    found = {
        "knowledge": number(Side("difference", samples, right, wrong)),
        "rule_effect": number(Side("difference", samples, outcome("placebo"), after)),
        "reminder_effect": number(uptake(samples, "reminded"), uptake(samples), alpha=alpha),
        "other_play": number(Side("difference", controls, after, before)),
    }
    delta = number(Side("difference", samples, after, before))
    result = {
        name: {**e, "answer": verdict(name, e["low"], e["high"])} for name, e in found.items()
    }
    if result["rule_effect"]["answer"] == "Yes" and delta["high"] >= 0:
        result["rule_effect"]["answer"] = "Can't tell"
    return result


def verdict(name: str, low: float, high: float) -> str:
    threshold = 0.5 if name == "knowledge" else 0
    if low <= 0 <= high or low <= threshold <= high:
        return "Can't tell"
    return "Yes" if (low > threshold) != (name == "other_play") else "No"


def effect(samples: Samples, name: str, alpha: float) -> Any:
    both = [(s["replies"][name], s["replies"]["changed"]) for s in samples if answered(s)]
    return {
        "rule_uptake": number(uptake(samples, name)),
        "difference": number(uptake(samples, name), uptake(samples), alpha=alpha),
        "unusable": fmean(s["replies"][name]["outcome"] in UNUSABLE for s in samples),
        "extra_tokens": fmean(tokens(first) - tokens(second) for first, second in both),
    }


def tokens(reply: Any) -> int:
    return int(reply["usage"]["input_tokens"] + reply["usage"]["output_tokens"])


def numbers(file: Any, samples: Samples, controls: Samples) -> dict[str, Any]:
    """All numbers of a run, from its files."""
    scored, conditions = [s for s in samples if answered(s)], file["prompts"]
    groups, before, after = groups_of(scored), outcome("standard"), outcome("changed")
    result: dict[str, Any] = {
        "rule_uptake": number(uptake(samples)) if any(holds(before, s) for s in scored) else None,
        "variant_impact_factor": number(Side("drop", samples, before, after), sign=-1),
        "delta": number(Side("difference", samples, before, after), sign=-1),
        "predicted_move_proportion": number(Side("share", samples, before)),
        "predicted_move_in_variant_proportion": number(Side("share", samples, after)),
        **{"n": len(scored), "groups": len(set(groups)), "failed": len(samples) - len(scored)},
    }
    if "previous_moves" in samples[0]:
        moves, none = [len(s["previous_moves"]) for s in scored], {"low": None, "high": None}
        for name, value in ("avg", fmean(moves)), ("std", pstdev(moves)):
            result[f"{name}_num_previous_moves"] = {"value": value, **none, "n": len(moves)}
    used = {c: [s["replies"][c]["usage"]["thinking_tokens"] for s in scored] for c in conditions}
    if any(map(any, used.values())):
        result |= {f"{name}_reasoning_tokens": mean(own, groups) for name, own in used.items()}
        more = [b - a for a, b in zip(used["standard"], used["changed"], strict=True)]
        result["reasoning_tokens_difference"] = mean(more, groups, signed=True)
    if len(prompts := list(conditions["standard"])) > 1:
        result["wordings"] = wordings(samples, prompts, result["rule_uptake"])
    helps = file["options"].get("interventions", [])
    if "placebo" in conditions:
        alpha = 0.05 / (len(helps) if "reminded" in helps else 1)
        result["diagnosis"] = diagnosis(samples, controls, alpha)
    if helps:
        result["interventions"] = {i: effect(samples, i, 0.05 / len(helps)) for i in helps}
    return result


def difference(samples: Samples, others: Samples, alpha: float) -> Any:
    """The difference of two models: the n-th sample of an id is paired with the n-th."""
    keyed = []
    for each in (samples, others):
        ids = [sample["id"] for sample in each]
        keyed.append({(s["id"], ids[:k].count(s["id"])): s for k, s in enumerate(each)})
    shared = [key for key in keyed[0] if key in keyed[1]]
    return number(*(uptake([each[key] for key in shared]) for each in keyed), alpha=alpha)


def is_ranked(file: Any) -> bool:
    counts = [file["outcomes"][condition] for condition in ("standard", "changed")]
    cut_off = max(count["truncated"] / sum(count.values()) for count in counts)
    unusable = max(sum(count[k] for k in UNUSABLE) / sum(count.values()) for count in counts)
    return bool(file["rule_uptake"]) and cut_off <= 0.05 and unusable <= 0.1


DIAGNOSIS = ("standard", "changed", "placebo", "reminded", "knows_forbidden", "knows_allowed")


def drawn(seed: int, conditions: Sequence[str] = DIAGNOSIS[:2], **given: Any) -> Run:
    """A run with random replies, several items per group, and two items in two groups each."""
    defaults = {"n": 60, "faults": 0.06, "follows": 0.5, "wording": "plain", "helps": []}
    options: dict[str, Any] = {**defaults, **given}
    rng, change = Random(seed), resolve_change(given.get("rules", "bishops-as-knights"))
    n, names = options["n"], tuple(dict.fromkeys((*conditions, *options["helps"])))
    items: Any = change.its_habit.pool(change).items[: 2 * n]
    field, kind = ("game", int) if hasattr(items[0], "game") else ("group", str)
    if seed > 1:
        items = [replace(item, **{field: kind(int(item.id, 16) % (n // 2))}) for item in items]
        items += [replace(item, **{field: kind(99)}) for item in items[-2:]]
    texts = wordings_named(options["wording"], change)

    def answer(item: Any, condition: str) -> Answer:
        usage = Usage(rng.randrange(99), rng.randrange(40), rng.randrange(40) * (seed > 1))
        if rng.random() < options["faults"]:
            reason: Any = rng.choice(["stop", "length", "refused", "error"])
            return Answer("", reason, usage, error="down" * (reason == "error"))
        says = [item.usual[0], rng.choice(change.guesses(item)), "a1h7"]
        by_wording = int(item.id, 16) // 2 % len(texts) / 2 / len(texts)
        follows = options["follows"] + by_wording if condition != "standard" else 0.2 * (seed > 1)
        weights = [1 - follows, follows, 0.1 * (seed > 1)]
        if "knows" in condition:
            says, weights = ["yes", "no"], [5, 1] if "allowed" in condition else [1, 1]
        return Answer(rng.choices(says, weights)[0], "stop", usage, cost=rng.random())

    plan = plan_of(
        change=change,  # type: ignore[arg-type]
        wordings=tuple(text.name for text in texts),
        conditions=conditions_for(names, change, *texts),
        interventions=tuple(options["helps"]),
    )
    controls = [(item, {c: answer(item, c) for c in DIAGNOSIS[:3]}) for item in items[:n]]
    return run_from_answers(
        [(item, {c: answer(item, c) for c in names}) for item in items[n:]],
        plan,
        controls if "placebo" in names else (),
        **{"model": f"m{seed}", "version": f"m{seed}", "identity": {"name": f"m{seed}"}},
        options={"interventions": options["helps"]},
    )


def files_of(run: Run, folder: Path) -> tuple[Any, Samples, Samples]:
    save_run(run, folder)
    paths = [folder / "samples.jsonl", folder / "controls.jsonl"]
    lines = [path.read_text().splitlines() if path.exists() else [] for path in paths]
    samples, controls = ([json.loads(line) for line in each] for each in lines)
    return json.loads((folder / "run.json").read_text()), samples, controls


def assert_equal(given: Any, computed: Any, where: str = "") -> None:
    if isinstance(computed, dict):
        assert given.keys() == computed.keys(), where
        for name in computed:
            assert_equal(given[name], computed[name], f"{where} {name}")
    elif isinstance(computed, float):
        assert given == pytest.approx(computed, 1e-9, 1e-9), where
    else:
        assert given == computed, where


RUNS: dict[str, Any] = {
    "perfect": {"seed": 1, "follows": 1, "faults": 0},
    "unusable": {"seed": 2, "n": 30, "follows": 0.01, "faults": 0.4},
    "wordings": {"seed": 3, "wording": "all", "n": 200, "faults": 0.01, "follows": 0.3},
    "diagnosis": {"seed": 4, "conditions": DIAGNOSIS, "n": 150, "faults": 0.02},
    "interventions": {"seed": 5, "helps": ["reason-first", "repeated"]},
    "questions": {
        **{"seed": 6, "rules": "base-9"},
        **{"conditions": DIAGNOSIS, "helps": ["example", "reminded"]},
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_the_protocol_gives_the_numbers_of_a_run(name: str, tmp_path: Path) -> None:
    file, samples, controls = files_of(drawn(**RUNS[name]), tmp_path / "run")
    computed = numbers(file, samples, controls)
    assert_equal({name: file[name] for name in computed}, computed)
    estimates = {name for name, each in file.items() if isinstance(each, dict) and "low" in each}
    assert estimates | ({"wordings", "diagnosis", "interventions"} & file.keys()) <= computed.keys()


def test_the_protocol_gives_the_differences_of_a_ranking(tmp_path: Path) -> None:
    options: list[Any] = [{"follows": 0.9, "faults": 0.02}, {"follows": 0.2}, {"faults": 0.3}]
    runs = [drawn(number, n=120, **own) for number, own in enumerate(options, start=2)]
    files = {run.model: files_of(run, tmp_path / run.model) for run in runs}
    ranked = {model: is_ranked(files[model][0]) for model in files}
    uptakes = {model: files[model][0]["rule_uptake"]["value"] for model in files}
    order, ranking = sorted(files, key=lambda m: (not ranked[m], -uptakes[m])), ranking_of(runs)
    assert [entry.label for entry in ranking.entries] == order
    assert {label for label, is_so in ranked.items() if not is_so} == ranking.why_unranked.keys()
    for pair, (first, second) in zip(ranking.pairs, combinations(order, 2), strict=True):
        computed = difference(files[first][1], files[second][1], 0.05 / 3)
        assert_equal(vars(pair.difference), computed)
        assert (pair.verdict == "different") == (computed["low"] * computed["high"] > 0)
    check = check_baseline(ranking_of(runs[:2]), runs[:1], tolerance=0.3)
    change = difference(files["m3"][1], files["m2"][1], 0.05)
    assert_equal(vars(check.difference), change)
    assert check.verdict == ("worse" if change["high"] < -0.3 else "inconclusive")
