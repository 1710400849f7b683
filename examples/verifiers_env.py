"""The evaluation as a training environment for the library ``verifiers``.

Half of the questions are under the standard rules, half under the changed ones; the reward is 1 for
a move that is legal under the rules that were stated, so neither the habit nor fear of it pays.
"""

import json
from collections.abc import Iterator
from typing import Any

from cant_do_that_anymore import Answer, Position, judge, question, rules_named, shipped_pool

LEGAL = {"standard": ("special", "legal"), "changed": ("legal", "adapted")}


def rows(rules: str = "bishops-as-knights", n: int = 1000) -> Iterator[dict[str, Any]]:
    """Questions as conversations, each with what its reward needs to know."""
    for position in shipped_pool("pool")[:n]:
        for condition in LEGAL:
            asked = question(position, rules_named(rules), condition)
            info = {"condition": condition, "rules": asked.rules.key, **position.to_json()}
            prompt = [{"role": each.role, "content": each.content} for each in asked.messages]
            yield {"prompt": prompt, "info": json.dumps(info)}


def legal_move(completion: list[dict[str, str]], info: dict[str, Any]) -> float:
    """1 for one legal move and nothing else that could be meant."""
    said, position = Answer(completion[-1]["content"]), Position.from_json(info)
    outcome = judge(said, position, rules_named(info["rules"])).outcome
    return float(outcome in LEGAL[info["condition"]])


def load_environment(**options: Any) -> Any:
    """What ``verifiers`` looks for."""
    import verifiers
    from datasets import Dataset

    rubric = verifiers.Rubric(funcs=[legal_move])
    return verifiers.SingleTurnEnv(dataset=Dataset.from_list([*rows(**options)]), rubric=rubric)
