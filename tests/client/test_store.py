"""Answers on disk: durable, shared, and recovered after damage."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cant_do_that_anymore.client.cache import ModelCache
from cant_do_that_anymore.client.store import Kind, Store, intact_rows, open_store
from cant_do_that_anymore.errors import UserError
from cant_do_that_anymore.providers.base import Settings
from cant_do_that_anymore.providers.local import RandomModel

E2E4 = {"text": "e2e4"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.sqlite"


def save(path: Path, answers: dict[str, Any]) -> None:
    async def save_answers() -> None:
        with closing(Store(path)) as store:
            await asyncio.gather(*(store.put(key, answer) for key, answer in answers.items()))

    asyncio.run(save_answers())


def read_answers(path: Path, *keys: str) -> dict[str, Any]:
    with closing(Store(path)) as store:
        return {key: answer for key in keys if (answer := store.get("answer", key))}


def make_answers(count: int) -> dict[str, Any]:
    return {f"{number:064x}": {"text": f"a2a3 {number}" * 20} for number in range(count)}


def overwrite(path: Path, offset: int, garbage: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(garbage)


def update_rows(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE cache_2 SET {change}")


@settings(max_examples=15)
@given(st.text(st.characters(exclude_categories=())))
def test_the_first_answer_stays(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("store") / "answers.sqlite"
    for answer in ({"text": text}, E2E4):
        save(path, {"key": answer})
    assert read_answers(path, "key", "other") == {"key": {"text": text}}


def test_an_answer_is_on_disk_when_its_future_is_done(path: Path) -> None:
    async def save_and_read() -> dict[str, Any]:
        await Store(path).put("key", E2E4)
        return read_answers(path, "key")  # another connection sees only what is on disk

    assert asyncio.run(save_and_read()) == {"key": E2E4}


def test_a_canceled_write_blocks_no_other(path: Path) -> None:
    async def cancel_one() -> bool:
        with closing(Store(path)) as store:
            canceled, waiting = (store.put(key, E2E4) for key in ("one", "other"))
            canceled.cancel()
            return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(cancel_one())
    assert len(read_answers(path, "one", "other")) == 2


def test_a_write_without_a_thread_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def save_answer() -> None:
        with closing(Store(path)) as store:
            no_thread = RuntimeError("can't start new thread")
            monkeypatch.setattr(store._thread, "submit", Mock(side_effect=no_thread))
            await asyncio.wait_for(store.put("key", E2E4), 10)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        asyncio.run(save_answer())


def test_values_persist_and_are_replaced_grouped_and_deleted(path: Path) -> None:
    for value in (["a", "b"], ["c"]):
        with closing(Store(path)) as store:
            assert store.write("variant", {"m": value})
            assert store.write("used variant", {"m 1": 1, "m 2": [2], "mm 3": 3})
        with closing(Store(path)) as store:
            assert [store.get("variant", key) for key in ("m", "other")] == [value, None]
            assert [store.group("used variant", name) for name in ("m", "o")] == [[1, [2]], []]
            assert not store.group("variant", "m")
    with closing(Store(path)) as store:
        assert not store.write("variant", {"new": 1, "m": 2}, replace=False)
        assert store.write("variant", {"newer": 1, "m": None})
        assert [store.get("variant", key) for key in ("m", "new", "newer")] == [None, None, 1]


@pytest.mark.parametrize(
    "change",
    [
        *("value = replace(value, 'e2e4', 'e2e3')", "value = x'ff00'", "checksum = checksum + 1"),
        *("value = CAST(x'7bff' AS TEXT)", "key = replace(key, 'e', 'f')"),
    ],
)
def test_rows_changed_on_disk_are_ignored_and_saved_again(path: Path, change: str) -> None:
    def save_values() -> None:
        save(path, {"key e2e4": E2E4})
        with closing(Store(path)) as store:
            store.write("variant", {"key e2e4": ["e2e4"]})

    def stored_values() -> list[Any]:
        with closing(Store(path)) as store:
            keys = "key e2e4", "kfy f2f4"
            return [
                *(store.get("answer", key) for key in keys),
                *(store.get("variant", key) for key in keys),
                *(store.group("variant", key.split()[0]) for key in keys),
            ]

    save_values()
    update_rows(path, change)
    assert stored_values() == [*[None] * 4, [], []]
    save_values()
    assert stored_values() == [E2E4, None, ["e2e4"], None, [["e2e4"]], []]


def test_damage_loses_only_what_it_covers(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers, values = make_answers(2000), {"m": ["a", "b"], "m 1": 1.5}
    kinds: tuple[Kind, ...] = "variant", "fingerprint", "used variant"
    save(path, answers)
    copy = path.with_name("copy.sqlite")
    with closing(Store(path)) as store:
        for kind in kinds:
            store.write(kind, values)
        for suffix in ("", "-wal"):  # as if the process were killed now
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    overwrite(copy, copy.stat().st_size // 2, os.urandom(8192))
    recovered = read_answers(copy, *answers)
    assert f"was damaged; it was moved to {copy}.damaged-" in caplog.text
    assert f"and {len(recovered)} readable answers were" in caplog.text
    assert len(recovered) > 1900
    assert recovered.items() <= answers.items()
    with closing(Store(copy)) as store:
        for kind in kinds:
            assert {key: store.get(kind, key) for key in values} == values
    assert len(list(path.parent.glob("copy.sqlite.damaged-*"))) == 1


def test_a_fresh_store_reads_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers_seen(*, fresh: bool) -> list[Any]:
        """The answer before saving it, then as two other readers see it."""
        with open_store(fresh=fresh) as store:
            answers = [store.get("answer", "key")]
            await store.put("key", E2E4)
            for reads_fresh in (False, True):
                with open_store(fresh=reads_fresh, to_read=True) as reader:
                    answers.append(reader.get("answer", "key"))
            return answers

    monkeypatch.setattr(os, "access", lambda *_: False)
    assert asyncio.run(answers_seen(fresh=True)) == [None, None, None]
    assert asyncio.run(answers_seen(fresh=False)) == [None, E2E4, None]
    assert asyncio.run(answers_seen(fresh=True)) == [None, E2E4, None]
    assert asyncio.run(answers_seen(fresh=False)) == [E2E4, E2E4, None]


@settings(max_examples=25)
@given(st.data())
def test_damage_never_gives_a_wrong_answer(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("store") / "answers.sqlite"
    answers = make_answers(60)
    save(path, answers)
    for _ in range(data.draw(st.integers(1, 4))):
        offset = data.draw(st.integers(0, path.stat().st_size - 1))
        overwrite(path, offset, data.draw(st.binary(min_size=1, max_size=600)))
    try:
        recovered = read_answers(path, *answers)
        save(path, answers)
        restored = read_answers(path, *answers)
    except UserError as error:  # the damaged header says that the file is read-only
        assert "readonly" in str(error)
    else:
        assert recovered.items() <= answers.items()
        assert restored == answers


def test_a_damaged_column_name_counts_as_damage(path: Path) -> None:
    save(path, make_answers(3))
    overwrite(path, path.read_bytes().index(b"kind TEXT"), b"\x80")
    assert read_answers(path, *make_answers(3)) == {}
    save(path, make_answers(3))
    assert read_answers(path, *make_answers(3)) == make_answers(3)


@pytest.mark.parametrize(
    "content", [b"", b"no database at all", Random(0).randbytes(5000)], ids=len
)
def test_a_file_that_is_not_a_store_is_moved_aside(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    save(path, {"key": E2E4})
    assert read_answers(path, "key")
    assert not content or next(path.parent.glob("*.damaged-*")).read_bytes() == content


def test_a_store_of_another_version_is_refused_and_unchanged(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE saved_answers (key TEXT, answer TEXT)")
    with pytest.raises(UserError, match=r"another version .* cannot be read; move .* CDTA_HOME"):
        Store(path)
    assert {*path.parent.iterdir()} == {path, path.with_name("opening.lock")}
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("saved_answers",)]


def test_a_lock_has_one_owner(path: Path) -> None:
    with closing(Store(path)) as store, closing(Store(path)) as other:
        lock = store.try_lock("some.lock")
        assert lock and not other.try_lock("some.lock")
        lock.close()
        assert other.try_lock("some.lock")


def test_a_disk_error_is_not_damage(path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    save(path, {"key": E2E4})
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(UserError, match="disk I/O error"):
            Store(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read_answers(path, "key") == {"key": E2E4}
    assert not [*path.parent.glob("*.damaged-*")]


def test_many_processes_share_a_new_store_without_lock_errors(path: Path) -> None:
    """All open the same new file and write to it concurrently."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from cant_do_that_anymore.client.store import Store\n"
        "async def main(path, name):\n"
        "    store = Store(Path(path))\n"
        "    for n in range(30):\n"
        "        await store.put(f'{name} {n}', name)\n"
        "        await store.put(f'common {n}', 'common')\n"
        "    store.close()\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), f"p{n}"], stderr=subprocess.PIPE
        )
        for n in range(4)
    ]
    for process in processes:
        assert process.communicate(timeout=60)[1] == b""
    rows = [(key.split()[0], value) for _, key, value, _ in intact_rows(path)]
    assert len(rows) == 4 * 30 + 30
    assert all(value == f'"{name}"' for name, value in rows)


def test_a_missing_folder_gives_a_one_sentence_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"cannot save answers in .*CDTA_HOME"):
        Store(tmp_path / "missing" / "answers.sqlite")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(UserError, match=r"no folder for temporary files .*; set TMPDIR"):
        open_store(fresh=True).__enter__()


def test_server_data_may_be_any_text(path: Path) -> None:
    with closing(Store(path)) as store:
        odd = "\ud800 *\n"
        assert ModelCache(RandomModel().info, store).record_fingerprints({odd: odd}) == {odd: []}
        ModelCache(RandomModel().info, store).set_variant(Settings(), (odd,))
