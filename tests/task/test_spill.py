"""Answers on disk: the same to everybody who looks, and not in memory."""

import copy
import pickle
import tempfile
import tracemalloc
from pathlib import Path
from weakref import WeakSet

import pytest

from cant_do_that_anymore import load
from cant_do_that_anymore.providers.base import Answer, Usage
from cant_do_that_anymore.runs.storage import save_run
from cant_do_that_anymore.task import spill
from cant_do_that_anymore.task.spill import (
    MAX_ANSWERS_IN_MEMORY,
    MAX_CHARACTERS_IN_MEMORY,
    MAX_FILES,
    Answers,
    SpillFile,
    spill_file,
)
from cant_do_that_anymore.task.types import Sample, answers_of
from reasoning_servers import LETTERS, Thinker
from testing import POOL, answering, measure, needs_posix, positions, wavering

LONG = "Bc4 or Nf3? " * 1_000
ANSWERS = {
    "standard": Answer("c1g5", usage=Usage(3, 4), version="m-1", reasoning=LONG),
    "changed": Answer("c1e2", "length", conceded=("other",), error="none"),
}
TOKENS = 8_000


def spilled(file: SpillFile, answers: Answers = ANSWERS) -> Sample:
    return Sample(POOL[0], 0, {}, file.spill(answers))


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_a_sample_whose_answers_lie_on_disk_is_the_same_sample() -> None:
    here, there = Sample(POOL[0], 0, {}, ANSWERS), spilled(SpillFile())
    assert there.stored is not ANSWERS
    assert there.answers == ANSWERS
    assert there == here == there == spilled(SpillFile())
    assert repr(there) == repr(here)
    assert there != spilled(SpillFile(), ANSWERS | {"changed": Answer()})
    for again in (pickle.loads(pickle.dumps(there)), copy.deepcopy(there)):
        assert again == here
        assert again.stored == ANSWERS


@pytest.mark.parametrize(
    "text",
    ["", "e2e4", "é♘" * MAX_CHARACTERS_IN_MEMORY, "\ud83d" * 999, "x" * 2**20],
    ids=["empty", "short", "not ASCII", "halves of characters", "long"],
)
def test_any_text_comes_back_among_others(text: str) -> None:
    file, texts = SpillFile(), [LONG, text, "y" * (MAX_CHARACTERS_IN_MEMORY + 1), text]
    samples = [spilled(file, {"standard": Answer(each)}) for each in texts]
    assert [answer.text for answer in answers_of(samples)] == texts


def test_a_few_short_answers_need_no_disk_and_many_do() -> None:
    file, answers = SpillFile(), {name: Answer("e2e4") for name in ANSWERS}
    samples = [spilled(file, answers) for _ in range(MAX_ANSWERS_IN_MEMORY)]
    half = MAX_ANSWERS_IN_MEMORY // 2
    assert [sample.stored is answers for sample in samples] == [True] * half + [False] * half
    assert all(sample.answers == answers for sample in samples)


@needs_posix
def test_files_go_with_their_last_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spill, "_files", WeakSet())  # others may hold runs
    before = open_files()
    samples = [spilled(SpillFile()) for _ in range(2)]
    assert (open_files(), list(tmp_path.iterdir())) == (before + 2, [])
    del samples[0]
    assert open_files() == before + 1
    assert samples.pop().answers == ANSWERS
    assert open_files() == before
    samples = [spilled(spill_file()) for _ in range(3 * MAX_FILES)]
    assert open_files() == before + MAX_FILES
    assert all(sample.answers == ANSWERS for sample in samples)
    samples.clear()
    assert open_files() == before


@needs_posix
@pytest.mark.parametrize("full", [True, False])
def test_it_needs_no_disk(full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    if full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, usual[1]))
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    try:
        assert spilled(SpillFile()).stored is ANSWERS
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_a_run_holds_no_reasoning_in_memory_measured_or_loaded(tmp_path: Path) -> None:
    with answering(Thinker(wavering, thinks=lambda _: TOKENS)) as server:
        save_run(measure(server, dataset=positions(12)), tmp_path / "run")
        load(tmp_path / "run")  # what is made once is there by then
        tracemalloc.start()
        runs = [measure(server, dataset=positions(12)), load(tmp_path / "run")]
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    letters = [len(answer.reasoning) for run in runs for answer in answers_of(run.samples)]
    assert letters == [LETTERS * TOKENS] * 2 * 2 * 12
    assert held < sum(letters) / 4
