"""Another model behind the same name and address: noticed by one live question, before any kept."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore import Run, Spec, evaluate
from cant_do_that_anymore.comparison.entries import pool_runs
from cant_do_that_anymore.datasets.storage import Dataset
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.metrics.notes import on_moved_alias, version_of_all
from cant_do_that_anymore.runs.evaluate import ALL_CACHED
from loopback import Body, Loopback, Responder, is_changed, serving
from players import adapting, habit
from processes import cdta

N = 4


@dataclass
class Server(Loopback):
    """Says more of its model than its name."""

    card: dict[str, object] = field(default_factory=dict)
    fingerprint: str = ""

    def completion(self, request: Body) -> dict[str, object]:
        return super().completion(request) | {"system_fingerprint": self.fingerprint}

    async def models(self, http: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m", "object": "model", **self.card}]})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server(habit)) as one:
        yield one


def measured(server: Loopback, **options: object) -> Run:
    spec = {"model": "m", "n": N, "pool": "common", **options}
    return evaluate(Spec(base_url=server.url, **spec), quiet=True)  # type: ignore[arg-type]


@pytest.fixture
def few(tmp_path: Path) -> Path:
    write_positions(tmp_path / "few.jsonl", shipped_pool("pool")[:N])
    return tmp_path / "few.jsonl"


def test_a_run_whose_answers_are_kept_costs_one_question_and_says_nothing_more(
    server: Server,
) -> None:
    first = measured(server)
    asked = len(server.requests)
    again = measured(server)
    assert len(server.requests) == asked + 1
    assert again.samples == first.samples
    assert again.notes == [*first.notes, ALL_CACHED]


def test_a_server_that_calls_its_model_something_else_every_time_is_still_the_same() -> None:
    class Replicas(Loopback):
        def completion(self, request: Body) -> dict[str, object]:
            return super().completion(request) | {"model": f"replica-{time.time_ns()}"}

    with serving(Replicas(habit)) as server:
        first, again = measured(server), measured(server)
    assert again.samples == first.samples


def test_another_checkpoint_is_refused_before_anything_is_spent_and_the_sentence_says_how_to_go_on(
    server: Server, few: Path
) -> None:
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", str(few), "-n", N]
    assert cdta(*command, "--quiet").returncode == 0
    server.respond = adapting
    asked = len(server.requests)
    done = cdta(*command)
    assert done.returncode == 1
    assert len(server.requests) == asked + 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("cdta: m is another model than the one whose answers are kept (at ")
    assert "--fresh" in line and "--tag NAME" in line
    assert cdta(*command, "--fresh", "--quiet").returncode == 1  # no habit, and that is the truth
    server.respond = habit
    assert cdta(*command, "--quiet").returncode == 0  # the kept answers are as they were


def test_a_lone_kept_answer_is_asked_for_twice(server: Server, few: Path) -> None:
    write_positions(few, shipped_pool("pool")[:1])
    measured(server, pool=few, n=1)
    asked = len(server.requests)
    server.respond = adapting
    with pytest.raises(UserError, match=r"it said 'f1b5' then, '[a-h]\d[a-h]\d' now"):
        measured(server, pool=few, n=1)
    assert len(server.requests) == asked + 2


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (habit, lambda request: f"**{habit(request)}**"),  # the same move
        (habit, lambda request: f"<think>hm</think>{adapting(request)}"),
        (lambda request: f"<think>hm</think>{habit(request)}", adapting),
    ],
)
def test_other_words_and_other_moves_after_thoughts_make_no_other_model(
    before: Responder, now: Responder, server: Server
) -> None:
    server.respond = before
    first = measured(server)
    server.respond = now
    again = measured(server)
    assert again.samples == first.samples
    assert again.notes == [*first.notes, ALL_CACHED]


def test_a_tag_keeps_two_checkpoints_apart_everywhere(server: Server, tmp_path: Path) -> None:
    def stubborn_no_more(request: Body) -> str:
        return adapting(request) if is_changed(request) else habit(request)

    first = measured(server)
    server.respond = stubborn_no_more
    second = measured(server, tag="step-2000")
    assert second.dataset.built_now
    values = [run.results.metrics["variant_impact_factor"] for run in (first, second)]
    assert values == [0, -1]
    assert [each.label for each in pool_runs([first, second])] == ["m", "m step-2000"]
    folder = tmp_path / "run"
    command = ["run", "--base-url", server.url, "--model", "m", "--pool", "common", "-n", N]
    assert cdta(*command, "--tag", "step-2000", "--out", folder).returncode == 0
    assert json.loads((folder / "run.json").read_text())["identity"]["tag"] == "step-2000"
    assert "step-2000" in (folder / "report.html").read_text()


def test_one_other_answer_may_be_a_tie_and_is_a_note(server: Server) -> None:
    measured(server)
    first = server.requests[0]["messages"]
    server.respond = lambda request: "a2a3" if request["messages"] == first else habit(request)
    asked = len(server.requests)
    again = measured(server)
    assert len(server.requests) == asked + 5
    assert sum("may be another model" in note for note in again.notes) == 1


def test_a_name_that_stands_for_another_version_now_is_refused_with_given_positions_too(
    server: Server, few: Path
) -> None:
    server.model = "alias-2024"
    measured(server, pool=None, dataset=few)
    assert len(server.requests) == 2 * N  # nothing is kept that could be of another
    server.model = "alias-2025"
    with pytest.raises(UserError, match="'alias-2024' answered then, 'alias-2025' does now"):
        measured(server, pool=None, dataset=few, n=N - 1)
    server.respond = adapting  # at a temperature above 0 a text says nothing
    server.model = "alias-2024"
    assert measured(server, pool=None, dataset=few).notes[-1] == ALL_CACHED


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
def test_a_name_stands_for_another_model_only_if_all_answers_name_one_other_version(
    versions: list[str], noted: bool, version: str
) -> None:
    assert bool(on_moved_alias(Dataset("old", "built"), versions)) == noted
    assert version_of_all(versions, "alias") == version


def test_positions_that_one_version_found_are_not_measured_by_kept_answers_of_another(
    server: Server, few: Path
) -> None:
    server.model = "alias-2024"
    measured(server, pool=None, dataset=few)
    server.model = "alias-2025"
    with pytest.raises(UserError, match="'alias-2024' answered then, 'alias-2025' does now"):
        measured(server, pool=few)
    assert len(server.requests) == 3 * N + 2


def test_by_its_own_kept_answers_they_are_without_a_look(server: Server, few: Path) -> None:
    measured(server, pool=None, dataset=few)
    measured(server, pool=few)
    assert len(server.requests) == 3 * N


def test_answers_to_a_dataset_of_some_name_are_looked_at_once(server: Server) -> None:
    for looks in range(2):
        measured(server, pool=None, dataset="gpt-4-0314")
        assert len(server.requests) == 2 * N + looks


def test_what_the_server_says_of_its_weights_is_noted_once(server: Server) -> None:
    server.card, server.fingerprint = {"created": 1_700_000_000, "root": "/a"}, "fp_1"
    measured(server)
    server.card, server.fingerprint = {"created": 1_700_000_500, "root": "/a"}, "fp_2"
    told = [note for note in measured(server).notes if "the server's" in note]
    assert [note.split(",")[0] for note in told] == [
        "the server's system_fingerprint is fp_2",
        "the server's created is 1700000500",
    ]
    assert measured(server).notes[-1] == ALL_CACHED
    server.card = {"created": int(time.time()), "root": "/a"}  # of the listing, not of the model
    assert not [note for note in measured(server).notes if "the server's" in note]


def test_without_a_network_a_run_whose_answers_are_kept_works_and_says_so_in_one_note() -> None:
    with serving(Server(habit)) as server:
        first = measured(server)
    again = measured(server)
    assert again.samples == first.samples
    (note,) = [note for note in again.notes if "whether it is still the same model" in note]
    assert "no server answers" in note
    with pytest.raises(UserError, match="no server answers") as problem:
        measured(server, n=N + 1)
    assert "another model" not in str(problem.value)


def test_models_inside_the_package_are_not_asked_again_and_have_no_tag() -> None:
    assert evaluate(Spec(n=2), quiet=True).samples == evaluate(Spec(n=2), quiet=True).samples
    with pytest.raises(InvalidInput, match="cdta/pocket is behind no address"):
        evaluate(Spec(tag="x"), quiet=True)
