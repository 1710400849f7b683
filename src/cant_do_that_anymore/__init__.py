"""Can a language model drop a habit when the rules change?

>>> from cant_do_that_anymore import Spec, evaluate
>>> run = evaluate(Spec(model="openai/gpt-4o", eval="all_small"))  # doctest: +SKIP
>>> run["rule_uptake"]  # doctest: +SKIP
>>> run.save()  # doctest: +SKIP
"""

# ruff: noqa: F403, F405 (names for type checkers; others get them from __getattr__)
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import *

__all__ = [
    "Answer",
    "Comparison",
    "ConditionTemplate",
    "Estimate",
    "ExpectedCost",
    "Experiment",
    "Message",
    "Position",
    "QuestionChange",
    "Rules",
    "Run",
    "Spec",
    "Wording",
    "compare",
    "estimate",
    "evaluate",
    "experiment",
    "judge",
    "load",
    "question",
    "read_answer",
    "read_move",
    "read_positions",
    "read_yes_no",
    "rules_named",
    "shipped_pool",
]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that commands start quickly."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".api", __name__), name)


def __dir__() -> list[str]:
    return __all__
