"""Score an answer: what it says, and the outcome of that under the rules.

A question about an answer is about the usual one, which is wrong now, or about one that is right
now. Nothing else in the two prompts differs.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..habits.base import AnswerOutcome, Change, Item
from ..providers.base import Answer
from .types import Outcome, QueriedAnswer, Reading, Score
from .yes_no import read_yes_no


def outcome(answer: str, item: Item, change: Change) -> AnswerOutcome:
    """Return the outcome of an answer under the rules."""
    if answer in item.usual:
        return "usual"
    before, now = change.standard.allows(answer, item), change.allows(answer, item)
    if now:
        return "legal" if before else "adapted"
    return "forbidden" if before else "illegal"


def judge(answer: Answer, item: Item, rules: Change, reading: Reading = "lenient") -> Score:
    """Score the answer to ``item`` under ``rules``."""
    if answer.stop_reason == "error":
        return Score("error", None)
    is_exact, is_cut_off = reading == "exact", answer.stop_reason == "length"
    given = rules.read(answer.text, item, exact=is_exact, cut_off=is_cut_off)
    if given is None:
        return Score(unusable_outcome(answer), None)
    return Score(outcome(given, item, rules), given)


def judge_last_line(
    answer: Answer, item: Item, rules: Change, reading: Reading = "lenient"
) -> Score:
    """Score an answer whose last line is to be what was asked for; if that has none, all of it.

    One that was cut off names no answer, whatever it mentions.
    """
    if answer.stop_reason == "length":
        return Score("truncated", None)
    last = replace(answer, text=answer.text.strip().rpartition("\n")[2])
    score = judge(last, item, rules, reading)
    return score if score.usable else judge(answer, item, rules, reading)


def unusable_outcome(answer: Answer) -> Outcome:
    """Return the outcome of an answer in which nothing could be read."""
    if answer.stop_reason == "refused":
        return "refused"
    return "truncated" if answer.stop_reason == "length" else "unreadable"


def forbidden_answer(item: Item, rules: Change) -> str:
    """Return a usual answer; of several, always the same one."""
    return _pick(item, item.usual)


@lru_cache(maxsize=4096)  # asked for by each question about it, its scoring and its expected cost
def allowed_answer(item: Item, rules: Change) -> str:
    """Return an answer that is right under the changed rules and, if possible, only under them.

    Of several it is always the same one. If none is right, it is a usual answer.
    """
    return _pick(item, rules.examples(item) or item.usual)


def _pick(item: Item, answers: Sequence[str]) -> str:
    # Without the last bit of the id, which decides the order of the answer options.
    return sorted(answers)[int(item.id, 16) // 2 % len(answers)]


def judge_knowledge(
    about: QueriedAnswer, answer: Answer, item: Item, rules: Change, reading: Reading
) -> Score:
    """Score the answer to whether the answer of ``about`` is right under ``rules``."""
    if answer.stop_reason == "error":
        return Score("error", None)
    queried = about(item, rules)
    if reading == "exact":
        says_right = {"yes": True, "no": False}.get(answer.text.strip().lower())
    else:
        says_right = read_yes_no(answer.text, move=queried, cut_off=answer.stop_reason == "length")
    if says_right is None:
        return Score(unusable_outcome(answer), None)
    return Score("right" if says_right == rules.allows(queried, item) else "wrong", None)
