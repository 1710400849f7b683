"""Writes the images in ``docs/images`` from real runs.

    python tools/make_images.py

``report.png``, ``samples.png`` and ``notebook.png`` show the bundled models. None of
them reasons or runs on a server, so the other images show simulated models on loopback servers:
``experiment.png`` those of ``SIMULATED_MODELS``, ``curve.png`` those of
``tests/planted_models.py``. Screenshots are taken in headless Chromium; ``CHROMIUM`` names
another browser. Needs the ``test`` extra, for Playwright.
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
from cant_do_that_anymore.report.run_page import run_html
from cant_do_that_anymore.runs.lookup import folders_in
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

from browser import launch_browser  # noqa: E402  (the tests find it the same way)
from loopback import Body, Loopback, is_changed, serving  # noqa: E402
from planted_models import HABITS_KEPT, adapting, effort_server, habit  # noqa: E402

MODELS = ("cdta/reader",)
SIMULATED_MODELS = {"alpha": (0.40, 0.0), "beta": (0.55, 0.0), "gamma": (0.20, 0.59)}
"""Shares of kept habits and of replies without a move, under the changed rules."""


class SimulatedModel:
    """A simulated model, which draws a new reply for every request."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: Counter[str] = Counter()

    def __call__(self, request: Body) -> str:
        self._counts[str(request)] += 1
        number = Random(f"{self._name} {request} {self._counts[str(request)]}").random()
        changed = SIMULATED_MODELS[self._name]
        kept, no_move = changed if is_changed(request) else (0.95, 0.0)
        if number < no_move:
            return "What an interesting position!"
        return habit(request) if number < no_move + kept else adapting(request)


def main() -> None:
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    write_bundled_models()
    write_curve()
    write_experiment()


def run_experiment(models: Iterable[str], out: Path, *options: str) -> None:
    """Run an experiment with these models and an empty cache."""
    model_options = [argument for model in models for argument in ("--model", model)]
    command = [sys.executable, "-m", "cant_do_that_anymore", "experiment", *model_options]
    command += [*options, "--out", str(out)]
    environment = os.environ | {"CDTA_HOME": str(out.with_name("home"))}
    subprocess.run(command, check=True, env=environment)


def write_curve() -> None:
    with TemporaryDirectory() as scratch, serving(effort_server()) as server:
        experiment = Path(scratch) / "experiment"
        efforts = ("--reasoning-effort", "none,low,medium,high", "--eval", "all", "-n", "200")
        run_experiment(HABITS_KEPT, experiment, "--base-url", server.url, *efforts)
        shutil.copy(experiment / "curve-all-bishops-as-knights.png", IMAGES / "curve.png")


def write_experiment() -> None:
    with TemporaryDirectory() as scratch:
        experiment = Path(scratch) / "experiment"
        with ExitStack() as stack:
            models = []
            for name in SIMULATED_MODELS:
                server = stack.enter_context(serving(Loopback(SimulatedModel(name))))
                models.append(f"{name}@{server.url}")
            run_experiment(models, experiment, "--pool", "common", "-n", "600")
        with launch_browser() as browser:
            page = open_page(browser, (experiment / "index.html").as_uri(), 1200, 900)
            page.screenshot(path=IMAGES / "experiment.png")


def write_bundled_models() -> None:
    with TemporaryDirectory() as scratch:
        experiment = Path(scratch) / "experiment"
        run_experiment(MODELS, experiment, "--eval", "all")
        (folder,) = folders_in(experiment)
        write_screenshots(load_run(folder), folder / PAGE_NAME)


def write_screenshots(run: Run, page: Path) -> None:
    """Take screenshots of a report, of a sample with a dropped habit, and of the notebook view."""
    with launch_browser() as browser:
        open_page(browser, page.as_uri(), 1100, 785).screenshot(path=IMAGES / "report.png")
        sample = f"{page.as_uri()}#sample={sample_with_dropped_habit(run)}"
        open_page(browser, sample, 1280, 720).screenshot(path=IMAGES / "samples.png")
        window = open_page(browser, "about:blank", 840, 600)
        window.set_content(run_html(replace(run, folder=None)))
        window.locator(".cdta").screenshot(path=IMAGES / "notebook.png")


def open_page(browser: Browser, address: str, width: int, height: int) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="light",
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page.goto(address)
    return page


def sample_with_dropped_habit(run: Run) -> str:
    """Return the first sample with a dropped habit, or the first of all."""
    dropped = (sample for sample in run.samples if sample.had_habit and not sample.kept_habit)
    return next(dropped, run.samples[0]).item.id


if __name__ == "__main__":
    main()
