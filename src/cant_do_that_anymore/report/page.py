"""The page of a run: one HTML file that opens from disk and asks nothing of any network."""

from base64 import b64encode
from collections import Counter
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template
from xml.etree import ElementTree

import chess.svg

from ..errors import Problem
from ..evaluation.folder import facts_of, save_run
from ..evaluation.run import Run
from . import sections
from .charts import flow_picture
from .making import making, spending
from .markup import Markup, text
from .sample_data import samples_json
from .words import headline

ASSETS = files("cant_do_that_anymore") / "report" / "assets"
PAGE_NAME = "report.html"


def write_page(run: Run, path: Path) -> None:
    """Write the page of a run; an older one is replaced only when the new one is whole.

    Raises:
        Problem: if it cannot be written.
    """
    half = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(page(run).encode())
        half.replace(path)
    except OSError as problem:
        raise Problem(
            f"cannot write the page {str(path)!r} ({problem.strerror}); "
            "`cdta report RUN -o FILE` writes it elsewhere"
        ) from None


def save_with_page(run: Run, folder: Path) -> None:
    """Write a run's folder and its page in it."""
    save_run(run, folder)
    write_page(run, folder / PAGE_NAME)


def page(run: Run) -> str:
    """The page as one HTML text."""
    facts = facts_of(run)
    style = _asset("page.css")
    script = _asset("board.js") + _asset("browser.js")
    samples, longest = samples_json(run)
    counted, earlier = sections.earlier_moves(run)
    flow = Counter((s.standard_judgement.outcome, s.variant_judgement.outcome) for s in run.samples)
    parts: dict[str, str] = {
        "policy": _policy(style, script),
        "style": Markup(style),
        "script": Markup(script),
        "title": f"{run.version}: {run.plan.eval}, {run.plan.rules.key}",
        "model": run.version,
        "eval": run.plan.eval,
        "change": run.plan.rules.title,
        "headline": headline(run),
        "tiles": sections.tiles(run),
        "notes": sections.notes(run),
        "flow": flow_picture(flow),
        "outcomes": sections.outcomes(run),
        "metrics": sections.metrics(run),
        "all_metrics": sections.all_metrics(run),
        "counted": counted,
        "earlier_moves": earlier,
        "openings": sections.openings(run),
        "spending": spending(facts),
        "making": making(facts, run.plan.rules),
        "wording_standard": run.plan.wording.standard,
        "wording_changed": run.plan.wording.text(run.plan.rules),
        "pieces": _pieces(),
        "samples": samples,
        "longest_reply": f"{longest:,}",
    }
    return Template(_asset("page.html")).substitute(
        {name: text(part) for name, part in parts.items()}
    )


def _pieces() -> Markup:
    """python-chess's pieces, with their styles as attributes: the policy allows no inline style."""
    drawings = [ElementTree.fromstring(drawing) for drawing in chess.svg.PIECES.values()]
    for element in (element for drawing in drawings for element in drawing.iter()):
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = declaration.partition(":")
            element.set(name.strip(), value.strip())
    return Markup("".join(ElementTree.tostring(drawing, "unicode") for drawing in drawings))


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Allow this style and this script, by their digests, and nothing else whatsoever."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
