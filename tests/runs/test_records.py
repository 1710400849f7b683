"""Importing records of the original and of ``oaieval`` as runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.game.position import Position
from cant_do_that_anymore.runs.records import import_records
from cant_do_that_anymore.runs.storage import load_run
from testing import POOL, Body, cdta, habit, is_changed, mixed, oaieval, openai_server

SYSTEM = ("Play chess.", "Play chess. Bishops move like knights.")
TIME = "2024-03-01 10:00:00"


def sampling_data(position: Position, text: str, reply: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": move} for move in position.moves]
    prompt = [{"role": "system", "content": text}, *turns]
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10, "details": None}
    return {"prompt": prompt, "sampled": [reply], "model": "gpt-4-0314", "usage": usage}


def write_record(
    path: Path, samples: list[tuple[Position, tuple[str, str]]], seed: int = 1, **args: object
) -> Path:
    """Write a record as the original does, with events in order only within each sample."""
    config = {"eval_spec": {"args": {"n_samples": 100, **args}}, "seed": seed}
    spec = {
        "completion_fns": ["generation/direct/gpt-4"],
        "split": "all_diagonal" if args else "all_small",
        "run_config": config,
        "created_at": f"{TIME}.123456",
    }
    events: list[list[tuple[str, Any]]] = [[], [], []]
    for position, replies in samples:
        for stage, (text, reply) in enumerate(zip(SYSTEM, replies, strict=True)):
            events[stage].append(("sampling", sampling_data(position, text, reply)))
        hits = (reply.strip() in position.special_moves for reply in replies)
        facts = {"move": position.special_moves, "previous_moves": position.moves}
        predicted = dict(zip(("predicted_move", "predicted_move_in_variant"), hits, strict=True))
        events[2].append(("metrics", facts | predicted))
    lines: list[dict[str, Any]] = [{"spec": spec}]
    lines += [
        {"sample_id": f"s.{number}", "type": kind, "data": data, "created_at": f"{TIME}+00:00"}
        for stage in events
        for number, (kind, data) in enumerate(stage)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"final_report": {}}]))
    return path


def special(position: Position) -> str:
    return position.special_moves[0]


def test_a_record_becomes_a_run_with_every_measure(tmp_path: Path) -> None:
    kept, dropped, unusable = POOL[:3]
    record = write_record(
        tmp_path / "record.log",
        [
            (kept, (special(kept), special(kept))),
            (dropped, (special(dropped), "a2a3" if len(dropped.moves) % 2 == 0 else "a7a6")),
            (unusable, (f" {special(unusable)}\n", "I resign.")),
        ],
        seed=7,
    )
    out = tmp_path / "run"
    done = cdta("import", record, "--out", out, code=0)
    assert "rule uptake" in done.stdout and str(out) in done.stdout
    run = load_run(out)
    assert (run.model, run.version) == ("generation/direct/gpt-4", "gpt-4-0314")
    assert (run.plan.eval, run.plan.reading, run.plan.wording) == ("all_small", "exact", "recorded")
    assert (run.plan.settings.seed, run.started_at) == (7, "2024-03-01T10:00:00Z")
    assert [condition.prompts[0].text for condition in run.plan.conditions] == list(SYSTEM)
    metrics = run.results.metrics
    assert metrics["predicted_move_proportion"] == 1
    assert metrics["predicted_move_in_variant_proportion"] == pytest.approx(1 / 3)
    assert metrics["variant_impact_factor"] == pytest.approx(-2 / 3)
    assert metrics["rule_uptake"] == pytest.approx(1 / 3)
    assert metrics["usage_total_tokens"] == 60
    assert "rule_uptake" in run.results.bounds
    assert any("does not contain the temperature" in note for note in run.notes)
    assert (out / "report.html").exists()


@pytest.mark.parametrize("reading", ["exact", "lenient"])
def test_an_imported_record_gives_the_numbers_of_its_run(
    tmp_path: Path, home: Path, reading: str
) -> None:
    record = tmp_path / "record.jsonl"
    options = ("--max_samples", 40, "--completion_args", f"reading={reading}")

    def reply(request: Body) -> str:
        return f"{habit(request)}!" if is_changed(request) else mixed(request)

    with openai_server(reply, model="gpt-3.5-turbo-0125"):
        oaieval(
            *("generation/direct/gpt-3.5-turbo", "cant_do_that_anymore.all_small", *options),
            *("--record_path", record),
            code=0,
        )
    (folder,) = (home / "runs").iterdir()
    original, [run] = load_run(folder), import_records([record])
    assert run.results.metrics == original.results.metrics
    assert run.results.intervals == original.results.intervals
    assert [s.replies for s in run.samples] == [s.replies for s in original.samples]
    assert run.plan.conditions == original.plan.conditions
    assert (run.plan.wording, run.plan.reading) == ("default", reading)
    # A record does not say that a reply was truncated.
    record.write_text(record.read_text().replace('"unreadable"', '"truncated"'))
    assert import_records([record])[0].results.metrics == run.results.metrics


def test_chains_of_thought_and_text_prompts_are_imported(tmp_path: Path) -> None:
    position = POOL[0]
    path = write_record(tmp_path / "x.jsonl", [(position, (special(position),) * 2)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in (line for line in lines if line.get("type") == "sampling"):
        turns = [("Assistant", "User")[(len(position.moves) - n) % 2] for n in range(99)]
        moves = [f"{turns[n]}: {move}" for n, move in enumerate(position.moves)]
        system = f"System: {line['data']['prompt'][0]['content']}"
        line["data"]["prompt"] = "\n".join([system, *moves, "Assistant:"])
    first, *samplings, last, report = lines
    reasoning = {**samplings[0], "data": {**samplings[0]["data"], "sampled": ["I think."]}}
    lines = [first, *(line for reply in samplings for line in (reasoning, reply)), last, report]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "metr')
    [run] = import_records([path])
    assert [condition.prompts[0].text for condition in run.plan.conditions] == list(SYSTEM)
    assert {answer.reasoning for answer in run.samples[0].answers.values()} == {"I think."}
    assert run.results.metrics["usage_total_tokens"] == 40


def test_samples_of_one_game_are_recognized_across_records(tmp_path: Path) -> None:
    """A game in two records stays one game, and a game that diverges from it is another."""
    short, long, other = (
        Position(0, tuple(moves.split()), ("f1b5",))
        for moves in ("e2e4 e7e5 g1f3 b8c6", "e2e4 e7e5 g1f3 b8c6 a2a3 a7a6", "e2e4 e7e5 b1c3 b8c6")
    )
    groups = ((short, other), (long, other))
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for file, group in zip(files, groups, strict=True):
        samples = [(position, ("f1b5", "f1b5")) for position in group]
        write_record(file, samples, diagonal_variation=True)
    first, second = ([s.position.game for s in run.samples] for run in import_records(files))
    assert first == second and len(set(first)) == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no line has the key 'spec'"),
        ("\xff", "no line has the key 'spec'"),
        ('{"spec": {}}\n', "it has no samples"),
        ('{"spec": 5}\n{"type": "metrics", "data": {}}', "'sample_id' is missing"),
        ('{"spec": {}}\n{"sample_id": 1, "type": "metrics", "data": {}}', "missing the key 'move'"),
    ],
)
def test_the_error_names_a_bad_record_and_its_problem(
    tmp_path: Path, text: str, error: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=rf"x\.jsonl.*{error}"):
        import_records([path])


def test_replies_that_contradict_the_record_are_refused(tmp_path: Path) -> None:
    path = write_record(tmp_path / "x.jsonl", [(POOL[0], (special(POOL[0]), "a2a3"))])
    path.write_text(path.read_text().replace('_in_variant": false', '_in_variant": true'))
    with pytest.raises(InvalidInput, match="its replies contradict its metrics events"):
        import_records([path])


@pytest.mark.usefixtures("no_plots")
def test_several_records_are_imported_and_pooled(tmp_path: Path) -> None:
    for seed in (1, 2):
        samples = [(p, (special(p), special(p) if seed == 1 else "zz")) for p in POOL[:4]]
        write_record(tmp_path / f"{seed}.jsonl", samples, seed=seed)
    records, runs = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"], tmp_path / "runs"
    done = cdta("import", *records, "--out", runs, "--json", code=0)
    assert [json.loads(line)["delta"] for line in done.stdout.splitlines()] == [0, -1]
    out = tmp_path / "out"
    cdta("experiment", "--plots-only", runs, "--out", out, code=0)
    [row] = json.loads((out / "results.json").read_text())["results"]
    assert (row["runs"], row["samples"], row["variant_impact_factor"]) == (2, 8, -0.5)
    refused = cdta("experiment", "--plots-only", records[0], "--out", out)
    assert refused.returncode == 2
    assert "`cdta import` imports a record file" in refused.stderr


def test_two_records_in_one_file_are_refused(tmp_path: Path) -> None:
    """Their samples have the same ids, so the requests would look like a chain of thought."""
    record = write_record(tmp_path / "a", [(p, (special(p), special(p))) for p in POOL[:3]])
    record.write_text(record.read_text() * 2)
    with pytest.raises(InvalidInput, match="contains 2 records; split it into one file each"):
        import_records([record])


def test_a_record_with_several_wordings_is_noted(tmp_path: Path) -> None:
    record = write_record(tmp_path / "a", [(p, (special(p), special(p))) for p in POOL[:3]])
    first, rest = record.read_text().split("Play chess.", 1)
    record.write_text(f"{first}Chess, please.{rest}")
    [run] = import_records([record])
    assert "the record has 2 wordings; the prompts shown are its first ones" in run.notes
