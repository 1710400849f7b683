"""Another model with the same name and address: one live request notices it first."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from cant_do_that_anymore.comparison.entries import named_entries
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.metrics.notes import moved_alias_notes, version_of_all
from cant_do_that_anymore.runs.results import ALL_CACHED
from testing import (
    Body,
    Loopback,
    Responder,
    Run,
    Serve,
    adapting,
    cdta,
    habit,
    measure,
    perfect,
    positions,
    serving,
)

N = 4
POSITIONS = positions(N)


@dataclass
class Server(Loopback):
    """Also reports a model card and a fingerprint."""

    card: dict[str, object] = field(default_factory=dict)
    fingerprint: str = ""

    def completion(self, request: Body) -> dict[str, object]:
        return super().completion(request) | {"system_fingerprint": self.fingerprint}

    def model_list_json(self) -> dict[str, object]:
        return {"data": [{"id": "m", "object": "model", **self.card}]}


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(Server(habit))


def measure_few(server: Loopback, **options: object) -> Run:
    return measure(server, **{"n": N, "pool": "common", **options})


def measure_dataset(server: Loopback, **options: object) -> Run:
    return measure_few(server, pool=None, dataset=POSITIONS, **options)


def with_reasoning(player: Responder) -> Responder:
    return lambda request: f"<think>hm</think>{player(request)}"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (habit, habit),
        (habit, lambda request: f"**{habit(request)}**"),  # the same move
        (habit, with_reasoning(adapting)),
        (with_reasoning(habit), adapting),
    ],
)
def test_the_same_model_adds_no_note(before: Responder, now: Responder, server: Server) -> None:
    server.respond = before
    first = measure_few(server)
    sent, server.respond = len(server.requests), now
    second = measure_few(server)
    assert len(server.requests) == sent + 1
    assert second.samples == first.samples
    assert second.notes == [*first.notes, ALL_CACHED]


@dataclass
class ReasoningServer(Loopback):
    """Starts to reason at some point, hides the reasoning, and reports no usage."""

    reasons: bool = False

    def completion(self, request: Body) -> dict[str, object]:
        truncated = {"message": {"content": ""}, "finish_reason": "length"}
        choices = {"choices": [truncated], "usage": None} if self.reasons else {}
        return super().completion(request) | choices


def test_a_model_that_starts_to_reason_counts_as_the_same(serve: Serve) -> None:
    server = serve(ReasoningServer(habit))
    first = measure_few(server)
    server.reasons = True  # the limit of the cached answer leaves no room for a reply
    assert measure_few(server).samples == first.samples


def test_a_server_with_a_new_version_per_answer_counts_as_the_same(serve: Serve) -> None:
    class Replicas(Loopback):
        def completion(self, request: Body) -> dict[str, object]:
            return super().completion(request) | {"model": f"replica-{time.time_ns()}"}

    server = serve(Replicas(habit))
    first, second = measure_few(server), measure_few(server)
    assert second.samples == first.samples


def test_another_checkpoint_is_refused(server: Server) -> None:
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", POSITIONS, "-n", N]
    cdta(*command, "--quiet", code=0)
    sent, server.respond = len(server.requests), adapting
    done = cdta(*command, code=1)
    assert len(server.requests) == sent + 6
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("cdta: m seems to have changed since its answers were cached (its ")
    assert line.endswith(
        "; use --fresh to ignore the cache, or --tag NAME to cache its answers separately"
    )
    cdta(*command, "--fresh", "--quiet", code=1)  # this model has no habit
    server.respond = habit
    cdta(*command, "--quiet", code=0)  # the cached answers are unchanged


def test_a_single_cached_answer_is_requested_twice(server: Server) -> None:
    measure_few(server, pool=positions(1), n=1)
    sent, server.respond = len(server.requests), adapting
    with pytest.raises(UserError, match=r"answer was 'f1b5', now '[a-h]\d[a-h]\d'"):
        measure_few(server, pool=positions(1), n=1)
    assert len(server.requests) == sent + 6


@pytest.mark.parametrize(("n", "requests"), [(N, 3), (1, 2)], ids=["several", "one"])
def test_a_nondeterministic_model_is_noted(n: int, requests: int, server: Server) -> None:
    first = measure_few(server, pool=positions(n), n=n)
    sent, replies = len(server.requests), cycle(("a2a3", "h2h3"))
    server.respond = lambda _: next(replies)
    second = measure_few(server, pool=positions(n), n=n)
    assert len(server.requests) == sent + requests
    assert second.samples == first.samples
    [note] = [note for note in second.notes if "deterministic" in note]
    assert note.startswith("is not deterministic at temperature 0: it answered 'a2a3' and 'h2h3' ")


def test_a_tag_separates_two_checkpoints(server: Server, tmp_path: Path) -> None:
    first = measure_few(server)
    server.respond = perfect
    second = measure_few(server, tag="step-2000")
    assert second.dataset.built_now
    values = [run.results.metrics["variant_impact_factor"] for run in (first, second)]
    assert values == [0, -1]
    assert [entry.label for entry in named_entries([first, second])] == ["m", "m step-2000"]
    folder = tmp_path / "run"
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", "common", "-n", N]
    cdta(*command, "--tag", "step-2000", "--out", folder, code=0)
    assert json.loads((folder / "run.json").read_text())["identity"]["tag"] == "step-2000"
    assert "step-2000" in (folder / "report.html").read_text()


def test_one_differing_answer_may_be_a_tie_and_is_noted(server: Server) -> None:
    measure_few(server)
    sent, probe = len(server.requests), server.requests[0]["messages"]
    server.respond = lambda request: "a2a3" if request["messages"] == probe else habit(request)
    second = measure_few(server)
    assert len(server.requests) == sent + 5
    assert sum("may have changed since" in note for note in second.notes) == 1


def move_with_given_dataset(server: Server) -> None:
    measure_dataset(server)
    assert len(server.requests) == 2 * N  # the cache was empty, so there was no check
    server.model = "alias-2025"
    measure_dataset(server, n=N - 1)


def move_before_selection(server: Server) -> None:
    measure_dataset(server)
    server.model = "alias-2025"
    measure_few(server, pool=POSITIONS)


@pytest.mark.parametrize(
    ("move", "requests"),
    [(move_with_given_dataset, 2 * N + 2), (move_before_selection, 3 * N + 2)],
)
def test_a_moved_alias(move: Callable[[Server], None], requests: int, server: Server) -> None:
    server.model = "alias-2024"
    with pytest.raises(UserError, match="'alias-2024', now 'alias-2025'"):
        move(server)
    assert len(server.requests) == requests
    server.respond, server.model = adapting, "alias-2024"  # sampled texts are not compared
    assert measure_dataset(server).notes[-1] == ALL_CACHED


@pytest.mark.parametrize(
    ("versions", "is_noted", "version"),
    [
        (["new"], True, "new"),
        (["new", "newer"], False, "alias"),
        (["old", "new"], False, "alias"),
        (["old"], False, "old"),
        ([], False, "alias"),
    ],
)
def test_when_an_alias_counts_as_moved(versions: list[str], is_noted: bool, version: str) -> None:
    assert bool(moved_alias_notes(Dataset("old", "built"), versions)) == is_noted
    assert version_of_all(versions, "alias") == version


def test_answers_of_a_name_are_checked_but_not_those_of_a_version(server: Server) -> None:
    measure_dataset(server)
    measure_few(server, pool=POSITIONS)
    assert len(server.requests) == 3 * N
    for checks in range(2):
        measure_few(server, pool=None, dataset="gpt-4-0314", seed=5)
        assert len(server.requests) == 3 * N + 2 * N + checks


def test_a_changed_server_fingerprint_is_noted_once(server: Server) -> None:
    def server_notes() -> list[str]:
        return [note.split(",")[0] for note in measure_few(server).notes if "the server's" in note]

    server.card, server.fingerprint = {"created": 1_700_000_000, "root": "/a"}, "fp_1"
    assert server_notes() == []
    server.card, server.fingerprint = {"created": 1_700_000_500, "root": "/a"}, "fp_2"
    assert server_notes() == [
        "the server's system_fingerprint is fp_2",
        "the server's created is 1700000500",
    ]
    assert server_notes() == []
    server.card = {"created": int(time.time()), "root": "/a"}  # the time of the listing
    assert server_notes() == []


def test_a_fully_cached_run_works_offline_and_has_one_note() -> None:
    with serving(habit) as server:
        first = measure_few(server)
    second = measure_few(server)
    assert second.samples == first.samples
    (note,) = [note for note in second.notes if "whether the model has changed" in note]
    assert "no server answers" in note
    with pytest.raises(UserError, match="no server answers") as error:
        measure_few(server, n=N + 1)
    assert "changed" not in str(error.value)


def test_bundled_models_have_no_tag() -> None:
    with pytest.raises(InvalidInput, match="cdta/pocket runs on this machine"):
        measure("cdta/pocket", tag="x")
