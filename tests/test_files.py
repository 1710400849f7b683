"""Files and folders appear complete or not at all; the earlier version stays until then."""

import os
from pathlib import Path

import pytest

from cant_do_that_anymore.files import atomic_dir, atomic_write, atomic_write_text, home
from testing import needs_posix, open_pipe


def test_a_tilde_in_cdta_home_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("CDTA_HOME", "~/x")
    assert home("runs") == tmp_path / "x" / "runs"
    monkeypatch.setenv("CDTA_HOME", str(tmp_path / "~nobody-of-this-name"))
    assert home() == tmp_path / "~nobody-of-this-name"


class Stop(BaseException):
    """Whatever ends the work, Ctrl-C as well."""


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_file_is_replaced_when_the_body_has_ended_and_only_then(
    tmp_path: Path, before: str | None, fails: bool
) -> None:
    path = tmp_path / "x"
    if before:
        path.write_text(before)
    try:
        with atomic_write(path) as file:
            file.write(b"new")
            assert path.exists() == bool(before)
            if fails:
                raise Stop
    except Stop:
        assert names_in(tmp_path) == ({"x"} if before else set())
        assert not before or path.read_text() == before
    else:
        assert (names_in(tmp_path), path.read_text()) == ({"x"}, "new")


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
    assert link.is_symlink() and not target.is_symlink()
    assert target.read_text() == "new"
    assert (names_in(tmp_path), names_in(tmp_path / "real")) == ({"real", "link"}, {"x"})


def test_what_is_no_file_is_an_error_and_stays(tmp_path: Path) -> None:
    for name, other in ("ab", "ba"):
        (tmp_path / name).symlink_to(other)
    (tmp_path / "folder").mkdir()
    for name in ("a", "folder"):
        with pytest.raises(OSError):
            atomic_write_text(tmp_path / name, "new")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "folder").is_dir()


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
        assert (tmp_path / "link").is_symlink() and (tmp_path / "link").is_char_device()
    finally:
        os.close(controller)
        os.close(terminal)


@needs_posix
def test_a_private_file_stays_private_and_a_new_one_is_as_usual(tmp_path: Path) -> None:
    (tmp_path / "private").touch(mode=0o600)
    (tmp_path / "usual").write_text("")
    for name, like in (("private", 0o600), ("x", (tmp_path / "usual").stat().st_mode & 0o777)):
        atomic_write_text(tmp_path / name, "new")
        assert (tmp_path / name).stat().st_mode & 0o777 == like


def test_two_who_write_the_same_file_do_not_meet(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "x") as first:
        with atomic_write(tmp_path / "x") as second:
            first.write(b"first")
            second.write(b"second")
        assert (tmp_path / "x").read_text() == "second"
    assert (tmp_path / "x").read_text() == "first"


def test_of_two_who_make_the_same_folder_at_once_the_last_is_right(tmp_path: Path) -> None:
    for name in ("old", "second", "first"):
        with atomic_dir(tmp_path / "x", replace=True) as half:
            (half / name).touch()
            if name == "first":
                with atomic_dir(tmp_path / "x", replace=True) as other:
                    (other / "second").touch()
        assert names_in(tmp_path / "x") == {name}
    assert names_in(tmp_path) == {"x"}


def test_a_folder_appears_when_the_body_has_ended_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    with atomic_dir(path) as half:
        (half / "x").write_text("text")
        assert half.parent == path.parent
        assert not path.exists()
    assert (names_in(path.parent), (path / "x").read_text()) == ({"one"}, "text")
    with pytest.raises(Stop), atomic_dir(path.parent / "two") as half:
        (half / "x").write_text("text")
        raise Stop
    assert names_in(path.parent) == {"one"}


def test_a_folder_takes_the_place_of_an_empty_one_only(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with atomic_dir(tmp_path / "empty") as half:
        (half / "x").touch()
    with pytest.raises(OSError), atomic_dir(tmp_path / "empty") as half:
        (half / "y").touch()
    assert (names_in(tmp_path / "empty"), names_in(tmp_path)) == ({"x"}, {"empty"})
