"""Writes the tables in docs/results.md from the exported files in docs/results/.

    python tools/results.py

``cdta export RUN`` writes these files. A test checks that the tables are up to date.
"""

import json
import re
from pathlib import Path
from typing import Any

from cant_do_that_anymore.formatting import rounded

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENT = DOCS / "results.md"
SECTION = re.compile(r"(<!-- results -->\n).*(<!-- end of results -->\n)", re.DOTALL)
# The measure of each column, by heading.
MEASURES = {
    "rule uptake": "rule_uptake",
    "usual before": "predicted_move_proportion",
    "usual after": "predicted_move_in_variant_proportion",
}
BENCHMARK = "cant_do_that_anymore."


def page() -> str:
    """Return the document with a table for each evaluation, sorted by rule uptake."""
    tables: dict[str, list[tuple[float, str]]] = {}
    for path in sorted((DOCS / "results").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        by_evaluation: dict[str, dict[str, Any]] = {}
        for result in document["evaluation_results"]:
            name = result["metric_config"]["metric_id"].removeprefix(BENCHMARK)
            by_evaluation.setdefault(result["evaluation_name"], {})[name] = result
        for evaluation, results in by_evaluation.items():
            uptake = results[MEASURES["rule uptake"]]["score_details"]["score"]
            row = format_row(path, document, results)
            tables.setdefault(evaluation.removeprefix(BENCHMARK), []).append((-uptake, row))
    text = "\n".join(format_table(name, sorted(rows)) for name, rows in sorted(tables.items()))
    return SECTION.sub(rf"\g<1>\n{text}\n\g<2>", DOCUMENT.read_text(encoding="utf-8"))


def format_table(name: str, rows: list[tuple[float, str]]) -> str:
    eval_, _, rules = name.partition(".")
    heading = f"| {eval_}, `{rules}` | {' | '.join(MEASURES)} | n | date | command |"
    rule = f"| --- | {' | '.join('---:' for _ in MEASURES)} | ---: | --- | --- |"
    return "\n".join([heading, rule, *(row for _, row in rows)]) + "\n"


def format_row(path: Path, document: dict[str, Any], results: dict[str, Any]) -> str:
    first = results[MEASURES["rule uptake"]]
    model, link = document["model_info"]["id"], path.relative_to(DOCS).as_posix()
    cells = [f"[{model}]({link})", *(format_cell(results.get(name)) for name in MEASURES.values())]
    samples = first["score_details"]["uncertainty"]["num_samples"]
    command = first["generation_config"]["generation_args"]["execution_command"]
    cells += [f"{samples:,}", first["evaluation_timestamp"][:10], f"`{command}`"]
    return f"| {' | '.join(cells)} |"


def format_cell(result: dict[str, Any] | None) -> str:
    if not result:
        return "–"
    details = result["score_details"]
    interval = details["uncertainty"].get("confidence_interval")
    bounds = f" [{rounded(interval['lower'])}, {rounded(interval['upper'])}]" if interval else ""
    return f"{rounded(details['score'])}{bounds}"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
