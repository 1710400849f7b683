"""A disk that is full, read-only or damaged: one sentence, and nothing is lost that was there."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from cant_do_that_anymore.client.store import Store
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.runs.storage import load_run
from loopback import Body, Loopback, serving
from machines import needs_posix
from players import habit
from processes import cdta, results_in, samples_in

N = 60
POOL = shipped_pool("pool")[:N]
DISK = 240
"""How large the disk is, in kB: an empty store takes some of it."""


def respond(request: Body) -> str:
    return "I think. " * 200 + habit(request)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(Loopback(respond)) as server:
        yield server


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    file = tmp_path / "positions.jsonl"
    write_positions(file, POOL)
    return file


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for some answers."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(disk)], check=True)


def command(server: Loopback, positions: Path, out: Path) -> list[object]:
    options: list[object] = ["run", "--base-url", server.url, "--model", "m", "--quiet"]
    return [*options, "--dataset", positions, "-n", N, "--max-connections", 4, "--out", out]


def assert_plain(errors: str, *words: str) -> None:
    assert errors.startswith("cdta: ")
    assert "Traceback" not in errors
    assert all(word in errors for word in words), errors


def test_a_full_disk_stops_the_run_and_what_was_saved_counts_when_there_is_space_again(
    server: Loopback, positions: Path, small_disk: Path, tmp_path: Path
) -> None:
    home = str(small_disk)
    full = cdta(*command(server, positions, tmp_path / "out"), CDTA_HOME=home)
    assert full.returncode == 1
    assert_plain(full.stderr, "cannot save answers", "disk is full", "run the same command again")
    asked = len(server.requests)
    remount(small_disk, "size=8m")
    again = cdta(*command(server, positions, tmp_path / "out"), CDTA_HOME=home)
    assert again.returncode == 0, again.stderr
    repeated = len(server.requests) - 2 * N - 1  # is it the same model?
    assert asked - repeated > 5  # so many were saved before the disk was full
    assert results_in(tmp_path / "out")["metrics"]["n_samples"] == N


def test_a_run_that_finds_no_place_for_its_folder_says_so_and_is_not_asked_again(
    server: Loopback, positions: Path, small_disk: Path, tmp_path: Path
) -> None:
    full = cdta(*command(server, positions, small_disk / "out"))
    assert full.returncode == 1
    assert_plain(full.stderr, "cannot write the run", "its answers are saved")
    assert not (small_disk / "out").exists()
    assert cdta(*command(server, positions, tmp_path / "out")).returncode == 0
    assert len(server.requests) == 2 * N + 1  # is it the same model?


def test_a_page_for_which_there_is_no_room_leaves_the_old_one_as_it_was(
    server: Loopback, positions: Path, small_disk: Path, tmp_path: Path
) -> None:
    assert cdta(*command(server, positions, tmp_path / "out")).returncode == 0
    page = small_disk / "page.html"
    page.write_text("an older one")
    full = cdta("report", tmp_path / "out", "-o", page)
    assert full.returncode == 1
    assert_plain(full.stderr, "cannot write the page", "No space left")
    assert page.read_text() == "an older one"
    assert list(small_disk.iterdir()) == [page]


def test_a_built_dataset_that_cannot_be_written_is_one_sentence(
    server: Loopback, small_disk: Path, tmp_path: Path, positions: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "datasets").symlink_to(small_disk)
    (small_disk / "filler").write_bytes(b"x" * DISK * 1000)
    options = ["--base-url", server.url, "--model", "m", "--quiet", "-n", N, "--pool", positions]
    full = cdta("run", *options)
    assert full.returncode == 1
    assert_plain(full.stderr, "cannot keep the dataset", "No space left")
    asked = len(server.requests)
    (home / "datasets").unlink()
    assert cdta("run", *options).returncode == 0
    assert len(server.requests) - asked == 1 + 2 * N  # only what is left to measure, and who it is


def test_a_read_only_home_is_one_sentence(
    server: Loopback, positions: Path, small_disk: Path, tmp_path: Path
) -> None:
    remount(small_disk, "ro")
    run = cdta(*command(server, positions, tmp_path / "out"), CDTA_HOME=str(small_disk))
    assert run.returncode == 1
    assert_plain(run.stderr, "cannot", "CDTA_HOME")
    assert not server.requests


def test_a_home_that_cannot_be_made_is_one_sentence(
    server: Loopback, positions: Path, tmp_path: Path
) -> None:
    run = cdta(*command(server, positions, tmp_path / "out"), CDTA_HOME=str(positions / "home"))
    assert run.returncode == 1
    assert_plain(run.stderr, "cannot use", "CDTA_HOME")
    assert not server.requests


def test_a_store_damaged_in_the_middle_costs_only_what_was_damaged(
    server: Loopback, positions: Path, home: Path, tmp_path: Path
) -> None:
    assert cdta(*command(server, positions, tmp_path / "first")).returncode == 0
    store = home / "answers.sqlite"
    with store.open("r+b") as file:
        file.seek(store.stat().st_size // 2)
        file.write(b"\xff\x00garbage" * 900)
    again = cdta(*command(server, positions, tmp_path / "second"))
    assert again.returncode == 0
    assert_plain(again.stderr, "was damaged", "taken over")
    assert 0 < len(server.requests) - 2 * N < 30
    assert samples_in(tmp_path / "first") == samples_in(tmp_path / "second")


def test_of_several_who_find_a_damaged_store_one_rescues_it(tmp_path: Path) -> None:
    path, answers = tmp_path / "answers.sqlite", 200

    async def filled() -> None:
        with closing(Store(path)) as store:
            await asyncio.gather(
                *(store.put(str(n), {"text": "e2e4 " * 40}) for n in range(answers))
            )

    asyncio.run(filled())
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff\x00garbage" * 400)
    together = Barrier(4)

    def opened(_: int) -> Store:
        together.wait()
        return Store(path)

    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(opened, range(4)))
    found = [
        sum(store.get("answer", str(n)) is not None for n in range(answers)) for store in stores
    ]
    for store in stores:
        store.close()
    assert len(set(found)) == 1
    assert answers // 2 < found[0] < answers
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1


def few(server: Loopback, positions: Path) -> list[object]:
    return ["--base-url", server.url, "--model", "m", "--pool", positions, "-n", 5]


@needs_posix
def test_what_is_kept_is_for_the_user_alone(server: Loopback, positions: Path, home: Path) -> None:
    home.mkdir()  # somebody else made it, for all to read
    run = cdta("run", *few(server, positions), "--quiet")
    assert run.returncode == 0, run.stderr
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in home.iterdir()}
    assert modes == {"answers.sqlite": "0o600", "datasets": "0o700", "runs": "0o700"}


def test_an_estimate_needs_only_to_read(
    server: Loopback, positions: Path, small_disk: Path
) -> None:
    remount(small_disk, "size=8m")
    options, home = few(server, positions), str(small_disk)
    assert cdta("run", *options, "--quiet", CDTA_HOME=home).returncode == 0
    remount(small_disk, "ro")
    told = cdta("estimate", *options, CDTA_HOME=home)
    assert told.returncode == 0, told.stderr
    assert "nothing left to ask" in told.stdout


def test_a_damaged_dataset_is_in_nobodys_way(server: Loopback, positions: Path, home: Path) -> None:
    run = ["run", *few(server, positions), "--quiet"]
    assert cdta("dataset", "import", "other", positions).returncode == 0
    assert cdta(*run).returncode == 0
    for _ in range(2):  # both are moved aside
        next(home.glob("datasets/m.*/dataset.json")).write_text("{")
        listed = cdta("dataset", "list")
        assert listed.returncode == 0
        assert "other" in listed.stdout
        assert_plain(listed.stderr, "is damaged")
        assert_plain(cdta(*run).stderr, "is damaged", "moved to")


def test_a_half_written_run_folder_is_one_sentence(positions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = cdta("run", "--model", "cdta/random", "--dataset", positions, "-n", 5, "--out", out)
    assert made.returncode == 0, made.stderr
    for name in ("run.json", "samples.jsonl"):
        whole = (out / name).read_bytes()
        for kept in (0, len(whole) // 2, len(whole) - 3, whole.rindex(b"\n", 0, -1) + 1):
            (out / name).write_bytes(whole[:kept])
            with pytest.raises(InvalidInput, match=name):
                load_run(out)
        rescored = cdta("rescore", out)
        assert rescored.returncode == 2
        assert_plain(rescored.stderr, name)
        (out / name).write_bytes(whole)
    assert cdta("rescore", out).returncode == 0
