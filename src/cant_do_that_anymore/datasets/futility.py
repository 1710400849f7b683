"""When to stop a search: the pool holds too few hits, or they are too rare; and what would help.

The futility test is a bet. Suppose that the pool holds just as many hits as are needed. Then the
chance that the next position is a hit is known, and one can bet against it at fair odds. If the
pool holds that many or more, no betting strategy gains on average. So the stake ever grows to 1 /
`FUTILITY_ERROR` times its start with a chance of at most `FUTILITY_ERROR`, however often one looks
(Ville's inequality). When it has grown that far, the pool holds fewer.

The other test is about cost. A search also stops when further positions take more than about
`MAX_REQUESTS` requests each, because few users would go on. It is a sequential likelihood ratio
test of twice as many against half as many. So a model that takes at most half of `MAX_REQUESTS` is
stopped with a chance of about `RARITY_ERROR` at most, and one without any hit after 397 positions.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count
from math import log

import chess

from ..formatting import join_words, percentage
from ..game.position import Position
from ..game.rules import CATALOG, Rules

# Maximum rate at which the search gives up on a pool that holds enough.
FUTILITY_ERROR = 0.01


class FutilityTest:
    """Tests by betting whether a pool holds fewer hits than are needed."""

    def __init__(self, pool: int, needed: int) -> None:
        self._left = pool
        self._needed = needed
        self._seen = 0
        self._hits = 0
        self._stake = 1.0

    @property
    def is_futile(self) -> bool:
        """Whether the pool holds too few hits, at an error rate of at most `FUTILITY_ERROR`."""
        return self._stake >= 1 / FUTILITY_ERROR

    def observe(self, hit: bool) -> None:
        """Update the bet with the next position."""
        self.observe_until_futile((hit,))

    def observe_until_futile(self, observed: Iterable[bool]) -> int:
        """Update the bet with the next positions, and return how many it took or there were."""
        left, seen, hits, stake = self._left, self._seen, self._hits, self._stake
        before, needed, hopeless = seen, self._needed, 1 / FUTILITY_ERROR
        for hit in observed:
            if hits < needed:
                fair, guess = (needed - hits) / left, (hits + 0.5) / (seen + 1)
                fair = fair if fair < 1 else 1.0  # min() would take a third of the time
                guess = guess if guess < fair else fair  # never bet on more
                if hit:
                    stake *= guess / fair
                elif fair < 1:
                    stake *= (1 - guess) / (1 - fair)
                else:  # all remaining positions would have to be hits
                    stake = hopeless
            left -= 1
            seen += 1
            hits += hit
            if stake >= hopeless:
                break
        self._left, self._seen, self._hits, self._stake = left, seen, hits, stake
        return seen - before


MAX_REQUESTS_PER_HIT = 200
RARITY_ERROR = 0.05
# The log likelihood ratio of a hit, and of any other answer: rare hits against acceptable ones.
_RARE, _ACCEPTABLE = 1 / (2 * MAX_REQUESTS_PER_HIT), 2 / MAX_REQUESTS_PER_HIT
_HIT, _MISS = log(_RARE / _ACCEPTABLE), log((1 - _RARE) / (1 - _ACCEPTABLE))
_ENOUGH = log(1 / RARITY_ERROR)


def is_too_rare(hits: int, searched: int) -> bool:
    """Whether a further hit takes more than about `MAX_REQUESTS_PER_HIT` requests.

    >>> [min(n for n in range(5000) if is_too_rare(hits, n)) for hits in (0, 1, 5)]
    [397, 582, 1321]
    """
    return hits * _HIT + (searched - hits) * _MISS >= _ENOUGH


@cache
def too_rare_after(hits: int) -> int:
    """Return after how many positions so few hits are too rare.

    >>> [too_rare_after(hits) for hits in (0, 1, 5)]
    [397, 582, 1321]
    """
    searched = hits + int((_ENOUGH - hits * _HIT) / _MISS) - 1
    return next(number for number in count(searched) if is_too_rare(hits, number))


MOST_SUGGESTED = 3
# A rule is suggested if it forbids at least this share of the moves.
LEAST_SHARE = 0.02


def other_habits(played: Sequence[tuple[Position, str]], change: Rules) -> str:
    """Name the other rules that forbid most of the moves a model played, as a sentence.

    Of rules that forbid the same moves, it is the first of the catalog.
    """
    moves = [(position.board(), chess.Move.from_uci(uci)) for position, uci in played]
    rules_by_moves: dict[tuple[int, ...], str] = {}
    for rules in CATALOG.values():
        forbidden = tuple(n for n, move in enumerate(moves) if rules.is_special(*move))
        if rules != change and len(forbidden) >= max(1, LEAST_SHARE * len(moves)):
            rules_by_moves.setdefault(forbidden, rules.key)
    frequent = sorted(rules_by_moves, key=len, reverse=True)[:MOST_SUGGESTED]
    if not frequent:
        return ""
    shares = {rules_by_moves[forbidden]: len(forbidden) / len(moves) for forbidden in frequent}
    named = [f"--rules {key} ({percentage(share, 0)})" for key, share in shares.items()]
    return f". Its {len(played):,} moves show other habits: try {join_words(named, 'or')}"
