"""Counts the requests and dollars of a new model (dataset and 1,000 samples), by its hit rate.

    python benchmarks/cost.py

The original sends requests about its whole pool of 19,841 positions before it draws its samples,
whatever the hit rate. Its request for the model's version is not counted here; ours is. For the
other methods, a server counts the requests of a run.

Models have a higher hit rate in the common pool. The ratio is the median of the four shipped
datasets, each on the positions of the other three. At a hit rate of 40% in the whole pool that
ratio is impossible. There, the ratio is that of the bundled model, which was not used to choose the
pool either: 66.3% in the common pool, 38.9% in the whole pool.

In the measurement, the models play their habits in 67% of cases, and half as often under the
changed rules.

Dollars are computed from the price list and the tokens that `cdta estimate` assumes per request and
answer.
"""

import tempfile
from pathlib import Path
from statistics import median

from instant_server import instant_server
from markdown_tables import print_heading, print_row
from resource_usage import CDTA, measure_command

from cant_do_that_anymore import Spec
from cant_do_that_anymore.datasets.storage import RATES_ON_ALL, RATES_ON_COMMON, common_positions
from cant_do_that_anymore.runs.cost import estimate

SAMPLES = 1000
POOL_SIZE = 19_841
HIT_RATES = (0.05, 0.075, 0.16, 0.4)
HABIT_RATE = 0.67
"""How often a model plays its habit when it is measured."""
KEPT_SHARE = 0.5
"""Share of these habits that it keeps under the changed rules."""
BUNDLED_MODEL_RATIO = 0.663 / 0.389
"""Hit rate of the bundled model in the common pool, divided by that in the whole pool."""
COMMON = ["--pool", "common"]
METHODS = {"default": [], "`--pool common`": COMMON}
MODELS = {
    "gpt-4o-mini": Spec(model="openai/gpt-4o-mini", reasoning_effort="none"),
    "gpt-4o": Spec(model="openai/gpt-4o", reasoning_effort="none"),
    "o4-mini, medium": Spec(model="openai/o4-mini", reasoning_effort="medium"),
}


def main() -> None:
    prices = [price_per_request(spec) for spec in MODELS.values()]
    print_heading(
        *("hits: all, common", "method", "requests", "relative to the default", "samples"), *MODELS
    )
    for hit_rate in HIT_RATES:
        common_rate = common_hit_rate(hit_rate)
        title = f"{100 * hit_rate:g}%, {100 * common_rate:.0f}%"
        counts = {
            name: count_requests(hit_rate, common_rate, options)
            for name, options in METHODS.items()
        }
        original_samples = min(SAMPLES, int(hit_rate * POOL_SIZE))
        original = (POOL_SIZE + 2 * original_samples, original_samples)
        for name, (requests, samples) in {"original": original, **counts}.items():
            share = f"{100 * requests / counts['default'][0]:.0f}%"
            dollars = (f"${requests * price:,.2f}" for price in prices)
            print_row(title, name, f"{requests:,}", share, f"{samples:,}", *dollars)


def common_hit_rate(hit_rate: float) -> float:
    """Return the hit rate in the common pool of a model with this one in the whole pool."""
    pairs = zip(RATES_ON_COMMON, RATES_ON_ALL, strict=True)
    ratio = median(common / whole for common, whole in pairs)
    return hit_rate * (ratio if hit_rate * ratio < 1 else BUNDLED_MODEL_RATIO)


def count_requests(hit_rate: float, common_rate: float, options: list[str]) -> tuple[int, int]:
    """Run the evaluation, and return the number of its requests and of its samples."""
    common_size = len(common_positions())
    rate_elsewhere = (hit_rate * POOL_SIZE - common_rate * common_size) / (POOL_SIZE - common_size)
    server = instant_server(
        hit_rate=rate_elsewhere,
        common_hit_rate=common_rate,
        habit_rate=HABIT_RATE,
        kept_share=KEPT_SHARE,
    )
    with server as url, tempfile.TemporaryDirectory() as home:
        out = Path(home, "run")
        command = [*CDTA, "run", "--base-url", url, "--model", "new", "--quiet", *options]
        command += ["-n", str(SAMPLES), "--out", str(out)]
        usage = measure_command(command, url, {"CDTA_HOME": home})
        return usage.requests, len((out / "samples.jsonl").read_text().splitlines())


def price_per_request(spec: Spec) -> float:
    """Return the expected price of a request and its answer, in US dollars."""
    expected = estimate(spec)
    assert expected.dollars is not None
    return expected.dollars / expected.requests


if __name__ == "__main__":
    main()
