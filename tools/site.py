"""Build the documentation site from docs/ and whatever its pages link to.

    pip install '.[docs]' && python tools/site.py -o FOLDER

The Markdown is read as it is on any code host. In a copy, docs/ becomes the root, a file outside of
it keeps its path, and links follow. A link or a picture that leads nowhere ends the build.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1].resolve()
DOCS = ROOT / "docs"
LINK = re.compile(r'(\]\(|src=")([^)"#\s:]+)(?=[)"#])')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="a new folder")
    output: Path = parser.parse_args().output
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        sys.exit(f"{output} is no empty folder; name a new one")
    with TemporaryDirectory() as folder:
        for path in sorted(DOCS.rglob("*.*")):
            copy(path, Path(folder) / "docs")
        shutil.copy(ROOT / "mkdocs.yml", folder)
        zensical = [sys.executable, "-m", "zensical", "build", "--strict"]
        source = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        if subprocess.run(zensical, cwd=folder, env=source).returncode:
            sys.exit("the site was not built")
        shutil.copytree(Path(folder) / "site", output, dirs_exist_ok=True)


def copy(path: Path, stage: Path) -> None:
    """Copy a file, and whatever it links to, with links that lead there."""
    place = stage / placed(path)
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, place)
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
        place.write_text(LINK.sub(partial(moved, path), text), encoding="utf-8")
        for _, target in LINK.findall(text):
            copy(linked(path, target), stage)


def placed(path: Path) -> Path:
    """Where a file of the repository lies in the site."""
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT)


def linked(page: Path, target: str) -> Path:
    """The file that a link of a page leads to."""
    path = Path(os.path.normpath(page.parent / target))
    if not path.is_file():
        sys.exit(f"{page.relative_to(ROOT)} links to {target}, which is not there")
    return path


def moved(page: Path, link: re.Match[str]) -> str:
    """The same link in the site."""
    there = os.path.relpath(placed(linked(page, link[2])), placed(page).parent)
    return link[1] + Path(there).as_posix()


if __name__ == "__main__":
    main()
