"""Mining: find positions with a usual move in PGN games of any origin and size.

``inputs`` opens files, ``pgn`` finds games and moves in their bytes, ``openings`` plays
the moves and applies the rules, and ``miner`` distributes blocks of games over processes or a
cluster.
"""

from .miner import NOT_STANDARD, MinedPosition, MiningCriteria, MiningResult, mine

__all__ = ["NOT_STANDARD", "MinedPosition", "MiningCriteria", "MiningResult", "mine"]
