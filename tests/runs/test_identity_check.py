"""Another model behind the same name and address: one live request notices it first."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from cant_do_that_anymore.comparison.entries import pool_runs
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
    is_changed,
    measure,
    positions,
    serving,
)

N = 4
FEW = positions(N)


@dataclass
class Server(Loopback):
    """Says more of its model than its name."""

    card: dict[str, object] = field(default_factory=dict)
    fingerprint: str = ""

    def completion(self, request: Body) -> dict[str, object]:
        return super().completion(request) | {"system_fingerprint": self.fingerprint}

    def models_listed(self) -> dict[str, object]:
        return {"data": [{"id": "m", "object": "model", **self.card}]}


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(Server(habit))


def measured(server: Loopback, **options: object) -> Run:
    return measure(server, **{"n": N, "pool": "common", **options})


def given(server: Loopback, **options: object) -> Run:
    return measured(server, pool=None, dataset=FEW, **options)


def in_thoughts(player: Responder) -> Responder:
    return lambda request: f"<think>hm</think>{player(request)}"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (habit, habit),
        (habit, lambda request: f"**{habit(request)}**"),  # the same move
        (habit, in_thoughts(adapting)),
        (in_thoughts(habit), adapting),
    ],
)
def test_the_same_model_adds_no_note(before: Responder, now: Responder, server: Server) -> None:
    server.respond = before
    first = measured(server)
    asked, server.respond = len(server.requests), now
    again = measured(server)
    assert len(server.requests) == asked + 1
    assert again.samples == first.samples
    assert again.notes == [*first.notes, ALL_CACHED]


@dataclass
class Reasoning(Loopback):
    """Begins to reason at some time, hides it, and counts no tokens."""

    reasons: bool = False

    def completion(self, request: Body) -> dict[str, object]:
        cut_off = {"message": {"content": ""}, "finish_reason": "length"}
        choices = {"choices": [cut_off], "usage": None} if self.reasons else {}
        return super().completion(request) | choices


def test_a_model_that_begins_to_reason_is_the_same(serve: Serve) -> None:
    server = serve(Reasoning(habit))
    first = measured(server)
    server.reasons = True  # the limit of the cached answer leaves no room for a reply
    assert measured(server).samples == first.samples


def test_a_server_with_a_new_version_per_answer_is_the_same(serve: Serve) -> None:
    class Replicas(Loopback):
        def completion(self, request: Body) -> dict[str, object]:
            return super().completion(request) | {"model": f"replica-{time.time_ns()}"}

    server = serve(Replicas(habit))
    first, again = measured(server), measured(server)
    assert again.samples == first.samples


def test_another_checkpoint_is_refused_before_anything_is_spent(server: Server) -> None:
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", FEW, "-n", N]
    cdta(*command, "--quiet", code=0)
    asked, server.respond = len(server.requests), adapting
    done = cdta(*command, code=1)
    assert len(server.requests) == asked + 6
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("cdta: m seems to have changed since its answers were cached (its ")
    assert line.endswith(
        "; use --fresh to ignore the cache, or --tag NAME to cache its answers separately"
    )
    cdta(*command, "--fresh", "--quiet", code=1)  # no habit, and that is the truth
    server.respond = habit
    cdta(*command, "--quiet", code=0)  # the cached answers are as they were


def test_a_lone_cached_answer_is_requested_twice(server: Server) -> None:
    measured(server, pool=positions(1), n=1)
    asked, server.respond = len(server.requests), adapting
    with pytest.raises(UserError, match=r"answer was 'f1b5', now '[a-h]\d[a-h]\d'"):
        measured(server, pool=positions(1), n=1)
    assert len(server.requests) == asked + 6


@pytest.mark.parametrize(("n", "requests"), [(N, 3), (1, 2)], ids=["several", "a lone one"])
def test_a_model_that_contradicts_itself_is_noted(n: int, requests: int, server: Server) -> None:
    first = measured(server, pool=positions(n), n=n)
    sent, replies = len(server.requests), cycle(("a2a3", "h2h3"))
    server.respond = lambda _: next(replies)
    again = measured(server, pool=positions(n), n=n)
    assert len(server.requests) == sent + requests
    assert again.samples == first.samples
    [note] = [note for note in again.notes if "deterministic" in note]
    assert note.startswith("is not deterministic at temperature 0: it answered 'a2a3' and 'h2h3' ")


def test_a_tag_keeps_two_checkpoints_apart_everywhere(server: Server, tmp_path: Path) -> None:
    first = measured(server)
    server.respond = lambda request: adapting(request) if is_changed(request) else habit(request)
    second = measured(server, tag="step-2000")
    assert second.dataset.built_now
    values = [run.results.metrics["variant_impact_factor"] for run in (first, second)]
    assert values == [0, -1]
    assert [each.label for each in pool_runs([first, second])] == ["m", "m step-2000"]
    folder = tmp_path / "run"
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", "common", "-n", N]
    cdta(*command, "--tag", "step-2000", "--out", folder, code=0)
    assert json.loads((folder / "run.json").read_text())["identity"]["tag"] == "step-2000"
    assert "step-2000" in (folder / "report.html").read_text()


def test_one_other_answer_may_be_a_tie_and_is_a_note(server: Server) -> None:
    measured(server)
    asked, first = len(server.requests), server.requests[0]["messages"]
    server.respond = lambda request: "a2a3" if request["messages"] == first else habit(request)
    again = measured(server)
    assert len(server.requests) == asked + 5
    assert sum("may have changed since" in note for note in again.notes) == 1


def moved_with_given_positions(server: Server) -> None:
    given(server)
    assert len(server.requests) == 2 * N  # nothing is cached that another model could have answered
    server.model = "alias-2025"
    given(server, n=N - 1)


def moved_before_its_positions_were_found(server: Server) -> None:
    given(server)
    server.model = "alias-2025"
    measured(server, pool=FEW)


@pytest.mark.parametrize(
    ("moves", "requests"),
    [(moved_with_given_positions, 2 * N + 2), (moved_before_its_positions_were_found, 3 * N + 2)],
)
def test_a_moved_alias(moves: Callable[[Server], None], requests: int, server: Server) -> None:
    server.model = "alias-2024"
    with pytest.raises(UserError, match="'alias-2024', now 'alias-2025'"):
        moves(server)
    assert len(server.requests) == requests
    server.respond, server.model = adapting, "alias-2024"  # above temperature 0 no text says much
    assert given(server).notes[-1] == ALL_CACHED


@pytest.mark.parametrize(
    ("versions", "noted", "version"),
    [
        (["new"], True, "new"),
        (["new", "newer"], False, "alias"),
        (["old", "new"], False, "alias"),
        (["old"], False, "old"),
        ([], False, "alias"),
    ],
)
def test_when_an_alias_counts_as_moved(versions: list[str], noted: bool, version: str) -> None:
    assert bool(moved_alias_notes(Dataset("old", "built"), versions)) == noted
    assert version_of_all(versions, "alias") == version


def test_answers_of_its_own_version_are_not_checked_those_of_a_name_once(server: Server) -> None:
    given(server)
    measured(server, pool=FEW)
    assert len(server.requests) == 3 * N
    for looks in range(2):
        measured(server, pool=None, dataset="gpt-4-0314", seed=5)
        assert len(server.requests) == 3 * N + 2 * N + looks


def test_a_changed_fingerprint_of_the_server_is_noted_once(server: Server) -> None:
    def noted() -> list[str]:
        return [note.split(",")[0] for note in measured(server).notes if "the server's" in note]

    server.card, server.fingerprint = {"created": 1_700_000_000, "root": "/a"}, "fp_1"
    assert noted() == []
    server.card, server.fingerprint = {"created": 1_700_000_500, "root": "/a"}, "fp_2"
    assert noted() == [
        "the server's system_fingerprint is fp_2",
        "the server's created is 1700000500",
    ]
    assert noted() == []
    server.card = {"created": int(time.time()), "root": "/a"}  # of the listing, not of the model
    assert noted() == []


def test_without_a_network_a_fully_cached_run_works_and_has_one_note() -> None:
    with serving(habit) as server:
        first = measured(server)
    again = measured(server)
    assert again.samples == first.samples
    (note,) = [note for note in again.notes if "whether the model has changed" in note]
    assert "no server answers" in note
    with pytest.raises(UserError, match="no server answers") as problem:
        measured(server, n=N + 1)
    assert "another model" not in str(problem.value)


def test_models_inside_the_package_have_no_tag() -> None:
    with pytest.raises(InvalidInput, match="cdta/pocket runs on this machine"):
        measure("cdta/pocket", tag="x")
