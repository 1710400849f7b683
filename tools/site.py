"""Builds the documentation site from docs/ and the files that its pages link to.

    pip install '.[docs]' && python tools/site.py -o FOLDER

The Markdown also works on any code host. The site is built from a copy, in which docs/ becomes the
root, files outside it keep their path, and links are adjusted. A broken link or image fails the
build.
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
        sys.exit(f"{output} is not an empty folder; give a new one")
    with TemporaryDirectory() as folder:
        for path in sorted(DOCS.rglob("*.*")):
            copy(path, Path(folder) / "docs")
        shutil.copy(ROOT / "mkdocs.yml", folder)
        zensical = [sys.executable, "-m", "zensical", "build", "--strict"]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        if subprocess.run(zensical, cwd=folder, env=environment).returncode:
            sys.exit("building the site failed")
        shutil.copytree(Path(folder) / "site", output, dirs_exist_ok=True)


def copy(path: Path, stage: Path) -> None:
    """Copy a file and the files that it links to, and adjust its links."""
    target = stage / site_path(path)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
        target.write_text(LINK.sub(partial(adjust_link, path), text), encoding="utf-8")
        for _, link in LINK.findall(text):
            copy(linked_file(path, link), stage)


def site_path(path: Path) -> Path:
    """Return the path of a file in the site."""
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT)


def linked_file(page: Path, link: str) -> Path:
    """Return the file that a page links to."""
    path = Path(os.path.normpath(page.parent / link))
    if not path.is_file():
        sys.exit(f"{page.relative_to(ROOT)} links to {link}, which does not exist")
    return path


def adjust_link(page: Path, link: re.Match[str]) -> str:
    """Return the link as it must be in the site."""
    target = site_path(linked_file(page, link[2]))
    return link[1] + Path(os.path.relpath(target, site_path(page).parent)).as_posix()


if __name__ == "__main__":
    main()
