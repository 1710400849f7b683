"""A real Chromium, wherever this machine has one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_APPLICATIONS = ("Chromium", "Google Chrome", "Microsoft Edge")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MISSING = (
    "no Chromium found: install it (apt install chromium, brew install --cask chromium, or "
    "playwright install chromium), or set CHROMIUM to the path of one"
)


class NoBrowser(Exception):
    """This machine has no browser that could be found; the sentence says how to get one."""


def find_browser() -> Path | None:
    """The browser that ``CHROMIUM`` names, else one on PATH or among a Mac's applications."""
    named = os.environ.get("CHROMIUM")
    if named:
        return Path(named)
    on_path = (shutil.which(name) for name in NAMES)
    in_applications = (
        folder / f"{name}.app" / "Contents" / "MacOS" / name
        for folder in (Path("/Applications"), Path.home() / "Applications")
        for name in MAC_APPLICATIONS
    )
    found = [Path(path) for path in on_path if path]
    return next((path for path in (*found, *in_applications) if path.exists()), None)


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """The browser of this machine, or Playwright's own if that was installed.

    Raises:
        NoBrowser: if there is none.
    """
    path = find_browser()
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as problem:
            if path is None:
                raise NoBrowser(MISSING) from None
            raise NoBrowser(f"{path} does not start: {problem.message}") from None
        yield browser
        browser.close()
