"""What a new model costs, dataset and 1,000 samples, by how often it plays the habit.

    python benchmarks/cost.py

The original asks the whole pool of 19,841 positions before it draws its samples, whatever the hit
rate; its own request to learn the version is not counted here and ours is. The other requests are
counted by a server that a run has asked.

A model hits more often in the common pool. How much more is taken from the four shipped datasets,
each on the positions of the other three: `times` as often, in the median. That cannot be so where a
model hits 40 % of the whole pool; there it is as with the model inside, whom the pool was not
chosen by either: 66.3 % of the common pool, 38.9 % of the whole.

How soon a precision is reached depends on the model. These play their habits in 67 or in 95 % of
cases when they are measured, and half of those under the changed rules.

Dollars are by the price list: what `cdta estimate` takes for a question and its answer. In batches
they are half.
"""

import tempfile
from pathlib import Path
from statistics import median

from instant import instant
from measuring import CDTA, measured, print_heading, print_row

from cant_do_that_anymore import Spec
from cant_do_that_anymore.costs.forecast import estimate
from cant_do_that_anymore.datasets.storage import RATES_ON_ALL, RATES_ON_COMMON, common_positions

SAMPLES = 1000
POOL = 19_841
HIT_RATES = (0.05, 0.075, 0.16, 0.4)
HABITS, KEPT = (0.67, 0.95), 0.5
"""How often a habit is played when it is measured, and of these under the changed rules."""
OF_THE_MODEL_INSIDE = 0.663 / 0.389
COMMON, PRECISE = ["--pool", "common"], ["--precision", "0.05"]
WAYS = {
    "default": (HABITS[0], []),
    "`--pool common`": (HABITS[0], COMMON),
    **{f"`--precision .05`, habit {habit}": (habit, PRECISE) for habit in HABITS},
    **{f"both, habit {habit}": (habit, [*COMMON, *PRECISE]) for habit in HABITS},
}
MODELS = {
    "gpt-4o-mini": Spec(model="openai/gpt-4o-mini", reasoning_effort="none"),
    "gpt-4o": Spec(model="openai/gpt-4o", reasoning_effort="none"),
    "o4-mini, medium": Spec(model="openai/o4-mini", reasoning_effort="medium"),
}


def main() -> None:
    prices = [_a_question(spec) for spec in MODELS.values()]
    print_heading("hits: all, common", "way", "questions", "of the default", "samples", *MODELS)
    for hits in HIT_RATES:
        on_common = _on_common(hits)
        title = f"{100 * hits:g} %, {100 * on_common:.0f} %"
        found = {name: _asked(hits, on_common, *way) for name, way in WAYS.items()}
        theirs = min(SAMPLES, int(hits * POOL))
        for way, (questions, samples) in {"original": (POOL + 2 * theirs, theirs), **found}.items():
            share = f"{100 * questions / found['default'][0]:.0f} %"
            dollars = (f"${questions * price:,.2f}" for price in prices)
            print_row(title, way, f"{questions:,}", share, f"{samples:,}", *dollars)


def _on_common(hits: float) -> float:
    """The hit rate in the common pool of a model with this one in the whole pool."""
    pairs = zip(RATES_ON_COMMON, RATES_ON_ALL, strict=True)
    times = median(common / whole for common, whole in pairs)
    return hits * (times if hits * times < 1 else OF_THE_MODEL_INSIDE)


def _asked(hits: float, on_common: float, habit: float, options: list[str]) -> tuple[int, int]:
    """The questions of a run, and what samples it has."""
    common = len(common_positions())
    elsewhere = (hits * POOL - on_common * common) / (POOL - common)
    with (
        instant(hits=elsewhere, hits_on_common=on_common, habit=habit, keeps=KEPT) as url,
        tempfile.TemporaryDirectory() as home,
    ):
        command = [*CDTA, "run", "--base-url", url, "--model", "new", "--quiet", *options]
        out = Path(home, "run")
        cost = measured([*command, "-n", SAMPLES, "--out", out], url, {"CDTA_HOME": home})
        return cost.requests, len((out / "samples.jsonl").read_text().splitlines())


def _a_question(spec: Spec) -> float:
    """What one costs in US dollars, in the middle of a range."""
    step = estimate(spec).total
    assert step.dollars
    return step.dollars.expected / step.requests.expected


if __name__ == "__main__":
    main()
