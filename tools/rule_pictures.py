"""Draws every rule of the catalog for docs/rules.md, and writes the table there.

    python tools/rule_pictures.py

The pictures are screenshots of those in reports, taken in headless Chromium and written to
``docs/images/rules``. Needs the ``test`` extra, for Playwright.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from cant_do_that_anymore.habits.chess.picture import pieces, rule_picture
from cant_do_that_anymore.habits.chess.rules import CATALOG, Rules
from cant_do_that_anymore.report.html import asset

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "rules.md"
IMAGES = ROOT / "docs" / "images" / "rules"
BEGIN, END = "<!-- pictures: tools/rule_pictures.py -->\n", "<!-- end of pictures -->"
SIZE = 200
sys.path.insert(0, str(ROOT / "tests"))

from browser import launch_browser  # noqa: E402  (the tests find it the same way)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with launch_browser() as browser:
        window = browser.new_page(color_scheme="light", device_scale_factor=2)
        for rules in CATALOG.values():
            if picture := rule_picture(rules):
                window.set_content(
                    f"<style>{asset('page.css')} .board {{ width: {SIZE}px }}</style>"
                    f"<svg width=0 height=0><defs>{pieces()}</defs></svg>{picture.board}"
                )
                window.locator(".board").screenshot(path=IMAGES / f"{rules.key}.png")
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(before + BEGIN + "".join(table_rows()) + END + after)


def table_rows() -> Iterator[str]:
    yield "\n| key | statement | a usual move |\n| --- | --- | --- |\n"
    for rules in CATALOG.values():
        if rules.forbids_something:
            yield f"| `{rules.key}` | {rules.statement} | {picture_cell(rules)} |\n"
    yield "\n"


def picture_cell(rules: Rules) -> str:
    picture = rule_picture(rules)
    assert picture
    source, alt = f"images/rules/{rules.key}.png", f"{picture.move} is illegal"
    return f'<img src="{source}" alt="{alt}" width="{SIZE}"><br>{picture.move}'


if __name__ == "__main__":
    main()
