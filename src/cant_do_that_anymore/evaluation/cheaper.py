"""Options that make a run cheaper."""

from ..client.batch.client import check_batch
from ..client.session import model_info
from ..errors import UserError
from ..game.rules import BISHOPS_AS_KNIGHTS
from ..metrics.stopping import expected_sample_size
from ..task.spec import Spec

ROUGH = 0.1
"""A precision that tells whether a habit is rather dropped or kept."""


def cheaper_than(spec: Spec, *, searches: bool, measures: bool = True) -> list[str]:
    """Options that measure the same model for less, as a rule.

    Args:
        spec: how it was to be measured.
        searches: whether a dataset is still to be found.
        measures: whether more is wanted than a dataset.
    """
    found = []
    usual = spec.change == BISHOPS_AS_KNIGHTS and spec.eval != "all_diagonal"
    if searches and spec.pool is None and usual:
        found.append("--pool common")
    if measures and spec.eval == "all" and spec.n is None:
        found.append("--eval all_small")
    most = spec.to_draw
    if measures and spec.precision is None and expected_sample_size(ROUGH, most) < most:
        found.append(f"--precision {ROUGH:g}")
    if not spec.batch and _takes_batches(spec):
        found.append("--batch")
    return found


def _takes_batches(spec: Spec) -> bool:
    """Whether it surely can be asked in batches; of a server nobody knows."""
    if spec.base_url:
        return False
    try:
        check_batch(model_info(spec), fresh=spec.fresh)
    except UserError:
        return False
    return True
