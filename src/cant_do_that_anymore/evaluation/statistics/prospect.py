"""Can a pool still give what is wanted of it? A test that may be looked at after every position.

The positions come in random order, each once. Suppose that the pool holds just as many hits as are
needed: then the chance that the next position is one is known, and one can bet on its being none,
at fair odds. If the pool holds that many or more, no way of betting gains in the mean, so that the
stake ever grows to 1 / `ERROR` times what it was with a chance of `ERROR` at most, however often it
is looked at (Ville's inequality). When it has, the pool holds fewer.
"""

ERROR = 0.01
"""How often, at most, a pool is given up that holds enough."""


class Prospect:
    """How a bet stands that a pool of so many positions holds fewer hits than are needed."""

    def __init__(self, pool: int, needed: int) -> None:
        self._left = pool
        self._needed = needed
        self._seen = 0
        self._hits = 0
        self._stake = 1.0

    @property
    def is_hopeless(self) -> bool:
        """Whether the pool holds too few, which is sure but for a chance of `ERROR`."""
        return self._stake >= 1 / ERROR

    def see(self, hit: bool) -> None:
        """Look at the next position."""
        if self._hits < self._needed:
            fair = min(1.0, (self._needed - self._hits) / self._left)
            guess = min(fair, (self._hits + 0.5) / (self._seen + 1))  # never that there are more
            if hit:
                self._stake *= guess / fair
            elif fair < 1:
                self._stake *= (1 - guess) / (1 - fair)
            else:  # all that are left would have to be hits
                self._stake = 1 / ERROR
        self._left -= 1
        self._seen += 1
        self._hits += hit
