"""Make the shipped file of games from the book of GNU Chess.

    python tools/make_games.py book_1.02.pgn.xz

That file is in Debian's source package ``gnuchess-book``, in the public domain by its copyright
file. Taken are the first 50 plies of 50,000 games, drawn by seed from all that differ in them.
Takes some minutes.
"""

import lzma
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile

import chess

from cant_do_that_anymore.game.mining.openings import Openings
from cant_do_that_anymore.game.mining.pgn import is_plain, moves_of, read_blocks
from cant_do_that_anymore.game.rule_pool import character_of
from cant_do_that_anymore.game.rules import STANDARD

FILE = Path(__file__).parents[1] / "src" / "cant_do_that_anymore" / "data" / "games.xz"
GAMES, PLIES, SEED = 50_000, 50, 0


def main(book: Path) -> None:
    with NamedTemporaryFile(suffix=".pgn") as plain, lzma.open(book) as packed:
        shutil.copyfileobj(packed, plain)
        plain.flush()
        played = list(games_in(plain.name))
    different = sorted(set(played))
    chosen = sorted(Random(SEED).sample(different, GAMES))
    text = "\0".join(chosen).encode("utf-16-le")
    FILE.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(played):,} games, {len(different):,} differ, {FILE.stat().st_size:,} bytes")


def games_in(path: str) -> Iterator[str]:
    """Every game as far as it is kept; an illegal move is an error."""
    openings = Openings(STANDARD)
    for block in read_blocks([path]):
        for game in block.games:
            assert is_plain(block.text, game)
            moves = [uci for uci, _ in openings.follow(moves_of(block.text, game))]
            yield "".join(character_of(chess.Move.from_uci(uci)) for uci in moves[:PLIES])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
