"""The layout: imports point one way, folders and modules stay small but are not splinters."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "cant_do_that_anymore"
ORDER = (
    *("game", "providers", "task", "client", "datasets"),
    *("metrics", "costs", "runs", "comparison", "report"),
)
"""Each room may import those before it, and the modules at the root."""
EDGES = ("api", "cli", "inspect_tasks", "oaieval")
"""These may import every room and `api`, but not each other."""
MOST_MODULES, MOST_LINES, FEWEST_LINES = 12, 400, 60
SMALL = {"game.notation", "client.limiter"}
"""An idea of its own, though it is short and one module alone imports it."""
ENTRIES = (
    *("cli.commands.", "game.rules.", "providers."),
    *("report.formats.", "report.plots.", "inspect_tasks."),
)
"""Folders whose modules are entries of a table."""
FILES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in sorted(SOURCE.rglob("*.py"))
}
MODULES = {name for name in FILES if not name.endswith("__init__")}


def imported(name: str) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".") if node.module else []
        if node.level:
            parts = [*name.split(".")[: -node.level], *parts]
        elif parts[:1] == ["cant_do_that_anymore"]:
            parts = parts[1:]
        else:
            continue
        for alias in node.names:
            whole = ".".join([*parts, alias.name])
            yield whole if whole in MODULES else ".".join(parts)


@cache
def imports() -> dict[str, list[str]]:
    return {name: sorted(set(imported(name))) for name in FILES}


def room(name: str) -> str:
    first = name.split(".")[0]
    return first if first in (*ORDER, *EDGES) else ""


def may_import(name: str, other: str) -> bool:
    """Whether the order lets one module import another."""
    here, there = room(name), room(other)
    if here == there or there == "" or name in ("__init__", "__main__"):
        return True
    if here in EDGES:
        return there in ORDER or there == "api"
    return here != "" and there in ORDER and ORDER.index(there) < ORDER.index(here)


def test_a_module_imports_only_rooms_before_its_own() -> None:
    pairs = [(name, other) for name, others in imports().items() for other in others if other]
    assert [pair for pair in pairs if not may_import(*pair)] == []


def test_folders_hold_at_most_a_dozen_modules() -> None:
    folders = defaultdict[Path, int](int)
    for name in MODULES:
        folders[FILES[name].parent] += 1
    assert {str(folder): n for folder, n in folders.items() if n > MOST_MODULES} == {}


def test_modules_are_not_too_long() -> None:
    lines = {name: len(FILES[name].read_text(encoding="utf-8").splitlines()) for name in FILES}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def test_a_short_module_has_more_than_one_user() -> None:
    users = defaultdict[str, set[str]](set)
    for name, others in imports().items():
        for other in others:
            users[other].add(name)
    short = {
        name
        for name in MODULES - SMALL
        if len(FILES[name].read_text(encoding="utf-8").splitlines()) < FEWEST_LINES
        and len(users[name]) == 1
        and not name.startswith(ENTRIES)
    }
    assert short == set()


def test_options_load_no_heavy_library() -> None:
    code = "from cant_do_that_anymore import Spec\nimport sys\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"aiohttp", "httpx", "numpy", "matplotlib"}
    assert heavy.intersection(loaded.stdout.split()) == set()
