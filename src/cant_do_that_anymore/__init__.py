"""Can a language model drop a habit when the rules change? Chess with one rule changed.

>>> from cant_do_that_anymore import Spec, evaluate
>>> run = evaluate(Spec(model="openai/gpt-4o", eval="all_small"))  # doctest: +SKIP
>>> run.results.metrics["variant_impact_factor"]  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .evaluation.results import Run
    from .evaluation.run import evaluate
    from .evaluation.spec import Spec
    from .game.position import Position
    from .game.rules import Rules

__all__ = ["Position", "Rules", "Run", "Spec", "evaluate"]

_HOMES = {
    "Position": "game.position",
    "Rules": "game.rules",
    "Run": "evaluation.results",
    "Spec": "evaluation.spec",
    "evaluate": "evaluation.run",
}


def __getattr__(name: str) -> Any:
    """Import names when they are first used, so that commands start at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
