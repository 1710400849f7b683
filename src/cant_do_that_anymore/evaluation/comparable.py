"""Which runs may be ranked together."""

from collections.abc import Iterable, Sequence

from ..errors import InvalidInput, pluralize
from ..game.rules import identity_of
from ..runs.results import Run
from .contenders import grouped


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot be compared.

    Raises:
        InvalidInput: if there are fewer than two models, or their protocols, rules, evals, ways of
            selection or pools differ.
    """
    one_protocol(runs)
    for what, kinds in (
        ("under different rules", {identity_of(run.plan.change) for run in runs}),
        # all_small draws from the same positions as all
        ("of different evals", {run.plan.eval.removesuffix("_small") for run in runs}),
    ):
        if len(kinds) > 1:
            raise InvalidInput(f"runs {what} cannot be compared: {', '.join(sorted(kinds))}")
    union = "cdta dataset union A B -o both.jsonl, then cdta run --dataset both.jsonl"
    for how, kinds, instead in (
        ("selected", {run.dataset.selection for run in runs}, f"set: {union}"),
        ("chosen from", {run.dataset.chosen_from for run in runs}, "pool"),
    ):
        if len(kinds - {""}) > 1:
            told = " and ".join(sorted(kinds - {""}))
            raise InvalidInput(
                f"runs on positions {how} {told} cannot be ranked together; measure all on one "
                f"{instead}"
            )
    if len(grouped(runs)) < 2:
        raise InvalidInput(
            "a comparison needs runs of two models or settings; these are "
            f"{pluralize(len(runs), 'run')} of one, which would be taken together"
        )


def one_protocol(runs: Iterable[Run]) -> list[Run]:
    """The runs, all scored by one protocol.

    Raises:
        InvalidInput: if they are not.
    """
    found = list(runs)
    protocols = sorted({run.protocol for run in found})
    if len(protocols) > 1:
        raise InvalidInput(
            f"runs of protocols {' and '.join(protocols)} cannot be ranked together; `cdta rescore "
            "RUN` scores the answers of an older run again, without asking anything"
        )
    return found
