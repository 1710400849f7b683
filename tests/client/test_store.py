"""Answers on disk: durable, shared, and rescued from damage."""

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.client.batch.jobs import BatchJournal, JournalEntry
from cant_do_that_anymore.client.store import Store, opened_store, store_to_read
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.providers.base import Answer, RequestVariant, Usage
from cant_do_that_anymore.providers.local import RandomModel


def saved(path: Path, answers: dict[str, Answer]) -> None:
    async def save() -> None:
        store = Store(path)
        await asyncio.gather(*(store.put(key, "m", answer) for key, answer in answers.items()))
        store.close()

    asyncio.run(save())


def many(count: int) -> dict[str, Answer]:
    return {f"{number:064x}": Answer(f"a2a3 {number}" * 20) for number in range(count)}


def found(path: Path, keys: list[str]) -> dict[str, Answer]:
    store = Store(path)
    answers = {key: store.get(key) for key in keys}
    store.close()
    return {key: answer for key, answer in answers.items() if answer}


texts = st.text(st.characters(exclude_categories=()))


@settings(max_examples=30)
@given(texts, texts, texts)
def test_any_answer_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, version: str, model: str
) -> None:
    path = tmp_path_factory.mktemp("store") / "answers.sqlite"
    answer = Answer(text, "length", Usage(3, 4), version, conceded=("a", "b"))

    async def save() -> None:
        store = Store(path)
        await store.put("key", model, answer)
        store.close()

    asyncio.run(save())
    assert found(path, ["key", "other"]) == {"key": answer}


