"""Long texts on disk: the same to everybody who looks, and not in memory."""

import copy
import os
import pickle
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from cant_do_that_anymore import Spec, evaluate, load
from cant_do_that_anymore.evaluation.folder import save_run
from cant_do_that_anymore.evaluation.results import Run
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.models.aside import LONG, MOST_FILES, Aside, a_place
from cant_do_that_anymore.models.model import Answer, Usage
from loopback import serving
from machines import needs_posix
from players import wavering
from thinkers import LETTERS, Thinker

THOUGHTS = "Bc4 or Nf3? " * 1_000
ANSWER = Answer("c1g5", usage=Usage(3, 4), version="m-1", reasoning=THOUGHTS, conceded=("other",))
POSITIONS, TOKENS = shipped_pool("pool")[:6], 8_000


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_an_answer_whose_texts_lie_on_disk_is_the_same_answer() -> None:
    laid = ANSWER.aside(Aside())
    assert (laid, repr(laid), hash(laid)) == (ANSWER, repr(ANSWER), hash(ANSWER))
    assert laid.to_json() == ANSWER.to_json()
    assert Answer.from_json(laid.to_json()) == ANSWER
    for again in (pickle.loads(pickle.dumps(laid)), copy.deepcopy(laid)):
        assert again == ANSWER
    assert laid != Answer("c1g5")


@pytest.mark.parametrize("text", ["", "e2e4", "é♘" * LONG, "\ud83d" * (LONG + 1), "x" * 2**20])
def test_any_text_comes_back_among_others(text: str) -> None:
    place = Aside()
    texts = [THOUGHTS, text, "y" * (LONG + 1), text]
    assert list(map(str, [place.lay(each) for each in texts])) == texts


@needs_posix
def test_the_file_has_no_name_and_is_gone_with_the_last_text_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = open_files()
    laid = [ANSWER.aside(place) for place in (Aside(), Aside())]
    assert open_files() == before + 2
    assert not list(tmp_path.iterdir())
    del laid[0]
    assert open_files() == before + 1
    assert laid.pop().reasoning == THOUGHTS
    assert open_files() == before


def test_however_many_runs_are_loaded_few_files_are_open() -> None:
    before = open_files()
    laid = [ANSWER.aside(a_place()) for _ in range(3 * MOST_FILES)]
    assert open_files() == before + MOST_FILES
    assert laid == [ANSWER] * len(laid)
    laid.clear()
    assert open_files() == before


@needs_posix
def test_processes_that_fork_read_the_same_texts_at_once_and_mix_none() -> None:
    place, texts = Aside(), [str(number) * (LONG + 1) for number in range(500)]
    laid = [place.lay(text) for text in texts]

    def read() -> bool:
        again = [(place.lay(text), text) for text in texts[:100]]
        pairs = [*zip(laid, texts, strict=True), *again]
        return all(str(held) == text for _ in range(20) for held, text in pairs)

    child = os.fork()
    if not child:
        os._exit(not read())
    assert read()
    assert os.waitpid(child, 0)[1] == 0


def test_without_a_disk_texts_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert ANSWER.aside(Aside()) == ANSWER


def test_a_run_holds_no_thoughts_in_memory_measured_or_loaded(tmp_path: Path) -> None:
    write_positions(tmp_path / "positions.jsonl", POSITIONS)

    def measured() -> Run:
        spec = Spec(model="m", base_url=server.url, dataset=tmp_path / "positions.jsonl")
        return evaluate(spec, quiet=True)

    with serving(Thinker(wavering, thinks=lambda _: TOKENS)) as server:
        save_run(measured(), tmp_path / "run")  # what is loaded and learnt once is there by then
        tracemalloc.start()
        runs = [measured(), load(tmp_path / "run")]
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    letters = [
        len(r.answer.reasoning) for run in runs for s in run.samples for r in s.replies.values()
    ]
    assert letters == [LETTERS * TOKENS] * 2 * 2 * len(POSITIONS)
    assert held < sum(letters) / 4
