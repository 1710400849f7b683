"""Can a language model drop a habit when the rules change? Chess with one rule changed.

>>> from cant_do_that_anymore import Spec, evaluate
>>> run = evaluate(Spec(model="openai/gpt-4o", eval="all_small"))  # doctest: +SKIP
>>> run.results.metrics["rule_uptake"]  # doctest: +SKIP
>>> run.save()  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.functions import compare as compare
    from .api.functions import estimate as estimate
    from .api.functions import evaluate as evaluate
    from .api.functions import experiment as experiment
    from .api.functions import load as load
    from .api.results import Comparison as Comparison
    from .api.results import Experiment as Experiment
    from .api.results import Run as Run
    from .game.position import Position as Position
    from .game.position import read_positions as read_positions
    from .game.position import shipped_pool as shipped_pool
    from .game.reader import read_move as read_move
    from .game.rules import Rules as Rules
    from .game.rules import rules_named as rules_named
    from .providers.base import Answer as Answer
    from .providers.base import Message as Message
    from .runs.cost import ExpectedCost as ExpectedCost
    from .task.conditions import ConditionTemplate as ConditionTemplate
    from .task.conditions import question as question
    from .task.forms import Form as Form
    from .task.scorer import judge as judge
    from .task.spec import Spec as Spec
    from .task.yes_no import read_yes_no as read_yes_no

# Public names by the module that defines them.
_NAMES = {
    "api.functions": ("compare", "estimate", "evaluate", "experiment", "load"),
    "api.results": ("Comparison", "Experiment", "Run"),
    "game.position": ("Position", "read_positions", "shipped_pool"),
    "game.reader": ("read_move",),
    "game.rules": ("Rules", "rules_named"),
    "providers.base": ("Answer", "Message"),
    "runs.cost": ("ExpectedCost",),
    "task.conditions": ("ConditionTemplate", "question"),
    "task.forms": ("Form",),
    "task.scorer": ("judge",),
    "task.spec": ("Spec",),
    "task.yes_no": ("read_yes_no",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that commands start quickly."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
