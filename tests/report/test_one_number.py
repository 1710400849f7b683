"""One measure has one value and one interval in every output of a run."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cant_do_that_anymore import Comparison, Estimate, Run, compare, load
from cant_do_that_anymore.formatting import in_points, number, percentage, rounded
from testing import Body, Loopback, cdta, serving_in_process, text_of

SCENARIOS = {
    "plain": (),
    "one wording": ("--wording", "plain"),
    "diagnosis": ("--diagnose",),
    "interventions": ("--interventions",),
}
# Texts of three numbers: a value with its interval.
Triple = tuple[str, ...]
_NUMBER = r"([+−]?[\d.,]*\d)(?:%| points?)?"
_INTERVALS = (
    re.compile(rf"{_NUMBER} \[{_NUMBER}, {_NUMBER}\]"),
    re.compile(rf"{_NUMBER} 95% interval {_NUMBER} to {_NUMBER}"),  # a tile
    re.compile(r"(−?\d\.\d+) (−?\d\.\d+) to (−?\d\.\d+)"),  # the original's numbers
)


def sums(request: Body) -> str:
    """Sums, in base 9 if told so and lucky; sometimes a reply without a number."""
    messages = request["messages"]
    text, question = str(messages), str(messages[-1]["content"])
    coin = Random(f"{text} {request['temperature'] > 0} {request['model']}").random()
    if "yes or no" in question or "no or yes" in question:
        return "yes" if coin < 0.6 else "no"
    if request["temperature"] and coin > 0.96:
        return "I am not sure."
    first, sign, second = re.findall(r"(\d+) ([+-]) (\d+)", text)[-1]
    told = "base 9" in text and coin < (0.7 if request["model"] == "quick" else 0.4)
    base = 9 if told else 10
    total = int(first, base) + int(second, base) * (1 if sign == "+" else -1)
    return in_base_9(total) if told else str(total)


def in_base_9(value: int) -> str:
    return (in_base_9(value // 9) if value > 8 else "") + str(value % 9)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving_in_process(sums, listed=("slow", "quick")) as server:
        yield server


def all_estimates(run: Run) -> Iterator[Estimate]:
    """Everything in a run that has an interval."""
    results = run.results
    yield from results.estimates.values()
    if results.wordings:
        yield from (results.wordings.spread, *results.wordings.by_wording.values())
    yield from (finding.estimate for finding in results.diagnosis.values() if finding.estimate)
    for effect in results.interventions:
        yield from (each for each in (effect.rule_uptake, effect.difference) if each)


def triples_of(estimates: Sequence[Estimate]) -> set[Triple]:
    """How an estimate may be printed, from either side if it is a difference."""
    return {
        tuple(bare(text(end or 0.0)) for end in (each.value, each.low, each.high))
        for estimate in estimates
        for each in (estimate, -estimate)
        for text in (rounded, in_points, number)
        if None not in (each.low, each.high)
    }


def bare(text: str) -> str:
    return text.strip("+%")


def triples_in(text: str) -> list[Triple]:
    """All numbers with an interval in a text."""
    line = " ".join(text.replace("\\", "").split())
    return [tuple(map(bare, found)) for pattern in _INTERVALS for found in pattern.findall(line)]


def shares_of(runs: Sequence[Run]) -> set[str]:
    """All percentages that an output may show of these runs."""
    shares = {"0%", "100%", "95%", "10%", "5%"}  # ends of scales, and limits in explanations
    for run in runs:
        for estimate in all_estimates(run):
            shares |= set(map(rounded, (estimate.value, estimate.low, estimate.high)))
        shares |= set(map(rounded, run.after_change.values()))
        for counts in (*run.results.outcomes.values(), *run.results.control_outcomes.values()):
            for n in (*counts.values(), counts.get("unreadable", 0)):
                share = n / sum(counts.values())
                shares |= {rounded(share), percentage(share, 0)}
        shares |= {percentage(effect.unusable, 0) for effect in run.results.interventions}
    return shares


def check_text(text: str, runs: Sequence[Run], differences: Sequence[Estimate] = ()) -> None:
    """Every number with an interval is that of an estimate, and every percentage of the runs."""
    estimates = [estimate for run in runs for estimate in all_estimates(run)]
    found = triples_in(text)
    assert set(found) <= triples_of([*estimates, *differences])
    for run in runs:
        assert triples_of([run["rule_uptake"]]) & set(found)
    assert set(re.findall(r"−?\d+(?:\.\d+)?%", text)) <= shares_of(runs)


def check_json(found: dict[str, Any], run: Run) -> None:
    """The names in JSON have the numbers of the run."""
    for name, estimate in run.results.estimates.items():
        assert found[name] == asdict(estimate)
    if run.results.wordings:
        assert found["wordings"] == asdict(run.results.wordings)
    assert set(found.get("diagnosis", {})) == set(run.results.diagnosis)
    for name, finding in run.results.diagnosis.items():
        assert finding.estimate
        assert found["diagnosis"][name] == asdict(finding.estimate) | {"answer": finding.answer}
    effects = {effect.name: asdict(effect) for effect in run.results.interventions}
    assert found.get("interventions", {}) == {
        name: {key: value for key, value in effect.items() if key != "name"}
        for name, effect in effects.items()
    }


def check_rows(run: Run, folder: Path) -> None:
    """The frame, CSV and the export have the numbers of the run."""
    frame = run.to_frame()
    assert list(frame.columns) == ["model", "measure", "value", "low", "high", "n"]
    assert list(frame.measure) == list(run.results.estimates)
    for row in frame.itertuples():
        assert (row.value, row.low, row.high, row.n) == (*asdict(run[row.measure]).values(),)
    aggregate, _ = run.export(folder)
    for result in json.loads(aggregate.read_text())["evaluation_results"]:
        estimate = run[result["metric_config"]["metric_id"].partition(".")[2]]
        interval = result["score_details"]["uncertainty"]["confidence_interval"]
        score = result["score_details"]["score"]
        assert (score, interval["lower"], interval["upper"]) == (
            *(estimate.value, estimate.low, estimate.high),
        )


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_measure_has_one_value_and_one_interval_everywhere(
    name: str, server: Loopback, tmp_path: Path
) -> None:
    options = ("--base-url", server.url, "--rules", "base-9", "-n", 40, *SCENARIOS[name])
    folders = {model: tmp_path / model for model in ("slow", "quick")}
    commands = {model: ("run", "--model", model, *options) for model in folders}
    printed = {m: cdta(*commands[m], "--json", "--out", folders[m], code=0) for m in folders}
    runs = {model: load(folder) for model, folder in folders.items()}
    for model, run in runs.items():
        check_json(json.loads(printed[model].stdout), run)
        check_json(json.loads((folders[model] / "run.json").read_text()), run)
        check_rows(run, tmp_path / "export")
        check_text(text_of((folders[model] / "report.html").read_text()), [run])
        check_text(text_of(run._repr_html_()), [run])
        verbose = ("--verbose",) if model == "slow" else ()
        again = cdta(*commands[model], *verbose, "--quiet", "--out", tmp_path / f"{model} again")
        check_text(again.stdout, [run])
    both, comparison = list(runs.values()), compare(*folders.values())
    check_comparison(comparison, both, folders, tmp_path)
    check_experiment(comparison, both, folders, tmp_path)


def differences_of(comparison: Comparison) -> list[Estimate]:
    return [pair.difference for pair in comparison.pairs if pair.difference]


def check_comparison(
    comparison: Comparison, runs: list[Run], folders: dict[str, Path], out: Path
) -> None:
    """The terminal, JSON, Markdown, the report and Python say the same of two runs."""
    differences = differences_of(comparison)
    command = ("compare", *folders.values(), "-o", out / "page.html")
    for output in ((), ("--markdown",)):
        check_text(cdta(*command, *output, code=0).stdout, runs, differences)
    check_text(text_of((out / "page.html").read_text()), runs, differences)
    [pair] = json.loads(cdta(*command, "--json", code=0).stdout)["pairs"]
    assert pair["difference"] == asdict(differences[0])
    [row] = comparison.to_frame("pairs").to_dict("records")
    found = (row["difference"], row["difference_low"], row["difference_high"], row["difference_n"])
    assert found == (*asdict(differences[0]).values(),)


def check_experiment(
    comparison: Comparison, runs: list[Run], folders: dict[str, Path], out: Path
) -> None:
    """The terminal, JSON, Markdown, CSV and the report of an experiment say the same."""
    differences = differences_of(comparison)
    command = ("experiment", *folders.values(), "--out", out / "all")
    for output in ((), ("--markdown",)):
        check_text(cdta(*command, *output, code=0).stdout, runs, differences)
    check_text(text_of((out / "all" / "index.html").read_text()), runs, differences)
    document = json.loads(cdta(*command, "--json", code=0).stdout)
    assert document["pairs"][0]["difference"] == asdict(differences[0])
    by_label = {row["label"]: row for row in document["results"]}
    with (out / "all" / "results.csv").open(encoding="utf-8") as file:
        table = {row["label"]: row for row in csv.DictReader(file)}
    for run in runs:
        check_json(by_label[run.model], run)
        for name, estimate in run.results.estimates.items():
            cells = [table[run.model][f"{name}{end}"] for end in ("", "_low", "_high")]
            expected = (estimate.value, estimate.low, estimate.high)
            assert [float(cell) for cell in cells] == pytest.approx(expected, abs=1e-6)
