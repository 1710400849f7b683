"""Documents and docstrings are correct: examples work, commands parse, links have targets."""

import doctest
import re
import runpy
import shlex
import shutil
import tomllib
from importlib import import_module
from pathlib import Path

import click
import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.api import results
from cant_do_that_anymore.cli.main import cdta
from cant_do_that_anymore.comparison.experiment import DIMENSIONS, specs_for
from cant_do_that_anymore.task.spec import OPTIONS
from testing import cdta as run_cdta

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cant_do_that_anymore"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("training/*.md")])


def test_examples_in_docstrings_work() -> None:
    for path in SOURCE.rglob("*.py"):
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
            assert doctest.testmod(import_module(name)).failed == 0, name


def path_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    """A document without its code blocks."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path: Path) -> set[str]:
    """The anchors of its headings, as code hosts and the site generate them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PROJECT_FILES = re.compile(r"`((?:src|tests|tools|benchmarks|docs|\.ci)/[\w./-]+\.\w+)[`:]")
FOLDERS = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "data")
PACKAGE_FILES = re.compile(rf"`((?:{FOLDERS})/[\w/.]*)`")


@pytest.mark.parametrize("path", DOCUMENTS, ids=path_id)
def test_links_images_and_files_in_documents_exist(path: Path) -> None:
    links = re.findall(r'(?:\]\(|src=")([^)"\s]+)', prose(path))
    for file, _, anchor in (link.partition("#") for link in links if "://" not in link):
        target = path.parent / file if file else path
        assert target.exists(), file
        assert not anchor or anchor in anchors(target), f"{file}#{anchor}"
    text = path.read_text(encoding="utf-8")
    for file in PROJECT_FILES.findall(text):
        assert (ROOT / file).exists(), file
    for file in PACKAGE_FILES.findall(text):
        module = SOURCE / file
        assert module.exists() or module.with_suffix(".py").exists(), file


def test_site_navigation_lists_every_document() -> None:
    pages = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert len(pages) == len(set(pages))
    assert {path_id(path).removeprefix("docs/") for path in ROOT.glob("docs/**/*.md")} <= set(pages)


@pytest.mark.parametrize("name", ["api", "commands", "results"])
def test_generated_documents_are_up_to_date(name: str) -> None:
    generated = runpy.run_path(str(ROOT / "tools" / f"{name}.py"))["page"]()
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == generated, (
        f"run python tools/{name}.py"
    )


def test_modules_and_tests_that_tools_name_exist() -> None:
    areas = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
    report = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    modules = {module for area in areas.values() for module in area["modules"]}
    measured = set(re.findall(r"^\| \w+ \| `([\w/]+)`", report, re.M))
    assert measured and measured <= modules
    assert [module for module in modules if not (SOURCE / f"{module}.py").is_file()] == []
    scripts = [ROOT / "tools" / "mutants.py", *(ROOT / ".ci").glob("*")]
    named = re.findall(r"tests/[\w/.]+", "".join(path.read_text() for path in scripts))
    named += [f"tests/{test}" for area in areas.values() for test in area["tests"]]
    assert [path for path in named if not (ROOT / path).exists()] == []


VALIDATED = {*OPTIONS, *(each.plural for each in DIMENSIONS.values())} - {"header"}
"""Options whose values are checked; a header may need a variable."""


@pytest.mark.parametrize("path", DOCUMENTS, ids=path_id)
def test_commands_in_documents_parse(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("experiment.toml").touch()
    text = path.read_text(encoding="utf-8").replace("\\\n", "")
    for own in re.findall(r"--rules (\S+\.toml)", text):
        shutil.copy(SOURCE / "data" / "questions" / "base-9.toml", own)
        shutil.copy(SOURCE / "data" / "questions" / "base-9.jsonl", ".")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    code = "\n".join(block for language, block in blocks if language in ("", "bash", "console"))
    for line in re.findall(r"^(?:\$ )?(?:.*&& )?cdta ([^&|>\n]+)", code, re.M):
        arguments = shlex.split(line, comments=True)
        command: click.Command | None = cdta
        context = cdta.make_context("cdta", [], resilient_parsing=True)
        while isinstance(command, click.Group):
            command = command.get_command(context, arguments.pop(0))
        assert command, line
        params = command.make_context(line, arguments, parent=context).params
        options = {name: value for name, value in params.items() if name in VALIDATED}
        specs_for(**options) if command.name == "experiment" else Spec(**options)


@pytest.mark.parametrize("path", ["docs/compare.md", "docs/first-run.md"])
def test_example_commands_print_the_documented_output(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples with the bundled models, except those in the README, which take a minute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "page", lambda _: "")
    blocks = re.findall(r"^```\w*\n(\$ .*?)^```", (ROOT / path).read_text(), re.M | re.S)
    with_output = "".join(block for block in blocks if re.search(r"^[^$\s]", block, re.M))
    for step in re.split(r"^\$ ", with_output, flags=re.M):
        command, _, output = step.partition("\n")
        if command.startswith("cdta "):
            stdout = run_cdta(*shlex.split(command, comments=True)[1:]).stdout
            for part in re.split(r"^\.\.\.$", output, flags=re.M):
                assert without_folder_and_time(part) in without_folder_and_time(stdout)


def without_folder_and_time(text: str) -> str:
    """The words of a text without the run folder and the seconds."""
    return " ".join(re.sub(r"\S+/runs/\S+|\b\d+ s\b", "", text).split())
