"""When a search gives up because a model hardly shows the habit, and what would help."""

from collections.abc import Sequence
from itertools import islice

from ..formatting import join_words, percentage
from ..habits.base import Change, Item

# A search gives up if there are so many items for each hit, and for one more.
MAX_ITEMS_PER_HIT = 400
# It also gives up if, after so many answers, fewer than these shares are legal and usual.
ANSWERS_TO_JUDGE, MIN_LEGAL_SHARE, MIN_HIT_SHARE = 60, 0.25, 0.05
MAX_SUGGESTIONS = 3


def is_too_rare(hits: int, searched: int) -> bool:
    """Whether a search has too few hits to go on.

    >>> [is_too_rare(0, 399), is_too_rare(0, 400), is_too_rare(1, 799), is_too_rare(1, 800)]
    [False, True, False, True]
    """
    return searched >= MAX_ITEMS_PER_HIT * (hits + 1)


def cannot_do_it(legal: int, hits: int, answers: int) -> bool:
    """Whether a model hardly ever gives a legal answer, and even more rarely the usual one.

    >>> [cannot_do_it(0, 0, 59), cannot_do_it(14, 2, 60), cannot_do_it(15, 2, 60)]
    [False, True, False]
    """
    few_legal = legal < MIN_LEGAL_SHARE * answers
    return answers >= ANSWERS_TO_JUDGE and few_legal and hits < MIN_HIT_SHARE * answers


def advice(given: Sequence[tuple[Item, str]], answers: int, change: Change) -> str:
    """Say what a model's answers under the standard rules show, as a sentence; "" if nothing.

    Args:
        given: the answers that could be read, with their items.
        answers: the number of all answers.
    """
    habit = change.its_habit
    legal = count_legal(given, change)
    if legal < MIN_LEGAL_SHARE * answers:
        return f". {habit.words.few_right(percentage(legal / max(1, answers), 0))}"
    shares = habit.other_changes(given, change)
    if not shares:
        return ""
    named = [f"--rules {key} ({percentage(share, 0)})" for key, share in shares.items()]
    suggested = join_words(list(islice(named, MAX_SUGGESTIONS)), "or")
    return f". Its {len(given):,} {habit.words.answer}s show other habits: try {suggested}"


def count_legal(given: Sequence[tuple[Item, str]], change: Change) -> int:
    """Count the answers that are right under the standard rules."""
    return sum(change.standard.allows(answer, item) for item, answer in given)
