"""What would tell about the same for less."""

from dataclasses import replace

from ..errors import Problem
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..models.batching import check_batch
from .spec import COMMON, Spec
from .whom import known_for

ROUGH = 0.1
"""A precision that tells whether a habit is rather dropped or kept."""


def cheaper_than(spec: Spec, *, searches: bool, measures: bool = True) -> dict[str, Spec]:
    """Other ways to measure the same model, by the options that ask for them.

    Args:
        spec: how it was to be measured.
        searches: whether a dataset is still to be found.
        measures: whether more is wanted than a dataset.
    """
    found = {}
    usual = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
    if searches and spec.pool is None and usual:
        found["--pool common"] = replace(spec, pool=COMMON)
    if measures and spec.eval == "all" and spec.n is None:
        found["--eval all_small"] = replace(spec, eval="all_small")
    if measures and spec.precision is None:
        found[f"--precision {ROUGH:g}"] = replace(spec, precision=ROUGH)
    if not spec.batch and _takes_batches(spec):
        found["--batch"] = replace(spec, batch=True)
    return found


def _takes_batches(spec: Spec) -> bool:
    """Whether it surely can be asked in batches; of a server nobody knows."""
    if spec.base_url:
        return False
    try:
        check_batch(known_for(spec), fresh=spec.fresh)
    except Problem:
        return False
    return True
