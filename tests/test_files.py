"""Files and folders appear complete or not at all; the earlier version stays until then."""

import os
from pathlib import Path

import pytest

from cant_do_that_anymore.files import atomic_dir, atomic_write, atomic_write_text, home
from testing import needs_posix


def test_a_tilde_in_cdta_home_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("CDTA_HOME", "~/x")
    assert home("runs") == tmp_path / "x" / "runs"


class Stop(BaseException):
    """Anything that ends the work, such as Ctrl-C."""


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_replaced_only_when_the_body_ends(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "x"
    for text in ("Müller\n♞\n", "again"):
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(Stop), atomic_write(path) as file:
            file.write(b"unfinished")
            raise Stop
        assert (path.read_bytes() if path.exists() else None) == before
        atomic_write_text(path, text)
        assert path.read_bytes() == text.encode()
        assert names_in(path.parent) == {"x"}


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "x", tmp_path / "link"
    link.symlink_to(Path("real") / "x")
    for text in ("new", "newer"):  # at first, there is no target
        atomic_write_text(link, text)
        assert link.is_symlink() and not target.is_symlink()
        assert target.read_text() == text
        assert (names_in(tmp_path), names_in(target.parent)) == ({"real", "link"}, {"x"})


@needs_posix
def test_a_pipe_is_written_directly_even_through_a_link(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "link").symlink_to("pipe")
    atomic_write_text(tmp_path / "link", "text")
    assert os.read(end, 100) == b"text"
    os.close(end)
    assert names_in(tmp_path) == {"link", "pipe"} and (tmp_path / "pipe").is_fifo()


def test_a_folder_appears_only_when_the_body_ends(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    path.mkdir(parents=True)
    with atomic_dir(path) as unfinished:  # replaces an empty folder
        (unfinished / "x").write_text("text")
        assert unfinished.parent == path.parent
        assert names_in(path) == set()
    assert (names_in(path.parent), (path / "x").read_text()) == ({"one"}, "text")
    with pytest.raises(Stop), atomic_dir(path.parent / "two"):
        raise Stop
    with pytest.raises(OSError), atomic_dir(path) as unfinished:  # it is not empty
        (unfinished / "y").touch()
    assert (names_in(path.parent), names_in(path)) == ({"one"}, {"x"})
