"""Can a language model drop a habit when the rules change?

>>> from cant_do_that_anymore import Spec, evaluate
>>> run = evaluate(Spec(model="openai/gpt-4o", eval="all_small"))  # doctest: +SKIP
>>> run["rule_uptake"]  # doctest: +SKIP
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
    from .habits.answers import read_answer as read_answer
    from .habits.base import Message as Message
    from .habits.chess.position import Position as Position
    from .habits.chess.position import read_positions as read_positions
    from .habits.chess.position import shipped_pool as shipped_pool
    from .habits.chess.reader import read_move as read_move
    from .habits.chess.rules import Rules as Rules
    from .habits.chess.rules import rules_named as rules_named
    from .habits.questions import QuestionChange as QuestionChange
    from .metrics.estimates import Estimate as Estimate
    from .providers.base import Answer as Answer
    from .runs.cost import ExpectedCost as ExpectedCost
    from .task.conditions import ConditionTemplate as ConditionTemplate
    from .task.conditions import question as question
    from .task.prompts import Wording as Wording
    from .task.scorer import judge as judge
    from .task.spec import Spec as Spec
    from .task.yes_no import read_yes_no as read_yes_no

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

# Public names by the module that defines them.
_NAMES = {
    "api.functions": ("compare", "estimate", "evaluate", "experiment", "load"),
    "api.results": ("Comparison", "Experiment", "Run"),
    "habits.answers": ("read_answer",),
    "habits.base": ("Message",),
    "habits.chess.position": ("Position", "read_positions", "shipped_pool"),
    "habits.chess.reader": ("read_move",),
    "habits.chess.rules": ("Rules", "rules_named"),
    "habits.questions": ("QuestionChange",),
    "metrics.estimates": ("Estimate",),
    "providers.base": ("Answer",),
    "runs.cost": ("ExpectedCost",),
    "task.conditions": ("ConditionTemplate", "question"),
    "task.prompts": ("Wording",),
    "task.scorer": ("judge",),
    "task.spec": ("Spec",),
    "task.yes_no": ("read_yes_no",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that commands start quickly."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
