"""Can a language model drop a habit when the rules change? Chess with one rule changed.

>>> from cant_do_that_anymore import Spec, evaluate
>>> run = evaluate(Spec(model="openai/gpt-4o", eval="all_small"))  # doctest: +SKIP
>>> run.results.metrics["variant_impact_factor"]  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .evaluation.folder import load_run as load
    from .evaluation.results import Run
    from .evaluation.run import evaluate
    from .evaluation.spec import Spec
    from .game.position import Position
    from .game.rules import Rules
    from .report.page import save_with_page as save

__all__ = ["Position", "Rules", "Run", "Spec", "evaluate", "load", "save"]

_HOMES = {
    "Position": ("game.position", "Position"),
    "Rules": ("game.rules", "Rules"),
    "Run": ("evaluation.results", "Run"),
    "Spec": ("evaluation.spec", "Spec"),
    "evaluate": ("evaluation.run", "evaluate"),
    "load": ("evaluation.folder", "load_run"),
    "save": ("report.page", "save_with_page"),
}


def __getattr__(name: str) -> Any:
    """Import names when they are first used, so that commands start at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, known_as = _HOMES[name]
    return getattr(import_module(f".{module}", __name__), known_as)
