"""Compares measured with planted values, for mixtures of two models with known behavior.

    python benchmarks/calibration.py -o docs/images/calibration.png    # about five minutes

A mixture plays like `cdta/pocket`, but in a planted share of positions it follows the changed rules
like `cdta/pocket-rules`. It knows the rule in the same share of positions, but not the same ones;
elsewhere it answers by the old rule. A reminder makes it follow the rule in half of the other
positions. The placebo changes nothing. All other values follow from the network's likelihoods.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from markdown_tables import print_heading, print_row
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cant_do_that_anymore import Position, Run, Spec, evaluate
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.base import (
    Answer,
    Model,
    Question,
    RequestVariant,
    Settings,
    local_info,
)
from cant_do_that_anymore.providers.pocket import POCKET, POCKET_RULES, PocketModel, load_network

PLANTED_SHARES = [step / 10 for step in range(11)]
SAMPLES = 1000
REMINDED_SHARE = 0.5
"""Share of positions where a reminder makes the model follow a rule that it would break."""
TITLES = {
    "variant_impact_factor": "impact factor",
    "corrected_impact_factor": "corrected",
    "specific_impact_factor": "specific",
    "collateral_change": "collateral change",
    "reminder_effect": "reminder",
    "rule_knowledge": "knowledge of the rule (J)",
    "knowing_doing_gap": "gap between knowing and doing",
    "knowing_effect": "effect of knowing",
}
PANELS = (
    ("variant_impact_factor", "corrected_impact_factor", "specific_impact_factor"),
    ("rule_knowledge", "knowing_doing_gap"),
)
COLORS = ("#0072b2", "#c44f00", "#009e73")


@dataclass(frozen=True)
class CalibrationPoint:
    """A planted value, the measured value, and the ends of its interval."""

    planted: float
    measured: float
    low: float
    high: float

    @property
    def is_covered(self) -> bool:
        """Whether the interval contains the planted value."""
        return self.low <= self.planted <= self.high


class Mixture(Model):
    """Follows and knows the changed rules in a planted share of the positions."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._habit, self._rules = PocketModel(POCKET), PocketModel(POCKET_RULES)
        self.info = local_info(f"mixture-{share:g}", self._habit.info.connections)

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        knows, follows, reacts_to_reminder = self._draw_behavior(question)
        if question.about:
            reply = "yes" if question.is_legal == knows else "no"
            return Answer(reply, version=self.info.name)
        is_reminder = "Remember" in question.messages[-1].content
        adapts = follows or (is_reminder and reacts_to_reminder)
        is_changed = question.rules == BISHOPS_AS_KNIGHTS
        model = self._rules if is_changed and adapts else self._habit
        answer = await model.answer(question, settings)
        return Answer(answer.text, version=self.info.name)

    def _draw_behavior(self, question: Question) -> tuple[bool, bool, bool]:
        """Draw whether it knows the rule here, follows it, and reacts to a reminder."""
        random = Random(f"{self.info.name} {' '.join(question.moves)}")
        knows, follows = random.random() < self._share, random.random() < self._share
        return knows, follows, random.random() < REMINDED_SHARE


def planted_values(share: float, run: Run) -> dict[str, float]:
    """Return the expected values of a mixture's measures on the positions of the run."""
    habits, _ = _likelihoods([sample.position for sample in run.samples])
    controls, allowed = _likelihoods([control.position for control in run.controls])
    # Under the rules, the network distributes the likelihood of illegal moves over legal ones.
    collateral = share * float((controls / allowed).sum() / controls.sum() - 1)
    return {
        "variant_impact_factor": -share,
        "corrected_impact_factor": -share,
        "specific_impact_factor": (1 - share) / (1 + collateral) - 1,
        "collateral_change": collateral,
        "reminder_effect": -REMINDED_SHARE,
        "rule_knowledge": 2 * share - 1,
        "knowing_doing_gap": (1 - share) * float((habits**2).sum() / habits.sum()),
        "knowing_effect": 0.0,
    }


def _likelihoods(positions: Sequence[Position]) -> tuple[np.ndarray, np.ndarray]:
    """Return the likelihood of the habit, and of all legal moves, in each position."""
    network = load_network()
    habits, allowed = [], []
    for position in positions:
        (scores,) = network.scores([network.tokens(position.moves)])
        legal = [move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(position.board())]
        scores = scores[: len(network.moves)]
        likelihoods = np.exp((scores - scores.max()).astype(np.float64))
        likelihoods /= likelihoods.sum()
        habits.append(likelihoods[[network.token[move] for move in position.special_moves]].sum())
        allowed.append(likelihoods[[network.token[move] for move in legal]].sum())
    return np.array(habits), np.array(allowed)


def measure_mixture(share: float, n: int) -> dict[str, CalibrationPoint]:
    """Evaluate a mixture with a planted share."""
    run = evaluate(Spec(n=n, diagnose=True), Mixture(share), quiet=True)
    points = {}
    for name, truth in planted_values(share, run).items():
        value, interval = run.results.metrics[name], run.results.intervals.get(name)
        if value is not None and interval:
            points[name] = CalibrationPoint(truth, value, interval.low, interval.high)
    return points


def plot(by_share: Mapping[float, Mapping[str, CalibrationPoint]], path: Path) -> None:
    """Plot measured against planted values."""
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, names in zip(panels, PANELS, strict=True):
        for number, name in enumerate(names):
            points = [by_name[name] for by_name in by_share.values() if name in by_name]
            shift = 0.012 * (number - (len(names) - 1) / 2)
            _plot_points(axes, points, shift, COLORS[number], TITLES[name])
        low, high = (-1, 0) if names == PANELS[0] else (-1, 1)
        axes.plot([low, high], [low, high], color="#1c1d1f", linewidth=0.8, zorder=0)
        axes.set_xlabel("planted")
        axes.set_ylabel("measured, with 95% interval")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
    figure.suptitle(
        f"Measured against planted: {SAMPLES:,} samples and controls each", x=0.01, ha="left"
    )
    figure.savefig(path, dpi=160)


def _plot_points(
    axes: Axes, points: Sequence[CalibrationPoint], shift: float, color: str, label: str
) -> None:
    x = [point.planted + shift for point in points]
    y = [point.measured for point in points]
    below = [max(0.0, point.measured - point.low) for point in points]
    above = [max(0.0, point.high - point.measured) for point in points]
    axes.errorbar(
        x, y, yerr=[below, above], fmt="o", markersize=3, linewidth=1, color=color, label=label
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, help="file for the plot")
    parser.add_argument("-n", type=int, default=SAMPLES, help="samples per mixture")
    options = parser.parse_args()
    by_share = {}
    print_heading("planted share", *TITLES.values())
    for share in PLANTED_SHARES:
        with TemporaryDirectory() as home:
            os.environ["CDTA_HOME"] = home
            by_share[share] = measure_mixture(share, options.n)
        cells = (_format_point(by_share[share].get(name)) for name in TITLES)
        print_row(f"{share:g}", *cells)
    covered = [p.is_covered for by_name in by_share.values() for p in by_name.values()]
    print(f"\n{sum(covered)} of {len(covered)} intervals contain the planted value.")
    if options.out:
        plot(by_share, options.out)


def _format_point(point: CalibrationPoint | None) -> str:
    if not point:
        return "–"
    mark = "" if point.is_covered else " (!)"
    return f"{point.measured:.3f} [{point.low:.3f}, {point.high:.3f}]{mark}"


if __name__ == "__main__":
    main()
