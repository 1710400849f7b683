"""Compares two servers, and fails CI if the new one follows the changed rule less often.

    python examples/compare_servers.py http://old:8000/v1 http://new:8000/v1 --tolerance 5

The exit code is 1 if the rule uptake of the new server is significantly lower, by more than the
tolerance (in points), on the positions where both have the habit.
"""

import argparse

from cant_do_that_anymore import Spec, compare, evaluate

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("old")
parser.add_argument("new")
parser.add_argument("-n", type=int, default=200, help="samples")
parser.add_argument("--tolerance", type=float, default=0.0, help="accepted drop, in points")
parser.add_argument("--report", default="comparison.html", help="HTML file for the details")
options = parser.parse_args()

old, new = (
    evaluate(Spec(base_url=url, tag=tag, pool="common", n=options.n), quiet=True)
    for tag, url in (("old", options.old), ("new", options.new))
)
comparison = compare(new, baseline=old, tolerance=options.tolerance)
comparison.report(options.report)
print(comparison.check.sentence)
raise SystemExit(comparison.check.verdict == "worse")
