"""Writes the shipped pool and datasets from the original's data files.

    python tools/make_pools.py FOLDER

FOLDER contains ``usual_moves_dataset.jsonl`` and the ``MODEL_dataset.jsonl`` files of the Python
package ``evals``. Every model's dataset is a subset of the pool, so it is stored as the list of its
games. They stay in the original's order, so that the same seed draws the same samples.
"""

import gzip
import json
import sys
from pathlib import Path

from cant_do_that_anymore.habits.chess.position import read_positions
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS

DATA = Path(__file__).parents[1] / "src" / "cant_do_that_anymore" / "data"
MODELS = ("gpt-3.5-turbo-0125", "gpt-3.5-turbo-instruct", "gpt-4-0125-preview", "gpt-4-0314")


def main(folder: Path) -> None:
    pool = read_positions(folder / "usual_moves_dataset.jsonl", BISHOPS_AS_KNIGHTS)
    by_game = {position.game: position for position in pool}
    datasets = {}
    for model in MODELS:
        dataset = read_positions(folder / f"{model}_dataset.jsonl", BISHOPS_AS_KNIGHTS)
        assert all(by_game[position.game] == position for position in dataset), model
        datasets[model] = [position.game for position in dataset]
    lines = "".join(json.dumps(position.to_json()) + "\n" for position in pool)
    (DATA / "pool.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    (DATA / "datasets.json").write_text(json.dumps(datasets, separators=(",", ":")) + "\n")
    print(len(pool), {model: len(games) for model, games in datasets.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
