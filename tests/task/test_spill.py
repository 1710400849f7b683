"""Answers spilled to disk: equal to those in memory, without taking memory."""

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
from reasoning_servers import CHARACTERS_PER_TOKEN, ReasoningServer
from testing import POOL, measure, needs_posix, positions, serving_in_process, wavering

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


def test_a_spilled_sample_equals_the_original() -> None:
    original, sample = Sample(POOL[0], 0, {}, ANSWERS), spilled(SpillFile())
    assert sample.stored is not ANSWERS
    assert sample.answers == ANSWERS
    assert sample == original == sample == spilled(SpillFile())
    assert repr(sample) == repr(original)
    assert sample != spilled(SpillFile(), ANSWERS | {"changed": Answer()})
    for duplicate in (pickle.loads(pickle.dumps(sample)), copy.deepcopy(sample)):
        assert duplicate == original
        assert duplicate.stored == ANSWERS


@pytest.mark.parametrize(
    "text",
    ["", "e2e4", "é♘" * MAX_CHARACTERS_IN_MEMORY, "\ud83d" * 999, "x" * 2**20],
    ids=["empty", "short", "not ASCII", "lone surrogates", "long"],
)
def test_any_text_is_restored(text: str) -> None:
    file, texts = SpillFile(), [LONG, text, "y" * (MAX_CHARACTERS_IN_MEMORY + 1), text]
    samples = [spilled(file, {"standard": Answer(content)}) for content in texts]
    assert [answer.text for answer in answers_of(samples)] == texts


def test_a_few_short_answers_stay_in_memory_and_many_do_not() -> None:
    file, answers = SpillFile(), {name: Answer("e2e4") for name in ANSWERS}
    samples = [spilled(file, answers) for _ in range(MAX_ANSWERS_IN_MEMORY)]
    half = MAX_ANSWERS_IN_MEMORY // 2
    assert [sample.stored is answers for sample in samples] == [True] * half + [False] * half
    assert all(sample.answers == answers for sample in samples)


@needs_posix
def test_files_close_with_the_last_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spill, "_files", WeakSet())  # other tests may hold files
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
def test_a_disk_is_optional(full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    try:
        assert spilled(SpillFile()).stored is ANSWERS
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_measured_and_loaded_runs_hold_no_reasoning_in_memory(tmp_path: Path) -> None:
    with serving_in_process(ReasoningServer(wavering, reasoning_tokens=lambda _: TOKENS)) as server:
        save_run(measure(server, dataset=positions(12)), tmp_path / "run")
        load(tmp_path / "run")  # fills all caches
        tracemalloc.start()
        runs = [measure(server, dataset=positions(12)), load(tmp_path / "run")]
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    lengths = [len(answer.reasoning) for run in runs for answer in answers_of(run.samples)]
    assert lengths == [CHARACTERS_PER_TOKEN * TOKENS] * 2 * 2 * 12
    assert memory < sum(lengths) / 4
