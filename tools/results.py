"""Write the table in docs/results.md from the exported files in docs/results/.

    python tools/results.py

Each file is what ``cdta export RUN --format eee`` wrote. A test holds that the table is up to date.
"""

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENT = DOCS / "results.md"
PLACE = re.compile(r"(<!-- results -->\n).*(<!-- end of results -->\n)", re.DOTALL)
# Columns by heading, with the measure of each.
MEASURES = {
    "rule uptake": "rule_uptake",
    "impact factor": "variant_impact_factor",
    "legal answers, changed rules": "variant_legal_proportion",
}
BENCHMARK = "cant_do_that_anymore."


def page() -> str:
    """The document with a table for each evaluation, the highest rule uptake first."""
    tables: dict[str, list[tuple[float, str]]] = {}
    for path in sorted((DOCS / "results").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        by_evaluation: dict[str, dict[str, Any]] = {}
        for result in document["evaluation_results"]:
            name = result["metric_config"]["metric_id"].removeprefix(BENCHMARK)
            by_evaluation.setdefault(result["evaluation_name"], {})[name] = result
        for evaluation, results in by_evaluation.items():
            uptake = results[MEASURES["rule uptake"]]["score_details"]["score"]
            line = row(path, document, results)
            tables.setdefault(evaluation.removeprefix(BENCHMARK), []).append((-uptake, line))
    text = "\n".join(table(name, sorted(rows)) for name, rows in sorted(tables.items()))
    return PLACE.sub(rf"\g<1>\n{text}\n\g<2>", DOCUMENT.read_text(encoding="utf-8"))


def table(name: str, rows: list[tuple[float, str]]) -> str:
    eval_, _, rules = name.partition(".")
    heading = f"| {eval_}, `{rules}` | {' | '.join(MEASURES)} | n | date | command |"
    rule = f"| --- | {' | '.join('---:' for _ in MEASURES)} | ---: | --- | --- |"
    return "\n".join([heading, rule, *(line for _, line in rows)]) + "\n"


def row(path: Path, document: dict[str, Any], results: dict[str, Any]) -> str:
    first = results[MEASURES["rule uptake"]]
    model, link = document["model_info"]["id"], path.relative_to(DOCS).as_posix()
    cells = [f"[{model}]({link})", *(cell(results.get(name)) for name in MEASURES.values())]
    samples = first["score_details"]["uncertainty"]["num_samples"]
    command = first["generation_config"]["generation_args"]["execution_command"]
    cells += [f"{samples:,}", first["evaluation_timestamp"][:10], f"`{command}`"]
    return f"| {' | '.join(cells)} |"


def cell(result: dict[str, Any] | None) -> str:
    if not result:
        return "–"
    details = result["score_details"]
    interval = details["uncertainty"].get("confidence_interval")
    ends = f" [{interval['lower']:.2f}, {interval['upper']:.2f}]" if interval else ""
    return f"{details['score']:.2f}{ends}"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
