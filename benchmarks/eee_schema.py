"""Validates exported results against the schemas of Every Eval Ever, for four kinds of results.

    pip install jsonschema
    python benchmarks/eee_schema.py FOLDER

FOLDER contains eval.schema.json and instance_level_eval.schema.json.

The four kinds are a plain run, a diagnosis, a run with bounds (every fourth reply has no move), and
an experiment with two models, two rules and two seeds.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import jsonschema
from markdown_tables import print_heading, print_row

from cant_do_that_anymore import Answer, Spec, evaluate, experiment
from cant_do_that_anymore.api.results import Result
from cant_do_that_anymore.providers.base import Question, RequestVariant, Settings
from cant_do_that_anymore.providers.pocket import PocketModel

SCHEMAS = ("eval.schema.json", "instance_level_eval.schema.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("schemas", type=Path, help="folder with both schemas")
    parser.add_argument("-n", type=int, default=40, help="samples per run")
    options = parser.parse_args()
    validators = [
        jsonschema.Draft7Validator(json.loads((options.schemas / name).read_text()))
        for name in SCHEMAS
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CDTA_HOME"] = folder
        print_heading("results", "files", "measures", "samples", "errors")
        for name, result in evaluate_all(options.n).items():
            files = result.export(Path(folder) / name)
            documents = [json.loads(file.read_text()) for file in files[::2]]
            lines = [json.loads(line) for file in files[1::2] for line in file.open()]
            aggregate, instances = validators
            errors = [error for doc in documents for error in aggregate.iter_errors(doc)]
            errors += [error for line in lines for error in instances.iter_errors(line)]
            measures = sum(len(document["evaluation_results"]) for document in documents)
            print_row(name, len(files), measures, len(lines), len(errors))
            for error in errors[:3]:
                print(f"  {error.json_path}: {error.message[:200]}")


def evaluate_all(n: int) -> dict[str, Result]:
    """Return one result of each kind."""
    return {
        "run": evaluate(Spec(n=n), quiet=True),
        "diagnosis": evaluate(Spec(n=n, diagnose=True), quiet=True),
        "bounded": evaluate(Spec(n=n, fresh=True), UnreadableModel("cdta/reader"), quiet=True),
        "experiment": experiment(
            ["cdta/pocket", "cdta/reader"],
            rules=["bishops-as-knights", "no-castling"],
            seeds=2,
            n=n,
            quiet=True,
        ),
    }


class UnreadableModel(PocketModel):
    """The bundled model, with no move in every fourth reply under changed rules."""

    async def answer(
        self, question: Question, settings: Settings, variant: RequestVariant = ()
    ) -> Answer:
        answer = await super().answer(question, settings, variant)
        is_changed = question.rules.key != "standard"
        no_move = Answer("What a game!", version=answer.version)
        return no_move if is_changed and len(question.moves) % 4 == 0 else answer


if __name__ == "__main__":
    main()
