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
    """Anything that ends the work, such as Ctrl-C."""


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("old_text", [None, "old"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_file_is_replaced_only_when_the_body_ends(
    tmp_path: Path, old_text: str | None, fails: bool
) -> None:
    path = tmp_path / "x"
    if old_text:
        path.write_text(old_text)
    try:
        with atomic_write(path) as file:
            file.write(b"new")
            assert path.exists() == bool(old_text)
            if fails:
                raise Stop
    except Stop:
        assert names_in(tmp_path) == ({"x"} if old_text else set())
        assert not old_text or path.read_text() == old_text
    else:
        assert (names_in(tmp_path), path.read_text()) == ({"x"}, "new")


def test_missing_folders_are_created_and_text_is_utf_8(tmp_path: Path) -> None:
    atomic_write_text(tmp_path / "a" / "b" / "x", "Müller\n♞\n")
    assert (tmp_path / "a" / "b" / "x").read_bytes() == "Müller\n♞\n".encode()


@pytest.mark.parametrize("target_exists", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, target_exists: bool) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "x", tmp_path / "link"
    if target_exists:
        target.write_text("old")
    link.symlink_to(Path("real") / "x")
    atomic_write_text(link, "new")
    assert link.is_symlink() and not target.is_symlink()
    assert target.read_text() == "new"
    assert (names_in(tmp_path), names_in(tmp_path / "real")) == ({"real", "link"}, {"x"})


def test_a_link_loop_or_a_folder_cannot_be_written(tmp_path: Path) -> None:
    for name, other in ("ab", "ba"):
        (tmp_path / name).symlink_to(other)
    (tmp_path / "folder").mkdir()
    for name in ("a", "folder"):
        with pytest.raises(OSError):
            atomic_write_text(tmp_path / name, "new")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "folder").is_dir()


@needs_posix
def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    with open_pipe(tmp_path / "pipe") as read_pipe:
        atomic_write_text(tmp_path / "pipe", "text")
        assert read_pipe() == b"text"


@needs_posix
def test_a_device_is_written_even_through_a_link(tmp_path: Path) -> None:
    import pty  # not on Windows
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
def test_a_private_file_stays_private_and_a_new_one_has_the_default_mode(tmp_path: Path) -> None:
    (tmp_path / "private").touch(mode=0o600)
    (tmp_path / "default").write_text("")
    for name, mode in (("private", 0o600), ("x", (tmp_path / "default").stat().st_mode & 0o777)):
        atomic_write_text(tmp_path / name, "new")
        assert (tmp_path / name).stat().st_mode & 0o777 == mode


def test_concurrent_writes_to_a_file_do_not_mix(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "x") as first:
        with atomic_write(tmp_path / "x") as second:
            first.write(b"first")
            second.write(b"second")
        assert (tmp_path / "x").read_text() == "second"
    assert (tmp_path / "x").read_text() == "first"


def test_the_last_of_two_concurrent_folders_wins(tmp_path: Path) -> None:
    for name in ("old", "second", "first"):
        with atomic_dir(tmp_path / "x", replace=True) as unfinished:
            (unfinished / name).touch()
            if name == "first":
                with atomic_dir(tmp_path / "x", replace=True) as other:
                    (other / "second").touch()
        assert names_in(tmp_path / "x") == {name}
    assert names_in(tmp_path) == {"x"}


def test_a_folder_appears_only_when_the_body_ends(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    with atomic_dir(path) as unfinished:
        (unfinished / "x").write_text("text")
        assert unfinished.parent == path.parent
        assert not path.exists()
    assert (names_in(path.parent), (path / "x").read_text()) == ({"one"}, "text")
    with pytest.raises(Stop), atomic_dir(path.parent / "two") as unfinished:
        (unfinished / "x").write_text("text")
        raise Stop
    assert names_in(path.parent) == {"one"}


def test_a_folder_replaces_only_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with atomic_dir(tmp_path / "empty") as unfinished:
        (unfinished / "x").touch()
    with pytest.raises(OSError), atomic_dir(tmp_path / "empty") as unfinished:
        (unfinished / "y").touch()
    assert (names_in(tmp_path / "empty"), names_in(tmp_path)) == ({"x"}, {"empty"})
