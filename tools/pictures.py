"""Make the pictures in ``docs/images`` from real runs.

    python tools/pictures.py

The bundled models give ``report.png``, ``scale.png``, ``samples.png`` and ``notebook.png``. None of
them reasons or runs on a server, so the other pictures show simulated models on loopback servers:
``experiment.png`` those of ``SERVED``, ``curve.png`` those of ``tests/thinkers.py``. Reports are
photographed in headless Chromium; ``CHROMIUM`` names another browser. Needs the ``test`` extra, for
Playwright.
"""

import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page

from cant_do_that_anymore.report.html import PAGE_NAME
from cant_do_that_anymore.report.notebook import run_html
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

from browser import opened_browser  # noqa: E402  (the tests find it the same way)
from loopback import Body, Loopback, is_changed, serving  # noqa: E402
from players import adapting, habit  # noqa: E402
from thinkers import KEPT, planted_thinker  # noqa: E402

MODELS = ("cdta/reader", "cdta/pocket", "cdta/random", "cdta/pocket-rules")
SERVED = {"alpha": (0.40, 0.0), "beta": (0.55, 0.0), "gamma": (0.20, 0.59)}
"""How often each keeps its habit when the rules change, and how often it replies without a move."""


class Served:
    """A simulated model, which flips a new coin for every request."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._times: Counter[str] = Counter()

    def __call__(self, request: Body) -> str:
        self._times[str(request)] += 1
        coin = Random(f"{self._name} {request} {self._times[str(request)]}").random()
        kept, talk = SERVED[self._name] if is_changed(request) else (0.95, 0.0)
        if coin < talk:
            return "What an interesting position!"
        return habit(request) if coin < talk + kept else adapting(request)


def main() -> None:
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    plots_and_pages()
    curve()
    servers()


def measured(models: Iterable[str], out: Path, *options: str, runs: int = 1) -> None:
    """Run an experiment with these models and an empty cache."""
    named = [argument for model in models for argument in ("--model", model)]
    command = [sys.executable, "-m", "cant_do_that_anymore", "experiment", *named]
    home = {"CDTA_HOME": str(out.with_name("home"))}
    where = ["--runs", str(runs), "--out", str(out)]
    subprocess.run([*command, *options, *where], check=True, env=os.environ | home)


def curve() -> None:
    with TemporaryDirectory() as scratch, serving(planted_thinker()) as server:
        experiment = Path(scratch) / "experiment"
        efforts = ("--reasoning-effort", "none,low,medium,high", "--eval", "all", "-n", "200")
        measured(KEPT, experiment, "--base-url", server.url, *efforts)
        shutil.copy(experiment / "curve-all-bishops-as-knights.png", IMAGES / "curve.png")


def servers() -> None:
    with TemporaryDirectory() as scratch:
        experiment = Path(scratch) / "experiment"
        with ExitStack() as served:
            urls = {n: served.enter_context(serving(Loopback(Served(n)))).url for n in SERVED}
            models = [f"{name}@{url}" for name, url in urls.items()]
            measured(models, experiment, "--pool", "common", "-n", "200", runs=3)
        with opened_browser() as browser:
            page = opened(browser, (experiment / "index.html").as_uri(), 1200, 900)
            page.locator("details").first.evaluate("prompts => prompts.open = false")
            page.screenshot(path=IMAGES / "experiment.png")


def plots_and_pages() -> None:
    with TemporaryDirectory() as scratch:
        experiment = Path(scratch) / "experiment"
        measured(MODELS, experiment, "--eval", "all")
        shutil.copy(experiment / "headline-all-bishops-as-knights.png", IMAGES / "scale.png")
        (folder,) = experiment.glob("cdta_reader-????????-all-*")
        photograph(load_run(folder), folder / PAGE_NAME)


def photograph(run: Run, page: Path) -> None:
    """The report of a run, a sample where the habit was dropped, and the run in a notebook."""
    with opened_browser() as browser:
        opened(browser, page.as_uri(), 1100, 785).screenshot(path=IMAGES / "report.png")
        sample = f"{page.as_uri()}#sample={telling_sample(run)}"
        opened(browser, sample, 1280, 720).screenshot(path=IMAGES / "samples.png")
        window = opened(browser, "about:blank", 840, 600)
        window.set_content(run_html(replace(run, folder=None)))
        window.locator(".cdta").screenshot(path=IMAGES / "notebook.png")


def opened(browser: Browser, address: str, width: int, height: int) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="light",
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page.goto(address)
    return page


def telling_sample(run: Run) -> str:
    """The first sample where a habit was dropped, or the first of all."""
    dropped = (sample for sample in run.samples if sample.had_habit and not sample.kept_habit)
    return next(dropped, run.samples[0]).position.id


if __name__ == "__main__":
    main()
