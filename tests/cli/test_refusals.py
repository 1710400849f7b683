"""Invalid input gives a one-sentence error and exit code 2, before any request is sent."""

import re
import shlex
from pathlib import Path

import pytest

from testing import cdta, oaieval, snapshot

LIST = Path(__file__).parents[1] / "snapshots" / "refusals.txt"
"""Each line that starts with "$ " is a command, or a file's name and text; its error follows.

To add one, write that line and run this test with SNAPSHOTS=write.
"""
COMMANDS_OF_FILES = {
    "mine.toml": "cdta experiment mine.toml --out out",
    "mine.yaml": "oaieval mine cant_do_that_anymore --registry_path mine.yaml",
}
VARYING = r"('mine.(?:toml|yaml)' \(|cannot write [^(]*\(|(?:valid: |keys are )[^,]+,).*"
"""The rest of these messages comes from the system or a library, or lists names that grow."""


def error_of(command: str) -> str:
    program, *arguments = shlex.split(command)
    done = (cdta if program == "cdta" else oaieval)(*arguments, code=2)
    *_, sentence = done.stderr.splitlines()
    assert sentence.startswith(f"{program}: ") and "Traceback" not in done.stderr
    assert program == "oaieval" or done.stderr == f"{sentence}\n"
    return re.sub(VARYING, r"\1 ...", sentence)


def test_invalid_commands_and_files_match_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("mine").mkdir()
    Path("mine/notes.txt").touch()
    output = []
    for line in re.findall(r"^\$ (.*)", LIST.read_text(encoding="utf-8"), re.M):
        file, _, text = line.partition(": ")
        if file in COMMANDS_OF_FILES:
            Path(file).write_text(text if file == "mine.toml" else f"mine: {text}\n")
        output += [f"$ {line}", error_of(COMMANDS_OF_FILES.get(file, line))]
    assert len(output) > 2 * 70
    snapshot("refusals", "\n".join(output))
    assert not list(tmp_path.rglob("run.json"))
