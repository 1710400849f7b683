"""Coverage-guided fuzzing of the parsers of replies and of files from outside.

    pip install atheris
    python tools/fuzz.py moves -max_total_time=600

Targets: moves, positions, games, replies, runs, registries, wordings. Any exception except
`InvalidInput` is a crash. For structured formats, the fuzzer starts from a valid input.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

atheris = import_module("atheris")  # has no types

with atheris.instrument_imports(include=["cant_do_that_anymore", "chess"]):
    import chess

    from cant_do_that_anymore import Spec, evaluate
    from cant_do_that_anymore.errors import InvalidInput
    from cant_do_that_anymore.game.mining import MiningCriteria, mine
    from cant_do_that_anymore.game.move_parser import move_in
    from cant_do_that_anymore.game.position import read_positions
    from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
    from cant_do_that_anymore.oaieval.solvers import read_registry, solver_fields
    from cant_do_that_anymore.providers.responses import error_message, parse_completion
    from cant_do_that_anymore.runs.storage import load_run
    from cant_do_that_anymore.task.prompts import wordings_named
    from cant_do_that_anymore.task.yes_no import read_yes_no

FOLDER = Path(tempfile.mkdtemp())
FILE, RUN, CORPUS = FOLDER / "fuzzed.jsonl", FOLDER / "run", FOLDER / "corpus"
RESPONSE = {
    "model": "m",
    "choices": [{"finish_reason": "stop", "message": {"content": "e2e4", "reasoning": "Well."}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
REGISTRY = """\
m: {model: openai/gpt-4o, temperature: 1}
m/*:
  class: evals.solvers.providers.openai.openai_solver:OpenAISolver
  args: {completion_fn_options: {model: m}}
"""
WORDING = 'name = "mine"\nstandard = "Play."\nchanged = "Bishops move as knights."\n'


def moves(data: bytes) -> None:
    """Parse a reply, in a position with many kinds of legal moves."""
    board = chess.Board("r3k2r/pPppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/P1PBBPPP/R3K2R w KQkq - 0 1")
    reply = data.decode("utf-8", "replace")
    move_in(reply, board, BISHOPS_AS_KNIGHTS, previous="a8c8")
    read_yes_no(reply)


def positions(data: bytes) -> None:
    """Read a file of positions."""
    FILE.write_bytes(data)
    read_positions(FILE, BISHOPS_AS_KNIGHTS)


def games(data: bytes) -> None:
    """Mine a PGN file."""
    FILE.write_bytes(data)
    list(mine([str(FILE)], MiningCriteria(BISHOPS_AS_KNIGHTS)))


def replies(data: bytes) -> None:
    """Parse the response of a server."""
    error_message(data)
    with suppress(ValueError):
        parse_completion(data, "chat", "m", ())


def runs(data: bytes) -> None:
    """Load a run folder with a changed run.json or samples.jsonl."""
    name = "run.json" if data.startswith(b"{\n") else "samples.jsonl"
    before = (RUN / name).read_bytes()
    (RUN / name).write_bytes(data)
    try:
        load_run(RUN)
    finally:
        (RUN / name).write_bytes(before)


def registries(data: bytes) -> None:
    """Read a registry of solvers."""
    FILE.write_bytes(data)
    for name, entry in read_registry(FILE).items():
        solver_fields(name, entry)


def wordings(data: bytes) -> None:
    """Read a wording file."""
    file = FOLDER / "wording.toml"
    file.write_bytes(data)
    wordings_named(str(file))


def write_corpus(name: str) -> None:
    """Write valid inputs for a target, from which the fuzzer starts."""
    CORPUS.mkdir()
    if name == "runs":
        evaluate(Spec(model="cdta/random", n=3, eval="all_diagonal"), quiet=True).save(RUN)
        for file in RUN.glob("*.json*"):
            (CORPUS / file.name).write_bytes(file.read_bytes())
    texts = {"replies": json.dumps(RESPONSE), "registries": REGISTRY, "wordings": WORDING}
    if name in texts:
        (CORPUS / name).write_text(texts[name], encoding="utf-8")


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (moves, positions, games, replies, runs, registries, wordings)
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(__doc__)
    target = TARGETS[sys.argv.pop(1)]
    write_corpus(target.__name__)

    def run_target(data: bytes) -> None:
        with suppress(InvalidInput):
            target(data)

    program, *options = sys.argv
    atheris.Setup([program, "-max_len=20000", *options, str(CORPUS)], run_target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
