"""Files and folders appear whole or not at all, and what was there before stays until then."""

import os
from pathlib import Path

import pytest

from cant_do_that_anymore.files import (
    atomic_dir,
    atomic_write,
    atomic_write_text,
)
from machines import needs_posix
from named_pipes import open_pipe


class Stop(BaseException):
    """Whatever ends the work, Ctrl-C as well."""


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_replaced_when_the_body_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names_in(tmp_path) == {"x"}


@pytest.mark.parametrize("before", [None, "old"])
def test_a_body_that_fails_leaves_everything_as_it_was(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "x"
    if before:
        path.write_text(before)
    with pytest.raises(Stop), atomic_write(path) as file:
        file.write(b"half")
        raise Stop
    assert names_in(tmp_path) == ({"x"} if before else set())
    assert not before or path.read_text() == before


def test_folders_on_the_way_are_made_and_text_is_utf_8(tmp_path: Path) -> None:
    atomic_write_text(tmp_path / "a" / "b" / "x", "Müller\n♞\n")
    assert (tmp_path / "a" / "b" / "x").read_bytes() == "Müller\n♞\n".encode()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "x", tmp_path / "link"
    if is_there:
        target.write_text("old")
    link.symlink_to(Path("real") / "x")
    atomic_write_text(link, "new")
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_text() == "new"
    assert names_in(tmp_path) == {"real", "link"}
    assert names_in(tmp_path / "real") == {"x"}


def test_links_in_a_circle_are_an_error_and_stay(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError):
        atomic_write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").is_symlink()


@needs_posix
def test_a_pipe_is_written_into_at_once(tmp_path: Path) -> None:
    with open_pipe(tmp_path / "pipe") as sent:
        atomic_write_text(tmp_path / "pipe", "text")
        assert sent() == b"text"


@needs_posix
def test_a_device_is_written_into_even_through_a_link(tmp_path: Path) -> None:
    import pty  # Windows has none
    import tty

    controller, terminal = pty.openpty()
    try:
        tty.setraw(terminal)
        (tmp_path / "link").symlink_to(os.ttyname(terminal))
        atomic_write_text(tmp_path / "link", "text")
        assert os.read(controller, 100) == b"text"
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "link").is_char_device()
    finally:
        os.close(controller)
        os.close(terminal)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises((IsADirectoryError, PermissionError)):  # the second on Windows
        atomic_write_text(tmp_path / "x", "new")


@needs_posix
def test_a_private_file_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(mode=0o600)
    atomic_write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_file_may_be_read_by_whom_the_user_lets_read_files(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    atomic_write_text(tmp_path / "x", "")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_of_two_who_make_the_same_folder_at_once_the_last_is_right(tmp_path: Path) -> None:
    for name in ("old", "second", "first"):
        with atomic_dir(tmp_path / "x", replace=True) as half:
            (half / name).touch()
            if name == "first":
                with atomic_dir(tmp_path / "x", replace=True) as other:
                    (other / "second").touch()
        assert names_in(tmp_path / "x") == {name}
    assert names_in(tmp_path) == {"x"}


def test_two_who_write_the_same_file_do_not_meet(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "x") as first:
        with atomic_write(tmp_path / "x") as second:
            first.write(b"first")
            second.write(b"second")
        assert (tmp_path / "x").read_text() == "second"
    assert (tmp_path / "x").read_text() == "first"


def test_a_folder_appears_when_the_body_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    with atomic_dir(path) as half:
        (half / "x").write_text("text")
        assert half.parent == path.parent
        assert not path.exists()
    assert names_in(path.parent) == {"one"}
    assert (path / "x").read_text() == "text"


def test_a_folder_whose_body_fails_never_appears(tmp_path: Path) -> None:
    with pytest.raises(Stop), atomic_dir(tmp_path / "one") as half:
        (half / "x").write_text("text")
        raise Stop
    assert names_in(tmp_path) == set()


def test_a_folder_takes_the_place_of_an_empty_one_only(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with atomic_dir(tmp_path / "empty") as half:
        (half / "x").touch()
    assert names_in(tmp_path / "empty") == {"x"}
    with pytest.raises(OSError), atomic_dir(tmp_path / "empty") as half:
        (half / "y").touch()
    assert names_in(tmp_path / "empty") == {"x"}
    assert names_in(tmp_path) == {"empty"}
