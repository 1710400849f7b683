"""The house is in order: arrows point one way, examples work, links lead somewhere."""

import ast
import doctest
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import cant_do_that_anymore

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cant_do_that_anymore"
ROOMS = ("game", "models", "evaluation", "report", "interfaces")
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(cant_do_that_anymore.__path__, "cant_do_that_anymore.")
    if not module.name.endswith("__main__")
]


def imported_rooms(path: Path) -> Iterator[str]:
    """The rooms that a module imports from, by its relative imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            place = path.parents[node.level - 1].joinpath(*node.module.split("."))
            yield place.relative_to(SOURCE).parts[0]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_itself_and_from_those_below(room: str) -> None:
    above = set(ROOMS[ROOMS.index(room) + 1 :])
    for path in (SOURCE / room).rglob("*.py"):
        assert not above & set(imported_rooms(path)), path


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_work(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name))
    assert failed == 0


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda p: p.name
)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        assert "://" in target or (path.parent / target).exists(), target
