"""Coverage-guided fuzzing of what reads files and replies of others, by hand, as long as you like.

    pip install atheris
    python tools/fuzz.py moves -max_total_time=600

Targets: moves, positions, records, games. A crash is anything that raises and is not one sentence.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

atheris = import_module("atheris")  # has no types

with atheris.instrument_imports(include=["cant_do_that_anymore", "chess"]):
    import chess

    from cant_do_that_anymore.errors import BadInput
    from cant_do_that_anymore.evaluation.judging import read_move
    from cant_do_that_anymore.evaluation.records import records_in
    from cant_do_that_anymore.game.mining import Wanted, mine
    from cant_do_that_anymore.game.position import read_positions
    from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS

FILE = Path(tempfile.mkdtemp()) / "fuzzed.jsonl"


def moves(data: bytes) -> None:
    """A reply, in a position where much is possible."""
    board = chess.Board("r3k2r/pPppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/P1PBBPPP/R3K2R w KQkq - 0 1")
    read_move(data.decode("utf-8", "replace"), board, BISHOPS_AS_KNIGHTS)


def positions(data: bytes) -> None:
    """A file of positions."""
    FILE.write_bytes(data)
    read_positions(FILE, BISHOPS_AS_KNIGHTS)


def records(data: bytes) -> None:
    """A record file of the original."""
    FILE.write_bytes(data)
    records_in([FILE])


def games(data: bytes) -> None:
    """A PGN file."""
    FILE.write_bytes(data)
    list(mine([str(FILE)], Wanted(BISHOPS_AS_KNIGHTS)))


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (moves, positions, records, games)
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(__doc__)
    target = TARGETS[sys.argv.pop(1)]

    def one_input(data: bytes) -> None:
        with suppress(BadInput):
            target(data)

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