def test_the_first_answer_to_a_question_is_the_one_that_stays(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    saved(path, {"key": Answer("first")})
    saved(path, {"key": Answer("second")})
    assert found(path, ["key"])["key"].text == "first"


def test_an_answer_is_on_disk_when_its_future_is_done(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"

    async def save_and_look() -> bytes:
        store = Store(path)
        await store.put("key", "m", Answer("e2e4"))
        return subprocess.check_output(  # another process sees only what is written
            [sys.executable, "-c", f"import sqlite3; print(sqlite3.connect({str(path)!r}).execute("
             "'SELECT answer FROM saved_answers').fetchall())"]
        )  # fmt: skip

    assert b"e2e4" in asyncio.run(save_and_look())


def test_who_is_stopped_while_an_answer_is_written_holds_up_no_other(tmp_path: Path) -> None:
    async def save() -> bool:
        store = Store(tmp_path / "answers.sqlite")
        stopped, waiting = (store.put(key, "m", Answer("e2e4")) for key in ("one", "other"))
        stopped.cancel()
        done = await asyncio.wait_for(waiting, 10)
        store.close()
        return done

    assert asyncio.run(save())
    assert len(found(tmp_path / "answers.sqlite", ["one", "other"])) == 2


def test_what_is_learnt_of_a_model_is_known_to_the_next_process(tmp_path: Path) -> None:
    for form in (("a", "b"), ("c",)):
        store = Store(tmp_path / "answers.sqlite")
        store.set_variant("m", form)
        for way in ("[1]", "[2]", "[1]"):
            store.record_variant("m", way)
        store.close()
        store = Store(tmp_path / "answers.sqlite")
        assert (store.variant("m"), store.variant("other")) == (form, ())
        assert (store.cached_variants("m"), store.cached_variants("other")) == (["[1]", "[2]"], [])
        store.close()


@pytest.mark.parametrize("change", ["replace({}, '[', ';')", "replace({}, '1', 'Q')", "x'ff00'"])
def test_what_was_learnt_of_a_model_and_changed_on_disk_is_learnt_again(
    tmp_path: Path, change: str
) -> None:
    path, form, way = tmp_path / "answers.sqlite", ("1",), "[16, 1]"

    def learn() -> None:
        with closing(Store(path)) as store:
            store.set_variant("m", form)
            store.record_variant("m", way)

    def known() -> tuple[RequestVariant, list[str]]:
        with closing(Store(path)) as store:
            return store.variant("m"), store.cached_variants("m")

    learn()
    with closing(sqlite3.connect(path)) as database, database:
        for table, column in (("forms", "form"), ("ways", "way")):
            database.execute(f"UPDATE {table} SET {column} = {change.format(column)}")
    assert known() == ((), [])
    learn()
    assert known() == (form, [way])


@pytest.mark.parametrize("change", ["replace({}, 'e2e4', 'e2e3')", "x'ff00'"])
def test_what_came_of_a_batch_and_changed_on_disk_is_not_believed(
    tmp_path: Path, change: str
) -> None:
    with closing(Store(tmp_path / "answers.sqlite")) as store:
        ledger = BatchJournal(store, RandomModel().info)
        ledger.enter("file", {"key": ("e2e4",)})
        assert ledger.variants_in("file") == {"key": ("e2e4",)}
        assert ledger.find("key") == JournalEntry("file", None)
        ledger.ended("file", {"key": Answer("e2e4")})
        assert ledger.find("key") == JournalEntry("file", Answer("e2e4"))
        for column in ("form", "answer"):
            store.run(f"UPDATE batched SET {column} = {change.format(column)}")
        assert (ledger.variants_in("file"), ledger.find("key")) == ({}, None)


def test_garbage_in_the_middle_loses_only_what_it_covers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "answers.sqlite"
    answers = many(2000)
    saved(path, answers)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(8192))
    with caplog.at_level(logging.WARNING):
        kept = found(path, list(answers))
    assert "was damaged" in caplog.text
    assert len(kept) > 1900
    assert all(answers[key] == answer for key, answer in kept.items())
    assert len(list(tmp_path.glob("answers.sqlite.damaged-*"))) == 1


def test_what_a_damaged_store_had_learnt_and_not_yet_written_back_is_taken_over(
    tmp_path: Path,
) -> None:
    path, other = tmp_path / "answers.sqlite", tmp_path / "other.sqlite"
    saved(path, many(500))
    store = Store(path)
    store.set_variant("m", ("a", "b"))
    store.record_variant("m", "[1]")
    store.run("INSERT INTO marks VALUES ('m', 'mark')")
    store.run("INSERT INTO batched VALUES ('k', 'm', 'f', 'b', '[]', '', 1.5)")
    for suffix in ("", "-wal"):  # as a process leaves them that is killed now
        shutil.copyfile(f"{path}{suffix}", f"{other}{suffix}")
    store.close()
    with other.open("r+b") as file:
        file.seek(other.stat().st_size // 2)
        file.write(os.urandom(8192))
    rescued = Store(other)
    assert rescued.variant("m") == ("a", "b")
    assert rescued.cached_variants("m") == ["[1]"]
    assert rescued.run("SELECT * FROM marks") == [("m", "mark")]
    assert rescued.run("SELECT * FROM batched") == [("k", "m", "f", "b", "[]", "", 1.5)]
    rescued.close()


def test_who_only_looks_sees_what_another_has_just_saved_also_where_nothing_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def save_and_look() -> Answer | None:
        with opened_store(fresh=False) as store:
            await store.put("key", "m", Answer("e2e4"))
            with store_to_read() as looking:
                return looking.get("key")

    monkeypatch.setattr(os, "access", lambda *_: False)
    assert asyncio.run(save_and_look()) == Answer("e2e4")


def test_a_fresh_store_knows_nothing_and_leaves_nothing() -> None:
    async def save(*, fresh: bool) -> Answer | None:
        with opened_store(fresh=fresh) as store:
            before = store.get("key")
            await store.put("key", "m", Answer("e2e4"))
            return before

    assert [asyncio.run(save(fresh=fresh)) for fresh in (True, False, True)] == [None] * 3
    assert asyncio.run(save(fresh=False)) == Answer("e2e4")


@settings(max_examples=25)
@given(st.data())
def test_no_damage_anywhere_makes_a_wrong_answer(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("store") / "answers.sqlite"
    answers = many(60)
    saved(path, answers)
    with path.open("r+b") as file:
        for _ in range(data.draw(st.integers(1, 4))):
            file.seek(data.draw(st.integers(0, path.stat().st_size - 1)))
            file.write(data.draw(st.binary(min_size=1, max_size=600)))
    try:
        kept = found(path, list(answers))
        saved(path, answers)
        whole = found(path, list(answers))
    except UserError as problem:  # damage to the header that reads as "do not write to this"
        assert "readonly" in str(problem)
    else:
        assert all(answers[key] == answer for key, answer in kept.items())
        assert whole == answers


@pytest.mark.parametrize("change", ["replace(answer, 'e2e4', 'e2e3')", "CAST(x'7bff' AS TEXT)"])
def test_an_answer_changed_on_disk_is_asked_again(tmp_path: Path, change: str) -> None:
    path = tmp_path / "answers.sqlite"
    saved(path, {"key": Answer("e2e4")})
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE saved_answers SET answer = {change}")
    assert found(path, ["key"]) == {}
    saved(path, {"key": Answer("e2e4")})
    assert found(path, ["key"])["key"].text == "e2e4"


@pytest.mark.parametrize("content", [b"", b"no database at all", os.urandom(5000)])
def test_a_file_that_is_no_store_is_moved_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(content)
    saved(path, {"key": Answer("e2e4")})
    assert found(path, ["key"])
    assert not content or next(tmp_path.glob("*.damaged-*")).read_bytes() == content


def test_a_new_file_that_another_process_is_just_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        later = threading.Timer(0.2, other.rollback)
        later.start()
        saved(path, {"key": Answer("e2e4")})
        later.join()
    assert found(path, ["key"])
    assert not (tmp_path / "rescue.lock").exists()


def test_a_disk_that_fails_is_no_damage(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path, limits = tmp_path / "answers.sqlite", resource.getrlimit(resource.RLIMIT_FSIZE)
    saved(path, {"key": Answer("e2e4")})
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(UserError, match="disk I/O error"):
            Store(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found(path, ["key"])["key"].text == "e2e4"
    assert not [*tmp_path.glob("*.damaged-*")]


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot save answers in .*CDTA_HOME"):
        Store(tmp_path / "missing" / "answers.sqlite")


def test_many_processes_share_a_new_store_without_lock_errors(tmp_path: Path) -> None:
    """All open the same fresh file at once and write to it at once."""
    path = tmp_path / "answers.sqlite"
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from cant_do_that_anymore.client.store import Store\n"
        "from cant_do_that_anymore.providers.base import Answer\n"
        "async def main(path, name):\n"
        "    store = Store(Path(path))\n"
        "    for n in range(30):\n"
        "        await store.put(f'{name} {n}', 'm', Answer(name))\n"
        "        await store.put(f'common {n}', 'm', Answer('same'))\n"
        "    store.close()\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), f"p{n}"], stderr=subprocess.PIPE
        )
        for n in range(6)
    ]
    for process in processes:
        assert process.communicate(timeout=60)[1] == b""
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT key, answer FROM saved_answers").fetchall()
    assert len(rows) == 6 * 30 + 30
    assert all(json.loads(answer)["text"] in (key.split()[0], "same") for key, answer in rows)


def test_no_folder_for_temporary_files_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(UserError, match=r"no folder for temporary files .*; set TMPDIR"):
        opened_store(fresh=True).__enter__()
