"""Checks whether the bundled network replies the same with other batches, threads or machines.

    python benchmarks/determinism.py FILE.npz [FILE_OF_ANOTHER_MACHINE.npz]

Writes the scores of every 60th pool position with five texts. Prints the largest difference of
scores and the number of replies that change. The margin of a reply is the distance of its score
from the second best.
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
from cant_do_that_anymore.providers.pocket import BATCH, NO_TEXT, Logits, Tokens, load_network
from cant_do_that_anymore.task.prompts import DEFAULT, shipped_wording

POSITION_STEP = 60


def prompts() -> list[tuple[Tokens, list[Tokens]]]:
    """Return each text with the positions of each length."""
    network = load_network()
    games = [network.tokens(position.moves) for position in shipped_pool("pool")[::POSITION_STEP]]
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
    return [(text, same_length) for text in tokens for same_length in by_length.values()]


def compute_scores(threads: int, batch_size: int) -> Logits:
    """Return the scores of all prompts."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession((DATA / "pocket.onnx").read_bytes(), options)
    scores = []
    for text, games in prompts():
        for start in range(0, len(games), batch_size):
            batch = np.array(games[start : start + batch_size])
            scores.append(session.run(None, {"text": np.array([text]), "tokens": batch})[0])
    return np.concatenate(scores)


def print_difference(name: str, ours: Logits, theirs: Logits) -> None:
    """Print the largest difference, the number of changed replies, and the smallest margin."""
    difference, by_score = np.abs(ours - theirs).max(), np.sort(ours, axis=1)
    changed = int((ours.argmax(1) != theirs.argmax(1)).sum())
    margin = (by_score[:, -1] - by_score[:, -2]).min()
    print(
        f"{name}: scores differ by up to {difference:.6f}, {changed} of {len(ours):,} replies "
        f"change, the smallest margin is {margin:.6f}"
    )


def main() -> None:
    cores = os.cpu_count() or 1
    print(f"{platform.processor() or platform.machine()}, {cores} cores, Python")
    print(f"{platform.python_version()}, onnxruntime {onnxruntime.__version__}")
    scores = compute_scores(1, BATCH)
    print_difference("repeated", scores, compute_scores(1, BATCH))
    print_difference("one position at a time", scores, compute_scores(1, 1))
    print_difference(f"{cores} threads", scores, compute_scores(cores, BATCH))
    path, *others = map(Path, sys.argv[1:])
    np.savez_compressed(path, scores=scores)
    for other in others:
        with np.load(other) as file:
            print_difference(other.stem, scores, file["scores"])


if __name__ == "__main__":
    main()
