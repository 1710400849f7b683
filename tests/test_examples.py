"""The examples do what their descriptions say."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.habits.chess import pools, rule_pool
from testing import Serve, habit, perfect

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples write files into the current folder."""
    monkeypatch.chdir(tmp_path)


def run_example(name: str, *arguments: object) -> int | str | None:
    """Run an example in this process, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *map(str, arguments)])
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        except SystemExit as end:
            return end.code
    return 0


@pytest.mark.parametrize(("old", "new", "code"), [(perfect, habit, 1), (habit, perfect, 0)])
def test_a_worse_new_server_fails_the_check(
    old: Any, new: Any, code: int, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    urls = serve(old).url, serve(new).url
    assert run_example("compare_servers.py", *urls, "-n", 20, "--tolerance", 5) == code
    assert ("check fails" if code else "check passes") in capsys.readouterr().out
    assert "rule uptake" in Path("comparison.html").read_text(encoding="utf-8")


def test_a_custom_rule_and_wording_reach_the_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (rule_pool, pools):
        monkeypatch.setattr(module, "POOL_SIZE", 300)
    assert run_example("own_rule.py") == 0
    output = capsys.readouterr().out
    assert output.startswith("One rule is new: Kings castle only on the queen's side now.")
    assert "are given turn by turn. Reply with" in output
    assert "It follows the new rule in 100%" in output


def test_replies_in_logs_are_scored(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_example("score_logs.py", EXAMPLES / "logs.jsonl") == 0
    assert capsys.readouterr().out.splitlines() == [
        "    3   60%  legal",
        "    1   20%  forbidden by the rule",
        "    1   20%  no move",
    ]


def test_the_notebook_reproduces_its_stored_outputs() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "rerun_notebook.py"))
    stored = tool["nbformat"].read(EXAMPLES / "notebook.ipynb", as_version=4)
    rerun = tool["executed"]()  # the kernel has a running event loop
    cells = [
        pair for pair in zip(stored.cells, rerun.cells, strict=True) if pair[0].cell_type == "code"
    ]
    assert len(cells) == 11
    for before, after in cells:
        assert before.outputs, before.source
        assert [*map(content, after.outputs)] == [*map(content, before.outputs)], before.source


def content(output: Any) -> tuple[str, list[str]]:
    """The text and the MIME types of an output."""
    data = output.get("data", {})
    return output.get("text") or data["text/plain"], sorted(data)
