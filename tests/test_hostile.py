"""Hostile input gives a result or a one-sentence error, never a crash or files elsewhere."""

import gzip
import json
import shutil
import string
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, get_args
from zipfile import ZipFile

import chess
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cant_do_that_anymore import Answer, Position, read_positions, read_yes_no, shipped_pool
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.files import safe_name
from cant_do_that_anymore.habits.chess.reader import move_in
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, STANDARD
from cant_do_that_anymore.oaieval.solvers import read_registry, solver_fields
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.lookup import new_run_dir
from cant_do_that_anymore.runs.storage import load_run, save_run
from cant_do_that_anymore.task.prompts import wordings_named
from cant_do_that_anymore.task.scorer import judge
from cant_do_that_anymore.task.types import Reading
from testing import habit, measure, positions, serving_in_process

any_text = st.text(st.characters(exclude_categories=()))
move_like_text = st.text("abcdefghNBRQKOo0x12345678=+#-:> \n.!→–,qnrbE\x00\u200b", max_size=40)
TRICKY_NAMES = (
    *("../../escape", "/etc/passwd", "..", "C:\\Windows\\x", "-rf", "\u202egnp.exe\n", "n" * 5000),
)
POOL = shipped_pool("pool")[:40]


def check_no_crash(call: Callable[[], object]) -> None:
    """The call succeeds or raises an error with a short message."""
    try:
        call()
    except InvalidInput as error:
        assert 0 < len(str(error)) < 2000


@settings(max_examples=150)
@given(any_text | move_like_text, st.sampled_from(POOL), st.sampled_from(get_args(Reading)))
@example("a1a1", POOL[0], "lenient")
@example("0000", POOL[0], "lenient")
@example("e7e8=Q" * 1000, POOL[0], "lenient")
@example("\x00" * 1000 + "e2e4", POOL[0], "lenient")
def test_any_reply_can_be_parsed(reply: str, position: Position, reading: Reading) -> None:
    fen = position.board().fen()
    move = judge(Answer(reply), position, BISHOPS_AS_KNIGHTS, reading).answer
    assert move is None or chess.Move.from_uci(move).uci() == move
    assert position.board().fen() == fen


FRAGMENTS = (
    *("((((", "**", "....", "--", "e2", "Nf", "    ", "1.", "O-", "~~", "```", "\n- "),
    *("<answer>", "\\boxed{", "f1b5 is now also ", "e2 to ", "no, ", '"move": "', "<think>"),
)


def test_long_replies_are_parsed_in_linear_time() -> None:
    for fragment in FRAGMENTS:
        reply = fragment * (40_000 // len(fragment))
        start = process_time()
        assert move_in(reply, chess.Board(), STANDARD) is None
        read_yes_no(reply)
        assert process_time() - start < 0.9, fragment  # quadratic time would take longer


@given(any_text, any_text)
def test_different_names_get_different_safe_file_names(name: str, other: str) -> None:
    file_name = safe_name(name)
    assert set(file_name) <= set(string.ascii_letters + string.digits + "._-")
    assert file_name and not file_name.startswith(".")
    assert len(file_name) <= 100
    assert (file_name == safe_name(other)) == (name == other)


def test_no_model_name_writes_outside_the_home(home: Path, tmp_path: Path) -> None:
    """The server reports the same name, which is part of the folder names of dataset and run."""
    for name in TRICKY_NAMES:
        with serving_in_process(habit, model=name) as server:
            run = measure(server, model=name, pool=positions(10), n=2)
        save_run(run, folder := new_run_dir(run))
        assert folder.parent == home / "runs"
        assert load_run(folder).model == name
    assert {path for path in tmp_path.rglob("*") if home not in path.parents} == {home}


def mutated(original: bytes, seed: int) -> bytes:
    """The content with some bytes cut, repeated or changed."""
    random, content = Random(seed), bytearray(original)
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(content) + 1)
        end = start + random.choice((0, 1, 5, 50))
        junk = random.choice((b"", b"\x00", b"\xff\xfe", b"9" * 30, b"null", b'"', b"[[[[", b"{"))
        content[start:end] = junk if random.random() < 0.8 else content[start:end] * 3
    return bytes(content)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over 1 sample; tests damage copies of its files."""
    folder = tmp_path_factory.mktemp("made")
    save_run(measure("cdta/random", n=1, pool=positions(600)), folder / "run")
    return folder / "run"


FILES = ("run.json", "samples.jsonl")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.integers(), st.sampled_from(FILES))
@example(b'{"game_idx": 1, "previous_moves": ["e2e4"], "next_filtered_moves": [7]}', "run.json")
@example(b'{"game_idx": 1, "previous_moves": [[]], "next_filtered_moves": ["a2a3"]}', "run.json")
@example(b'{"game_idx": 1e999, "previous_moves": [], "next_filtered_moves": ["a2a3"]}', "run.json")
def test_damaged_files_do_not_crash(
    run_folder: Path, tmp_path: Path, content: bytes | int, name: str
) -> None:
    """Files with positions, and a file of a run."""

    def damaged(original: bytes) -> bytes:
        return mutated(original, content) if isinstance(content, int) else content

    lines = damaged(
        "".join(json.dumps(position.to_json()) + "\n" for position in POOL[:3]).encode()
    )
    for path, data in {"a.jsonl": lines, "b.gz": lines, "c.gz": gzip.compress(lines)}.items():
        (tmp_path / path).write_bytes(data)
        check_no_crash(partial(read_positions, tmp_path / path, BISHOPS_AS_KNIGHTS))
    shutil.copytree(run_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes(damaged((run_folder / name).read_bytes()))
    check_no_crash(lambda: load_run(tmp_path))


def entries_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and object inside a value, with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from entries_in(value[key])


@pytest.mark.parametrize("junk", [None, -3, "x", [None], {}], ids=json.dumps)
def test_run_folders_with_one_junk_value_do_not_crash(
    junk: object, run_folder: Path, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in FILES]
    values = [json.loads((run_folder / name).read_text()) for name in FILES]
    for container, key in entries_in(values):
        original = container[key]
        container[key] = junk
        for file, value in zip(files, values, strict=True):
            file.write_text(json.dumps(value) + "\n")
        check_no_crash(lambda: summary(load_run(tmp_path)))
        container[key] = original


DEFAULTS = "evals/elsuite/cant_do_that_anymore/defaults.py"
WHEEL_TEXTS = ("5", "{[]: 1}", "-" * 100_000 + "1", "+".join("1" * 50_000))
REGISTRIES = (
    *("s: !!python/object/apply:os.system ['touch escape']", "? [a, b]\n: c", "\x00"),
    "s: {model: m, x: 1}",
)


def test_hostile_files_of_the_original_are_refused(tmp_path: Path) -> None:
    for text in WHEEL_TEXTS:
        with ZipFile(tmp_path / "evals.whl", "w") as file:
            file.writestr(DEFAULTS, f"TASK_DESCRIPTION = {text}")
        with pytest.raises(InvalidInput, match="cannot read the original's texts"):
            wordings_named(f"openai-evals:{tmp_path}/evals.whl", BISHOPS_AS_KNIGHTS)
    for content in REGISTRIES:
        (tmp_path / "r.yaml").write_text(content)
        with pytest.raises(InvalidInput) as error:
            solver_fields("s", read_registry(tmp_path / "r.yaml").get("s"))
        assert len(str(error.value)) < 2000
    assert not Path("escape").exists()
