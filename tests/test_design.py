"""The design by example: a habit is one file; a form, measure, setting or model is one entry.

Each addition below is as short as it would be in the package. Requests, cache, files, reports, the
terminal, comparisons and Inspect follow from it. CONTRIBUTING.md lists how many files each takes.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from markupsafe import escape

import inspect_evals
from cant_do_that_anymore import Answer, Spec, evaluate
from cant_do_that_anymore.api.results import save_with_page
from cant_do_that_anymore.cli.commands import show  # noqa: F401 (help that lists the conditions)
from cant_do_that_anymore.client.cache import Cache
from cant_do_that_anymore.comparison.entries import named_entries
from cant_do_that_anymore.datasets.search import SelectionConfig
from cant_do_that_anymore.formatting import format_setting
from cant_do_that_anymore.habits.base import Form, Message, Pool
from cant_do_that_anymore.habits.chess.forms import FORMS
from cant_do_that_anymore.metrics import measures
from cant_do_that_anymore.metrics.estimates import Event, Measure
from cant_do_that_anymore.providers.access import Access
from cant_do_that_anymore.providers.base import (
    Model,
    ModelInfo,
    Question,
    Request,
    Settings,
    Usage,
)
from cant_do_that_anymore.providers.bundled import RandomModel
from cant_do_that_anymore.providers.catalog import PROVIDERS, Provider
from cant_do_that_anymore.report import rows
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.runs.storage import load_run, run_json
from cant_do_that_anymore.task.conditions import CONDITIONS, ConditionTemplate
from cant_do_that_anymore.task.plan import plan_for
from testing import POOL, USUAL, Body, Loopback, cdta, measure, positions, question, serving

N = 12
TASK = "cant_do_that_anymore/all"


def test_an_intervention_a_measure_and_a_column_are_one_entry_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly = ConditionTemplate(added=lambda *_: "Take your time.", tokens=40, label="more time")
    early = Measure("early_files", Event("changed", lambda reply: (reply.answer or "") < "e"))
    games = rows.Column("n games", lambda e: e.results.groups, str)
    monkeypatch.setitem(CONDITIONS, "slowly", slowly)
    monkeypatch.setitem(measures.MEASURES, early.name, early)
    monkeypatch.setattr(rows, "COLUMNS", (*rows.COLUMNS, games))

    options = ("--dataset", positions(N), "-n", N, "--interventions", "slowly")
    result = cdta("run", *options, "--out", tmp_path / "run", code=0)
    run = load_run(tmp_path / "run")
    assert [effect.name for effect in run.results.interventions] == ["slowly"]
    assert [condition.tokens for condition in run.plan.conditions] == [0, 0, 40]
    assert "No detectable effect: more time." in result.stdout
    assert "Take your time." in page(run) and 'data-condition="slowly"' in page(run)
    assert "Take your time." in cdta("prompt", "--condition", "slowly", code=0).stdout
    stdout = cdta("estimate", *options, "--seed", 2, "--json", code=0).stdout
    expected = json.loads(stdout)
    assert expected["requests"] == 3 * N
    share = run[early.name]
    assert share.value == sum(map(early.first.holds, run.samples)) / N
    assert share.low is not None and share.high is not None
    assert share.low < share.value < share.high
    assert json.loads((tmp_path / "run" / "run.json").read_text())[early.name] == asdict(share)
    values = {row["measure"]: row["value"] for row in rows.measure_rows(named_entries([run]))}
    assert values[early.name] == share.value
    save_with_page(measure("cdta/pocket", dataset=positions(N)), tmp_path / "other")
    command = ("compare", tmp_path / "run", tmp_path / "other")
    assert all("n games" in cdta(*command, *more).stdout for more in ((), ("--markdown",)))


def test_a_wording_is_one_file_and_a_form_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squares = Form("squares", "You get a FEN", lambda p: [Message("user", p.board().fen())])
    monkeypatch.setitem(FORMS, "squares", squares)
    wording, dataset = tmp_path / "terse.toml", positions(4)
    wording.write_text('standard = "Play. {position}."\nchanged = "Play. {position}. {change}"\n')

    with serving(lambda _: "e2e4", model="m") as server:
        options = ("--wording", wording, "--form", "squares", "--out", tmp_path / "run")
        command = ("run", "--base-url", server.url, "--dataset", dataset, "-n", 4)
        cdta(*command, *options, code=0)
        monkeypatch.setenv("LOOP_API_KEY", "x")
        monkeypatch.setenv("LOOP_BASE_URL", server.url)
        task_args = {"dataset": str(dataset), "wording": str(wording), "form": "squares"}
        log = inspect_evals.run_eval(tmp_path, TASK, "openai-api/loop/m", task_args=task_args)
    run = load_run(tmp_path / "run")
    sent = [request["messages"] for request in server.requests]
    assert (log.status, len(sent)) == ("success", 2 * 8)
    assert sorted(map(str, sent[:8])) == sorted(map(str, sent[8:]))
    texts = {condition.prompts[0].text for condition in run.plan.conditions}
    assert {turns[0]["content"] for turns in sent} == texts
    fens = {position.board().fen() for position in POOL[:4]}
    assert {turns[1]["content"] for turns in sent} == fens
    assert run.plan.form.name == "squares"
    assert run.plan.conditions[1].prompts[0].text in page(run)
    assert "Play." in cdta("prompt", "--wording", wording, code=0).stdout


COLORS = """\
title = "colors are mixed as light is"
task = "You mix colors."
reply = "Reply with one color."
now = "Colors are mixed as light is."
no_longer = "Paint is no longer used."
answer = "word"
items = [
  {question = "red + green", usual = "brown", right = "yellow"},
  {question = "red + blue", usual = "purple", right = "magenta"},
  {question = "blue + yellow", usual = ["green", "dark green"], right = "white"},
  {question = "green + blue", usual = "teal", right = "cyan"},
]
"""


def test_a_habit_is_one_file(tmp_path: Path) -> None:
    file, folder = tmp_path / "own.toml", tmp_path / "plain"
    file.write_text(COLORS)
    command = ("run", "--model", "cdta/random", "--rules", file, "--seed", 1)
    assert "Usual answer: brown" in cdta("rules", file, code=0).stdout
    prompts = cdta("prompt", "--wording", "plain", "--rules", file, code=0).stdout
    assert prompts.count("You mix colors.") == prompts.count("user: red + green") == 2
    assert prompts.count("Colors are mixed as light is. Paint is no longer used.") == 1
    done = cdta(*command, "--wording", "plain", "--out", folder, code=0)
    assert "when colors are mixed as light is" in " ".join(done.stdout.split())
    file.write_text(COLORS.replace("Paint", "Ink"))
    cdta(*command, "--out", tmp_path / "changed", code=0)
    file.unlink()  # saved runs have what they need of it
    run = load_run(folder)
    assert run_json(run) == json.loads((folder / "run.json").read_text())
    for sample in run.samples:
        item, reply = sample.item.to_json(), sample.replies["changed"]
        outcomes = {item["right"]: "adapted"} | dict.fromkeys(sample.item.usual, "usual")
        assert reply.outcome == outcomes.get(str(reply.answer), "illegal")
    counts = run.results.outcomes["changed"]
    kept, right = (round(100 * counts[each] / len(run.samples)) for each in ("usual", "adapted"))
    report = (folder / "report.html").read_text()
    assert f"kept {kept}%, right {right}%, neither" in report
    assert "Colors are mixed as light is. Paint is no longer used." in report
    assert "under different rules" in cdta("compare", folder, tmp_path / "changed", code=2).stderr


@dataclass(frozen=True)
class SettingsWithHaste(Settings):
    haste: str = "none"


def test_a_setting_is_one_field() -> None:
    """Cache keys, the dataset's digest, files, reports and differences follow from it.

    A field of `Spec` with the same name lets users set it.
    """
    model, pool = RandomModel.info, Pool("pool", POOL[:N])
    base = replace(plan_for(Spec(), model), settings=SettingsWithHaste())
    hasty = replace(base, settings=SettingsWithHaste(haste="high"))
    request = Request(question(("e2e4",)), "measuring", "standard")
    key, standard = Cache(":memory:", model).key, Settings()
    assert key(request, base.settings) == key(request, standard) != key(request, hasty.settings)
    assert len({SelectionConfig(model, pool, plan).digest for plan in (base, hasty)}) == 2
    settings = asdict(Settings(0.25, 99, 7, "none", '{"top_k": 3}'))
    run = measure("cdta/random", dataset=positions(2), **settings)
    assert run.plan.settings == Settings(**settings)
    for name in (setting.name for setting in fields(Settings)):
        value = settings[name]
        assert run_json(run)["options"][name] == value
        title = name.replace("_", " ").capitalize()
        assert f"<dt>{title}</dt><dd>{escape(format_setting(value))}</dd>" in page(run)
        assert key(request, replace(standard, **{name: value})) != key(request, standard)


class ReplyServer(Loopback):
    """A server whose API is not OpenAI's; it plays the usual move under any rules."""

    def completion(self, request: Body) -> dict[str, Any]:
        return {"reply": self.respond(request), "by": "parrot-2", "tokens": [100, 4]}


