"""Can a language model drop a habit when the rules change? Chess with one rule changed.

>>> from cant_do_that_anymore import Spec, evaluate
>>> run = evaluate(Spec(model="openai/gpt-4o", eval="all_small"))  # doctest: +SKIP
>>> run.results.metrics["variant_impact_factor"]  # doctest: +SKIP
>>> run.save()  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Comparisons, Run, compare, evaluate, load
    from .game.move_parser import read_move
    from .game.position import Position, read_positions, shipped_pool
    from .game.rules import Rules, rules_named
    from .providers.base import Answer
    from .task.conditions import question
    from .task.scorer import judge
    from .task.spec import Spec
    from .task.yes_no import read_yes_no

__all__ = [
    "Answer",
    "Comparisons",
    "Position",
    "Rules",
    "Run",
    "Spec",
    "compare",
    "evaluate",
    "judge",
    "load",
    "question",
    "read_move",
    "read_positions",
    "read_yes_no",
    "rules_named",
    "shipped_pool",
]

_MODULES = {
    "Answer": "providers.base",
    "Comparisons": "api",
    "Position": "game.position",
    "Rules": "game.rules",
    "Run": "api",
    "Spec": "task.spec",
    "compare": "api",
    "evaluate": "api",
    "judge": "task.scorer",
    "load": "api",
    "question": "task.conditions",
    "read_move": "game.move_parser",
    "read_positions": "game.position",
    "read_yes_no": "task.yes_no",
    "rules_named": "game.rules",
    "shipped_pool": "game.position",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that commands start quickly."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
