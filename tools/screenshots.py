"""Take the README's pictures of a run's page in headless Chromium.

    python tools/screenshots.py RUN [FOLDER]

FOLDER is ``docs/images`` by default; it gets ``report.png`` (the page), ``samples.png`` (its sample
browser) and ``phone.png`` (the page on a small dark screen). ``CHROMIUM`` names another browser
than ``/usr/bin/chromium``. Needs the ``test`` extra, for Playwright.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from cant_do_that_anymore.evaluation.folder import load_run
from cant_do_that_anymore.evaluation.run import Run
from cant_do_that_anymore.report.page import write_page

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main(folder: Path, images: Path) -> None:
    run = load_run(folder)
    images.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch, sync_playwright() as playwright:
        page = Path(scratch) / "report.html"
        write_page(run, page)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        window = opened(browser, page.as_uri(), 1100, 1150, "light")
        window.screenshot(path=images / "report.png")
        window = opened(
            browser, f"{page.as_uri()}#sample={telling_sample(run)}", 1280, 720, "light"
        )
        window.screenshot(path=images / "samples.png")
        window = opened(browser, page.as_uri(), 390, 844, "dark")
        window.screenshot(path=images / "phone.png")
        browser.close()
    for name in ("report", "samples", "phone"):
        print(images / f"{name}.png")


def opened(
    browser: Browser, address: str, width: int, height: int, scheme: Literal["light", "dark"]
) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
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
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else IMAGES)
