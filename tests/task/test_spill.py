"""Answers on disk: the same to everybody who looks, and not in memory."""

import copy
import os
import pickle
import tempfile
import tracemalloc
from pathlib import Path
from weakref import WeakSet

import pytest

from cant_do_that_anymore import Spec, evaluate, load
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.providers.base import Answer, Usage
from cant_do_that_anymore.runs.results import Run
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
from loopback import serving
from machines import needs_posix
from players import wavering
from thinkers import LETTERS, Thinker

THOUGHTS = "Bc4 or Nf3? " * 1_000
ANSWERS = {
    "standard": Answer("c1g5", usage=Usage(3, 4), version="m-1", reasoning=THOUGHTS),
    "changed": Answer("c1e2", "length", conceded=("other",), error="none"),
}
POSITIONS, TOKENS = shipped_pool("pool")[:12], 8_000


def laid(place: SpillFile, answers: Answers = ANSWERS) -> Sample:
    return Sample(POSITIONS[0], 0, {}, place.spill(answers))


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_a_sample_whose_answers_lie_on_disk_is_the_same_sample() -> None:
    here, there = Sample(POSITIONS[0], 0, {}, ANSWERS), laid(SpillFile())
    assert there.said is not ANSWERS
    assert there.answers == ANSWERS
    assert there == here == there == laid(SpillFile())
    assert repr(there) == repr(here)
    assert there != laid(SpillFile(), ANSWERS | {"changed": Answer()})
    for again in (pickle.loads(pickle.dumps(there)), copy.deepcopy(there)):
        assert again == here
        assert again.said == ANSWERS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "e2e4",
        "é♘" * MAX_CHARACTERS_IN_MEMORY,
        "\ud83d" * (MAX_CHARACTERS_IN_MEMORY + 1),
        "x" * 2**20,
    ],
)
def test_any_text_comes_back_among_others(text: str) -> None:
    place = SpillFile()
    texts = [THOUGHTS, text, "y" * (MAX_CHARACTERS_IN_MEMORY + 1), text]
    samples = [laid(place, {"standard": Answer(each)}) for each in texts]
    assert [answer.text for answer in answers_of(samples)] == texts


def test_a_few_short_answers_need_no_disk_and_many_do() -> None:
    place, answers = SpillFile(), {name: Answer("e2e4") for name in ANSWERS}
    samples = [laid(place, answers) for _ in range(MAX_ANSWERS_IN_MEMORY)]
    in_memory = [sample.said is answers for sample in samples]
    assert in_memory == [True] * (MAX_ANSWERS_IN_MEMORY // 2) + [False] * (
        MAX_ANSWERS_IN_MEMORY // 2
    )
    assert all(sample.answers == answers for sample in samples)


@needs_posix
def test_the_file_has_no_name_and_is_gone_with_the_last_answer_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = open_files()
    samples = [laid(place) for place in (SpillFile(), SpillFile())]
    assert open_files() == before + 2
    assert not list(tmp_path.iterdir())
    del samples[0]
    assert open_files() == before + 1
    assert samples.pop().answers == ANSWERS
    assert open_files() == before


@needs_posix
def test_however_many_runs_are_loaded_few_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_files", WeakSet())  # others may hold runs
    before = open_files()
    samples = [laid(spill_file()) for _ in range(3 * MAX_FILES)]
    assert open_files() == before + MAX_FILES
    assert all(sample.answers == ANSWERS for sample in samples)
    samples.clear()
    assert open_files() == before


@needs_posix
def test_processes_that_fork_read_the_same_answers_at_once_and_mix_none() -> None:
    place = SpillFile()
    told = [
        {"standard": Answer(str(number) * (MAX_CHARACTERS_IN_MEMORY + 1))} for number in range(500)
    ]
    samples = [laid(place, answers) for answers in told]

    def read() -> bool:
        again = [(laid(place, answers), answers) for answers in told[:100]]
        pairs = [*zip(samples, told, strict=True), *again]
        return all(sample.answers == answers for _ in range(20) for sample, answers in pairs)

    child = os.fork()
    if not child:
        os._exit(not read())
    assert read()
    assert os.waitpid(child, 0)[1] == 0


def test_without_a_disk_answers_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert laid(SpillFile()).said is ANSWERS


@needs_posix
def test_what_does_not_fit_on_the_disk_whole_stays_in_memory() -> None:
    import resource

    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, usual[1]))
    try:
        sample = laid(SpillFile())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert sample.said is ANSWERS


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
    letters = [len(answer.reasoning) for run in runs for answer in answers_of(run.samples)]
    assert letters == [LETTERS * TOKENS] * 2 * 2 * len(POSITIONS)
    assert held < sum(letters) / 4
