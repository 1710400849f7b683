"""Whether the bundled network replies the same in other batches, with more threads, elsewhere.

    python benchmarks/same_answers.py FILE.npz [FILE_OF_ANOTHER_MACHINE.npz]

Writes the scores of every 60th pool position under five texts, and prints how far scores differ and
how many replies change. The margin of a reply is how far its score is above the second best.
"""

import os
import platform
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

from cant_do_that_anymore.game.position import DATA, shipped_pool
from cant_do_that_anymore.game.rules import BISHOPS_AS_KNIGHTS
from cant_do_that_anymore.providers.pocket import BATCH, NO_TEXT, Scores, Tokens, load_network
from cant_do_that_anymore.task.prompts import DEFAULT, shipped_wording

EVERY = 60


def prompts() -> list[tuple[Tokens, list[Tokens]]]:
    """Texts with positions of one length each."""
    network = load_network()
    games = [network.tokens(position.moves) for position in shipped_pool("pool")[::EVERY]]
    by_length = defaultdict(list)
    for game in games:
        by_length[len(game)].append(game)
    terse = shipped_wording("terse")
    texts = (
        DEFAULT.standard_prompt(),
        DEFAULT.changed_prompt(BISHOPS_AS_KNIGHTS),
        terse.standard_prompt(),
        terse.changed_prompt(BISHOPS_AS_KNIGHTS),
    )
    tokens = (NO_TEXT, *(network._text_tokens(text) for text in texts))
    return [(text, alike) for text in tokens for alike in by_length.values()]


def scores(threads: int, batch: int) -> Scores:
    """The scores of all prompts."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession((DATA / "pocket.onnx").read_bytes(), options)
    found = []
    for text, games in prompts():
        for start in range(0, len(games), batch):
            part = np.array(games[start : start + batch])
            found.append(session.run(None, {"text": np.array([text]), "tokens": part})[0])
    return np.concatenate(found)


def print_difference(name: str, ours: Scores, theirs: Scores) -> None:
    """One line: how far scores differ, how many replies change, and by what margin they lead."""
    far, ordered = np.abs(ours - theirs).max(), np.sort(ours, axis=1)
    changed = int((ours.argmax(1) != theirs.argmax(1)).sum())
    margin = (ordered[:, -1] - ordered[:, -2]).min()
    print(
        f"{name}: scores differ by up to {far:.6f}, {changed} of {len(ours):,} replies change, "
        f"the smallest margin is {margin:.6f}"
    )


def main() -> None:
    cores = os.cpu_count() or 1
    print(f"{platform.processor() or platform.machine()}, {cores} cores, Python")
    print(f"{platform.python_version()}, onnxruntime {onnxruntime.__version__}")
    ours = scores(1, BATCH)
    print_difference("again", ours, scores(1, BATCH))
    print_difference("one position at a time", ours, scores(1, 1))
    print_difference(f"{cores} threads", ours, scores(cores, BATCH))
    path, *others = map(Path, sys.argv[1:])
    np.savez_compressed(path, scores=ours)
    for other in others:
        with np.load(other) as theirs:
            print_difference(other.stem, ours, theirs["scores"])


if __name__ == "__main__":
    main()
