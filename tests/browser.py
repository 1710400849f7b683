"""Headless Chromium for the tests of reports, if this machine has it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",  # small in containers
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
AXE = files("axe_playwright_python") / "axe.min.js"
MISSING = "no Chromium found: install it, or set CHROMIUM to the path of one"


class BrowserNotFound(Exception):
    """No browser was found on this machine; the message says how to get one."""


@contextmanager
def launch_browser() -> Iterator[Browser]:
    """Launch the browser that CHROMIUM names, one on PATH, or Playwright's own.

    Raises:
        BrowserNotFound: if there is none, or it does not start.
    """
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as problem:
            reason = f"{path} does not start: {problem.message}" if path else MISSING
            raise BrowserNotFound(reason) from None
        yield browser
        browser.close()


@dataclass
class OpenPage:
    """A page in the browser, with its requests and errors."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).text_content() or ""

    def expect_current_sample(self, text: str) -> None:
        """Wait for it, for example after a click on a link."""
        expect(self.page.locator("#samples output")).to_have_text(text)


class Opener:
    """Opens files in browser pages, and at the end checks that none made requests or errors.

    Pages are reused because creating one takes as long as loading and checking two files.
    """

    def __init__(self, browser: Browser, free: list[OpenPage]) -> None:
        self.browser = browser
        self.free = free
        self.opened: list[OpenPage] = []

    def __call__(self, path: Path, link: str = "", width: int = 1280) -> OpenPage:
        opened = self.free.pop() if self.free else self._new_page()
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.page.goto(path.as_uri() + link)
        self.opened.append(opened)
        return opened

    def _new_page(self) -> OpenPage:
        opened = OpenPage(self.browser.new_page(reduced_motion="reduce"))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.errors.append(message.text))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.on("dialog", lambda dialog: opened.errors.append(dialog.message))
        return opened

    def check(self) -> None:
        for opened in self.opened:
            assert opened.errors == []
            (url,) = opened.requests
            assert url.startswith("file://")
            assert opened.page.evaluate("window.hacked") is None
            opened.page.goto("about:blank")  # otherwise a link into the same file would not load
            opened.page.emulate_media(media="null", color_scheme="null")
            opened.page.mouse.move(0, 0)
            opened.requests.clear()
            self.free.append(opened)


def check_fits(page: Page, *, tables_from: int = 320) -> None:
    """Nothing is wider than the screen; tables scroll sideways only below a width."""
    scrolling = (
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.firstElementChild.className)"
    )
    for width in (320, 390, 768, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(scrolling) == [] or width < tables_from


SCREENS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((390, "light"), (1440, "dark"))


def check_accessible(page: Page) -> None:
    """axe-core finds no serious accessibility problem.

    Plots are emptied first, which halves the time. They are images with a label, and axe-core
    ignores text in SVG.
    """
    page.evaluate("document.querySelectorAll('svg.plot').forEach(plot => plot.replaceChildren())")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for width, scheme in SCREENS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
        serious = [
            f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
            for violation in result["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]
        assert not serious, "\n".join(serious)
