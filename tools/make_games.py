"""Writes the shipped file of games from the book of GNU Chess.

    python tools/make_games.py book_1.02.pgn.xz

That file is in Debian's source package ``gnuchess-book``; its copyright file says that it is in the
public domain. The shipped file has the first 50 plies of 50,000 games, sampled with a fixed seed
from all games that differ in these plies. It takes a few minutes.
"""

import lzma
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile

import chess

from cant_do_that_anymore.habits.chess.mining.openings import Openings
from cant_do_that_anymore.habits.chess.mining.pgn import is_standard, moves_of, read_blocks
from cant_do_that_anymore.habits.chess.rule_pool import character_of
from cant_do_that_anymore.habits.chess.rules import STANDARD

FILE = Path(__file__).parents[1] / "src" / "cant_do_that_anymore" / "data" / "games.xz"
GAMES, PLIES, SEED = 50_000, 50, 0


def main(book: Path) -> None:
    with NamedTemporaryFile(suffix=".pgn") as pgn, lzma.open(book) as compressed:
        shutil.copyfileobj(compressed, pgn)
        pgn.flush()
        games = list(encode_games(pgn.name))
    unique = sorted(set(games))
    sample = sorted(Random(SEED).sample(unique, GAMES))
    text = "\0".join(sample).encode("utf-16-le")
    FILE.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(games):,} games, {len(unique):,} unique, {FILE.stat().st_size:,} bytes")


def encode_games(path: str) -> Iterator[str]:
    """Yield the first plies of every game; an illegal move is an error."""
    openings = Openings(STANDARD)
    for block in read_blocks([path]):
        for game in block.games:
            assert is_standard(block.text, game)
            moves = [uci for uci, _ in openings.follow(moves_of(block.text, game))]
            yield "".join(character_of(chess.Move.from_uci(uci)) for uci in moves[:PLIES])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
