"""Provides the evaluation as a training environment for the library ``verifiers``.

Half of the prompts state the standard rules, half the changed rules. The reward is 1 for a move
that is legal under the stated rules, so neither keeping nor always avoiding the habit pays off.
"""

import json
from collections.abc import Iterator
from typing import Any

from cant_do_that_anymore import Answer, Position, judge, question, rules_named, shipped_pool

LEGAL = {"standard": ("usual", "legal"), "changed": ("legal", "adapted")}


def rows(rules: str = "bishops-as-knights", n: int = 1000) -> Iterator[dict[str, Any]]:
    """Yield prompts with the information that the reward needs."""
    for position in shipped_pool("pool")[:n]:
        for condition in LEGAL:
            request = question(position, rules_named(rules), condition)
            info = {"condition": condition, "rules": request.rules.key, **position.to_json()}
            prompt = [{"role": m.role, "content": m.content} for m in request.messages]
            yield {"prompt": prompt, "info": json.dumps(info)}


def legal_move(completion: list[dict[str, str]], info: dict[str, Any]) -> float:
    """Return 1 if the reply names one legal move, unambiguously, and otherwise 0."""
    answer, position = Answer(completion[-1]["content"]), Position.from_json(info)
    outcome = judge(answer, position, rules_named(info["rules"])).outcome
    return float(outcome in LEGAL[info["condition"]])


def load_environment(**options: Any) -> Any:
    """Return the environment; ``verifiers`` calls this function."""
    import verifiers
    from datasets import Dataset

    rubric = verifiers.Rubric(funcs=[legal_move])
    return verifiers.SingleTurnEnv(dataset=Dataset.from_list([*rows(**options)]), rubric=rubric)
