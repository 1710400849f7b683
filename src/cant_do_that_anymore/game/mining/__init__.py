"""Mining: PGN games of any origin and size -> positions with a special move.

Nothing else in the package needs to know how. ``streams`` opens files and addresses, ``pgn``
finds games and moves in their bytes, ``openings`` plays the moves and asks the rules, ``spread``
hands blocks of games to other processes, and ``miner`` puts them together.
"""

from .miner import LOW_RATING, NOT_STANDARD, Found, Mined, Wanted, mine

__all__ = ["LOW_RATING", "NOT_STANDARD", "Found", "Mined", "Wanted", "mine"]
