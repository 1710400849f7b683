"""Is what is measured what was planted? Mixtures of two models whose behavior is known.

    python benchmarks/calibration.py -o docs/images/calibration.png    # about five minutes

A mixture plays as `cdta/pocket` does, but in a planted share of positions it follows the changed
rules, as `cdta/pocket-rules` does. It knows the rule in the same share of positions, though not in
the same ones, and elsewhere answers by the old one. A reminder makes it follow the rule in half of
the other positions, and the placebo changes nothing. All else follows from the likelihoods of the
network.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measuring import print_heading, print_row

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

STEPS = [step / 10 for step in range(11)]
SAMPLES = 1000
REMINDED = 0.5
"""The share of positions where a reminder makes it follow a rule that it broke."""
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
SHOWN = (
    ("variant_impact_factor", "corrected_impact_factor", "specific_impact_factor"),
    ("rule_knowledge", "knowing_doing_gap"),
)
COLOURS = ("#0072b2", "#c44f00", "#009e73")


@dataclass(frozen=True)
class Numbers:
    """What was planted, what was measured, and from where to where the interval goes."""

    planted: float
    measured: float
    low: float
    high: float

    @property
    def held(self) -> bool:
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
        knows, heeds, minds = self._of(question)
        if question.about:
            said = "yes" if question.is_legal == knows else "no"
            return Answer(said, version=self.info.name)
        reminded = "Remember" in question.messages[-1].content and minds
        adapts = question.rules == BISHOPS_AS_KNIGHTS and (heeds or reminded)
        answer = await (self._rules if adapts else self._habit).answer(question, settings)
        return Answer(answer.text, version=self.info.name)

    def _of(self, question: Question) -> tuple[bool, bool, bool]:
        coin = Random(f"{self.info.name} {' '.join(question.moves)}")
        return coin.random() < self._share, coin.random() < self._share, coin.random() < REMINDED


def planted(share: float, run: Run) -> dict[str, float]:
    """What the measures of a mixture come to on average, on the positions of the run."""
    habits, _ = _likelihoods([sample.position for sample in run.samples])
    controls, allowed = _likelihoods([control.position for control in run.controls])
    # Held to the rules, the network spreads over legal moves what it gave to others.
    collateral = share * float((controls / allowed).sum() / controls.sum() - 1)
    return {
        "variant_impact_factor": -share,
        "corrected_impact_factor": -share,
        "specific_impact_factor": (1 - share) / (1 + collateral) - 1,
        "collateral_change": collateral,
        "reminder_effect": -REMINDED,
        "rule_knowledge": 2 * share - 1,
        "knowing_doing_gap": (1 - share) * float((habits**2).sum() / habits.sum()),
        "knowing_effect": 0.0,
    }


def _likelihoods(positions: Sequence[Position]) -> tuple[np.ndarray, np.ndarray]:
    """Of the habit, and of all moves that the changed rules allow, in each position."""
    network = load_network()
    habits, allowed = [], []
    for position in positions:
        (scores,) = network.scores([network.tokens(position.moves)])
        legal = [move.uci() for move in BISHOPS_AS_KNIGHTS.legal_moves(position.board())]
        habits.append(network.share(scores, position.special_moves))
        allowed.append(network.share(scores, legal))
    return np.array(habits), np.array(allowed)


def measured(share: float, n: int) -> dict[str, Numbers]:
    """Plant a share, and measure."""
    run = evaluate(Spec(n=n, diagnose=True), Mixture(share), quiet=True)
    found = {}
    for name, truth in planted(share, run).items():
        value, interval = run.results.metrics[name], run.results.intervals.get(name)
        if value is not None and interval:
            found[name] = Numbers(truth, value, interval.low, interval.high)
    return found


def draw(found: Mapping[float, Mapping[str, Numbers]], path: Path) -> None:
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, names in zip(panels, SHOWN, strict=True):
        for number, name in enumerate(names):
            numbers = [step[name] for step in found.values() if name in step]
            shift = 0.012 * (number - (len(names) - 1) / 2)
            _points(axes, numbers, shift, COLOURS[number], TITLES[name])
        low, high = (-1, 0) if names == SHOWN[0] else (-1, 1)
        axes.plot([low, high], [low, high], color="#1c1d1f", linewidth=0.8, zorder=0)
        axes.set_xlabel("planted")
        axes.set_ylabel("measured, with 95 % interval")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
    figure.suptitle(
        f"Measured against planted: {SAMPLES:,} samples and controls each", x=0.01, ha="left"
    )
    figure.savefig(path, dpi=160)


def _points(axes: Axes, numbers: Sequence[Numbers], shift: float, color: str, label: str) -> None:
    x = [each.planted + shift for each in numbers]
    y = [each.measured for each in numbers]
    below = [max(0.0, each.measured - each.low) for each in numbers]
    above = [max(0.0, each.high - each.measured) for each in numbers]
    axes.errorbar(
        x, y, yerr=[below, above], fmt="o", markersize=3, linewidth=1, color=color, label=label
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, help="where the picture goes")
    parser.add_argument("-n", type=int, default=SAMPLES, help="samples of each mixture")
    given = parser.parse_args()
    found = {}
    print_heading("planted share", *TITLES.values())
    for share in STEPS:
        with TemporaryDirectory() as home:
            os.environ["CDTA_HOME"] = home
            found[share] = measured(share, given.n)
        cells = (_cell(found[share].get(name)) for name in TITLES)
        print_row(f"{share:g}", *cells)
    held = [each.held for step in found.values() for each in step.values()]
    print(f"\n{sum(held)} of {len(held)} intervals hold what was planted.")
    if given.out:
        draw(found, given.out)


def _cell(numbers: Numbers | None) -> str:
    if not numbers:
        return "–"
    mark = "" if numbers.held else " (!)"
    return f"{numbers.measured:.3f} [{numbers.low:.3f}, {numbers.high:.3f}]{mark}"


if __name__ == "__main__":
    main()