class ReplyModel(Model):
    """The adapter for that server."""

    def __init__(self, info: ModelInfo, access: Access) -> None:
        self.info = info

    async def answer(self, question: Question, settings: Settings) -> Answer:
        task, *turns = (message.content for message in question.messages)
        body = {"task": task, "moves": turns, "warmth": settings.temperature}
        address = f"{self.info.endpoint}/completions"
        async with ClientSession() as http, http.post(address, json=body) as response:
            data = await response.json()
        return Answer(data["reply"], usage=Usage(*data["tokens"]), version=data["by"])


def test_a_model_with_another_api_is_an_adapter_and_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(ReplyServer(lambda request: USUAL[tuple(request["moves"])])) as server:
        monkeypatch.setenv("PARROT_KEY", "polly")
        parrots = Provider(server.url, "", "PARROT_KEY", load=ReplyModel)
        monkeypatch.setitem(PROVIDERS, "parrots", parrots)

        spec = Spec(model="parrots/grey", dataset=positions(N), price="1,2", wording="plain")
        run = evaluate(spec, quiet=True)
        again = evaluate(spec, quiet=True)
    save_with_page(run, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert run_json(loaded) == run_json(run)
    assert (loaded.samples, loaded.results) == (run.samples, run.results)
    assert run.results["rule_uptake"].value == 0
    assert (run.model, run.version, run.endpoint) == ("grey", "parrot-2", server.url)
    assert run.cost.total == pytest.approx(2 * N * (100 * 1 + 4 * 2) / 1_000_000)
    assert {request["warmth"] for request in server.requests} == {1.0}
    assert again.samples == run.samples
    assert len(server.requests) == 2 * N
    assert "parrot-2" in page(run)
