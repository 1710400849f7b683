"""The layout: imports point one way; folders and modules are neither too large nor too small."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "cant_do_that_anymore"
ORDER = (
    *("habits", "providers", "task", "client", "datasets"),
    *("metrics", "runs", "comparison", "report"),
)
"""Each folder may import those before it and the modules at the root."""
EDGES = ("api", "cli", "inspect_tasks", "oaieval")
"""These may import every folder in `ORDER` and `api`, but not each other."""
MAX_MODULES, MAX_LINES, MIN_LINES = 12, 400, 60
SHORT = {"habits.chess.notation", "client.limiter"}
"""Short modules with one importer that are still an idea of their own."""
KNOW_CHESS = {
    *("api.__init__", "habits.catalog", "cli.commands.mine", "oaieval.record"),
    *("datasets.selection", "datasets.storage"),
}
"""All others know chess only as one of the habits: the public names, the table of habits, mining,
the records of the original eval, and its datasets."""
ENTRIES = (
    *("cli.commands.", "habits.chess.rules.", "providers.", "report.formats.", "inspect_tasks."),
)
"""Folders whose modules are entries of a table."""
FILES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in sorted(SOURCE.rglob("*.py"))
}
MODULES = {name for name in FILES if not name.endswith("__init__")}


def imported_modules(name: str) -> Iterator[str]:
    """The modules of the package that a module imports, anywhere in its code."""
    package = ".".join([SOURCE.name, *name.split(".")[:-1]])
    for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith(SOURCE.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            root, _, folder = module.partition(".")
            full_names = (f"{folder}.{alias.name}".lstrip(".") for alias in node.names)
            if root == SOURCE.name:
                yield from (full if full in MODULES else folder for full in full_names)


@cache
def imports() -> dict[str, list[str]]:
    return {name: sorted(set(imported_modules(name))) for name in FILES}


def top_folder(name: str) -> str:
    first = name.split(".")[0]
    return first if first in (*ORDER, *EDGES) else ""


def may_import(name: str, other: str) -> bool:
    """Whether the order lets one module import another."""
    importer, imported = top_folder(name), top_folder(other)
    if importer == imported or imported == "" or name in ("__init__", "__main__"):
        return True
    if importer in EDGES:
        return imported in ORDER or imported == "api"
    return importer != "" and imported in ORDER and ORDER.index(imported) < ORDER.index(importer)


def test_modules_import_only_earlier_folders() -> None:
    pairs = [(name, other) for name, others in imports().items() for other in others if other]
    assert [pair for pair in pairs if not may_import(*pair)] == []


def test_chess_is_one_habit_among_others() -> None:
    importers = {
        name
        for name, others in imports().items()
        if not name.startswith("habits.chess.")
        and any(f"{other}.".startswith("habits.chess.") for other in others)
    }
    assert importers == KNOW_CHESS


def test_folders_and_modules_are_not_too_large() -> None:
    n_modules = Counter(FILES[name].parent for name in MODULES)
    assert {str(folder): n for folder, n in n_modules.items() if n > MAX_MODULES} == {}
    assert [name for name in FILES if n_lines(name) > MAX_LINES] == []


def n_lines(name: str) -> int:
    return len(FILES[name].read_text(encoding="utf-8").splitlines())


def test_a_short_module_has_more_than_one_importer() -> None:
    importers = Counter(other for others in imports().values() for other in others)
    too_short = {
        name
        for name in MODULES - SHORT
        if n_lines(name) < MIN_LINES and importers[name] == 1 and not name.startswith(ENTRIES)
    }
    assert too_short == set()
