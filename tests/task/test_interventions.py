"""Interventions that may help a model follow the rule: prompts, replies and effects."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import chess
import pytest

from cant_do_that_anymore import ConditionTemplate, Position, Run, Spec, load
from cant_do_that_anymore.api.results import save_with_page
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.forms import FORMS
from cant_do_that_anymore.habits.chess.rule_pool import example_of
from cant_do_that_anymore.habits.chess.rules import (
    BISHOPS_AS_KNIGHTS,
    CATALOG,
    STANDARD,
    Rules,
    placebo_of,
)
from cant_do_that_anymore.metrics.stats.significance import p_value
from cant_do_that_anymore.providers.base import Answer, Question
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import helps_sentence
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.runs.cost import estimate
from cant_do_that_anymore.runs.storage import run_json
from cant_do_that_anymore.task.conditions import CONDITIONS, conditions_for, interventions, question
from cant_do_that_anymore.task.prompts import DEFAULT_WORDING, SHIPPED_WORDINGS, shipped_wording
from custom_rules import NoEnPassant
from planted_models import correct_answer, is_reminded
from testing import (
    POOL,
    USUAL,
    Body,
    PlantedModel,
    adapting,
    cdta,
    checksum,
    habit,
    is_changed,
    legal_under_both,
    measure,
    moves_in,
    positions,
    printed,
    serving_in_process,
    text_of,
)

ALL = [
    *("reminded", "repeated", "conflict-named", "example"),
    *("legal-moves", "check-first", "reason-first"),
]
CHANGES = [rules for rules in CATALOG.values() if rules.forbids_something]


@pytest.mark.parametrize("rules", [*CHANGES[::4], NoEnPassant()], ids=lambda rules: rules.key)
def test_every_intervention_has_valid_prompts(rules: Rules) -> None:
    assert interventions() == ALL
    start, black, white = (Position(0, moves, ()) for moves in ((), POOL[0].moves, POOL[1].moves))
    assert len(black.moves) % 2 != len(white.moves) % 2
    choices = (start, black, white, example_of(rules) or start)
    for number, name in enumerate((DEFAULT_WORDING, *SHIPPED_WORDINGS)):
        wording = shipped_wording(name, rules)
        for index, form in enumerate(FORMS.values(), number):
            position = choices[index % len(choices)]
            conditions = conditions_for(["changed", *ALL], rules, wording, form=form)
            questions = {condition.name: condition.question(position) for condition in conditions}
            for prompt in questions.values():
                _check_prompt(prompt.messages, wording.role, has_board=form.name == "board")
            _check_texts(position, rules, questions)


def _check_prompt(messages: Sequence[Message], role: str, has_board: bool) -> None:
    roles = [message.role for message in messages]
    assert roles[0] == role
    turns = [role for role in roles if role != "system"]
    assert all(first != second for first, second in pairwise(turns))
    assert not turns or turns[-1] == "user"
    suspicious = r"\{\w*\}|None" + (r"" if has_board else r"|\.\.|\S  \S|[a-z] \.|[a-z]\. [a-z]")
    assert not any(re.search(suspicious, message.content) for message in messages)


def _check_texts(position: Position, rules: Rules, questions: Mapping[str, Question]) -> None:
    texts = {name: "\n".join(m.content for m in q.messages) for name, q in questions.items()}
    assert len(set(texts.values())) == len(texts)
    board = position.board()
    *_, listed = texts["legal-moves"].partition("The legal moves in this position are: ")
    legal = sorted(move.uci() for move in rules.legal_moves(board))
    assert listed == f"{', '.join(legal)}."
    copies = texts["repeated"].split("Here are the task and the position once more.")
    assert [text.split() for text in copies] == [texts["changed"].split()] * 2


@pytest.mark.parametrize("rules", CHANGES, ids=lambda rules: rules.key)
def test_the_worked_example_is_right_and_about_another_piece(rules: Rules) -> None:
    text = question(POOL[0], rules, "example").messages[0].content
    ((fen, usual, reply),) = re.findall(
        r"of that game, (.+) in FEN, the usual move (\w+) would .* reply was (\w+)\.$", text
    )
    board, placebo = chess.Board(fen), placebo_of(rules)
    assert placebo.statement in text
    assert placebo.is_habit(board, chess.Move.from_uci(usual))
    assert placebo.is_legal(board, chess.Move.from_uci(reply))
    assert usual[:2] == reply[:2]
    own = example_of(rules)
    if own:
        piece = own.board().piece_type_at(chess.parse_square(own.usual[0][:2]))
        assert board.piece_type_at(chess.parse_square(usual[:2])) != piece


class WithoutPlacebo(NoEnPassant):
    """Rules whose placebo forbids nothing, so it gives no example."""

    key = "without-placebo"
    placebo = STANDARD


@pytest.mark.parametrize("rules", [NoEnPassant(), WithoutPlacebo()], ids=lambda rules: rules.key)
def test_custom_rules_have_an_example(rules: Rules) -> None:
    text = question(POOL[0], rules, "example").messages[0].content
    assert "No king may castle any more" in text
    assert "the usual move e1c1 would have broken its rule. A correct reply was e1" in text


@pytest.mark.parametrize(
    ("reply", "outcome", "move"),
    [
        ("c8b7: no\ng8f6", "legal", "g8f6"),
        ("My usual move is c8b7. No, it is not legal.\n\ng8f6\n", "legal", "g8f6"),
        ("g8f6 is legal: yes\nc8b7", "usual", "c8b7"),
        ("Yes\n**g8f6**", "legal", "g8f6"),
        ("I would play c8b7, but bishops jump now.\nMove: c8d6", "adapted", "c8d6"),
        ("No\n```\ng8f6\n```", "legal", "g8f6"),
        ("g8f6", "legal", "g8f6"),
        ("c8b7: no", "unreadable", None),
        ("", "unreadable", None),
    ],
)
@pytest.mark.parametrize("name", ["check-first", "reason-first"])
def test_the_move_is_read_from_the_last_line(
    name: str, reply: str, outcome: str, move: str | None
) -> None:
    position = Position(4, ("e2e4", "b7b6", "d2d4"), ("c8b7",))
    plain = shipped_wording(DEFAULT_WORDING, BISHOPS_AS_KNIGHTS)
    (condition,) = conditions_for([name], BISHOPS_AS_KNIGHTS, plain)
    score = condition.read(Answer(reply), position, BISHOPS_AS_KNIGHTS, "lenient")
    assert (score.outcome, score.answer) == (outcome, move)
    truncated = condition.read(Answer(reply, "length"), position, BISHOPS_AS_KNIGHTS, "lenient")
    assert (truncated.outcome, truncated.answer) == ("truncated", None)


# How often each of three interventions makes the planted model follow the rule.
FOLLOW_RATES = {"The legal moves": 0.9, "end your reply with": 0.6, "Check your move": 0.35}
N = 100


def reacting(request: Body) -> str:
    """Follows the rule in 10% of positions, and more often with three of the interventions."""
    text, moves = str(request["messages"]), moves_in(request)
    moves = moves if moves in USUAL else moves[len(moves) // 2 :]  # the repeated prompt
    chance = max([0.1, *(rate for words, rate in FOLLOW_RATES.items() if words in text)])
    follows = (
        "rules of this game differ" in text and Random(f"{moves} {text[-40:]}").random() < chance
    )
    move = legal_under_both(moves)[0] if follows else USUAL[moves]
    if "end your reply with" in text:
        return f"I would play {USUAL[moves]}. Is that legal? No.\n\n{move}"
    return f"{USUAL[moves]}: yes\n{move}" if "in two lines" in text else move


def effects_in(run: Run) -> list[SimpleNamespace]:
    """The effect of each intervention in ``run.json``."""
    return [SimpleNamespace(**effect) for effect in run_json(run)["interventions"]]


@pytest.fixture(scope="module")
def planted() -> Run:
    with serving_in_process(reacting) as server:
        return measure(server, dataset=positions(N), interventions="all", price="2,8", n=N)


def test_the_three_interventions_that_help_are_reported(planted: Run, tmp_path: Path) -> None:
    effects = effects_in(planted)
    assert [effect.name for effect in effects[:3]] == [
        "legal-moves",
        "reason-first",
        "conflict-named",
    ]
    significant = [effect.is_significant for effect in planted.results.interventions]
    assert significant == [True] * 3 + [False] * 4
    for effect, uptake in zip(effects, FOLLOW_RATES.values(), strict=False):
        assert effect.low < uptake < effect.high
        assert effect.closes_low < (uptake - 0.1) / 0.9 < effect.closes_high
        assert effect.difference_low < uptake - 0.1 < effect.difference_high
    baseline = run_json(planted)["metrics"]["rule_uptake"]
    for effect in effects:
        assert effect.rule_uptake - baseline == pytest.approx(effect.difference)
        assert effect.difference / (1 - baseline) == pytest.approx(effect.closes)
    differences = [effect.difference for effect in effects]
    assert differences == sorted(differences, reverse=True)
    assert re.fullmatch(
        r"Listing the legal moves closes 8\d% \[\d+%, \d+%\] of the gap, reasoning first \d+% "
        r"\[\d+%, \d+%\] and naming the conflict \d+% \[\d+%, \d+%\]; .* have no "
        r"detectable effect\.",
        helps_sentence(planted),
    )
    usage = {
        name: sum(
            s.answers[name].usage.input_tokens + s.answers[name].usage.output_tokens
            for s in planted.samples
        )
        for name in ("changed", "repeated")
    }
    repeated = next(effect for effect in effects if effect.name == "repeated")
    assert repeated.extra_tokens == pytest.approx((usage["repeated"] - usage["changed"]) / N)
    assert repeated.extra_dollars == pytest.approx(repeated.extra_tokens * 2e-6)

    save_with_page(planted, tmp_path / "run")
    loaded = load(tmp_path / "run")
    assert run_json(loaded) == run_json(planted)
    text = text_of(page(loaded))
    assert helps_sentence(planted) in text
    assert all(text.count(f"{name} ") for name in ALL)
    assert "closes 8" in text
    assert "{legal_moves}" in text
    output = printed(summary(loaded))
    assert "Listing the legal moves closes" in output
    assert re.search(r"legal-moves +0\.\d+ +\+\d\d\.\d +\+\d\d\.\d to \+\d\d\.\d +< 0\.001", output)


def test_longer_replies_have_their_own_token_limit_and_cache_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def limits(**options: object) -> list[int]:
        sent = len(server.requests)
        measure(server, dataset=positions(2), n=2, interventions="all", **options)
        return sorted(request["max_tokens"] for request in server.requests[sent:])

    with serving_in_process(reacting) as server:
        assert limits() == [512] * 15 + [1000] * 2 + [32_768]
        assert limits() == []
        spec = Spec(model="m", base_url=server.url, dataset=positions(2), n=2, interventions="all")
        assert estimate(spec).requests == 0
        shorter = replace(CONDITIONS["reason-first"], tokens=900)
        monkeypatch.setitem(CONDITIONS, "reason-first", shorter)
        assert limits() == [900] * 2


def test_truncated_reasoning_is_an_outcome_and_does_not_end_the_run() -> None:
    """Whatever moves the replies name. A truncated bare move still counts as an answer."""
    with serving_in_process(reacting, finish_reason="length") as server:
        run = measure(server, dataset=positions(30), n=30, interventions="reason-first")
    assert run.results.outcomes["reason-first"]["truncated"] == 30
    (effect,) = effects_in(run)
    assert (effect.low, effect.high) == (pytest.approx(0, abs=0.2), 1)
    assert not run.results.interventions[0].is_significant


def test_a_custom_intervention(tmp_path: Path) -> None:
    calm = ConditionTemplate(
        name="calm",
        label="asking for calm",
        added=lambda wording, change: f"Stay calm. {change.statement}",
        tokens=700,
    )
    with serving_in_process(reacting) as server:
        run = measure(server, dataset=positions(4), interventions=["repeated", calm], n=4)
        sent = [request for request in server.requests if "Stay calm" in str(request)]
    assert {request["max_tokens"] for request in sent} == {700}
    assert len(sent) == 4
    assert sent[0]["messages"][-1]["content"].endswith(f"Stay calm. {BISHOPS_AS_KNIGHTS.statement}")
    assert helps_sentence(run).startswith(
        "Asking for calm and repeating the prompt have no detectable"
    )
    folder = tmp_path / "run"
    save_with_page(run, folder)
    loaded = load(folder)
    assert run_json(loaded) == run_json(run)
    assert set(loaded.plan.interventions) == {"repeated", "calm"}
    assert helps_sentence(loaded).startswith("Calm and repeating the prompt have no detectable")
    hurry: dict[str, Any] = {"added": lambda *_: "Hurry."}
    for invalid, message in (
        ([replace(calm, name="placebo")], "must ask for a move .* and have a name"),
        ([replace(calm, name="")], "must ask for a move .* and have a name"),
        ([calm, replace(calm, **hurry)], "two interventions are named 'calm'"),
        ([replace(calm, tokens=-5)], "must be a whole number from 0, not -5"),
        ([replace(calm, added=lambda *_: None)], "added of 'calm' must return a text, not None"),  # type: ignore[arg-type]
        ([replace(calm, text=lambda *_: 5)], "text of 'calm' must return a text, not 5"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match=message):
            measure("cdta/random", dataset=positions(4), interventions=invalid)


def json_output(*command: object) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(cdta(*command, code=0).stdout)
    return results


def test_the_order_of_interventions_does_not_matter() -> None:
    runs = [
        measure("cdta/random", dataset=positions(4), interventions=names)
        for names in ("legal-moves,repeated", ["repeated", "legal-moves"])
    ]
    assert not runs[0].plan.differences(runs[1].plan)


def test_interventions_on_the_command_line() -> None:
    command = ("run", "--model", "cdta/random", "--dataset", positions(2), "-n", 2, "--json")
    names = {
        options: [effect["name"] for effect in json_output(*command, *options)["interventions"]]
        for options in (
            ("--interventions",),
            ("--interventions", "repeated,example"),
            ("--interventions", "repeated", "--interventions", "example"),
        )
    }
    every, listed, repeated = names.values()
    assert sorted(every) == sorted(ALL)
    assert sorted(listed) == sorted(repeated) == ["example", "repeated"]
    assert "interventions" not in json_output(*command)
    mistyped = cdta(*command, "--interventions", "exmple", code=2)
    assert mistyped.stderr == "cdta: unknown intervention: 'exmple' (did you mean 'example'?)\n"


def swayed(request: Body) -> str:
    """Drops most habits, fewer when reminded, and none when the conflict is named."""
    eighths = 4 if is_reminded(request) else 6
    if "Some moves that are usual" in str(request) or not is_changed(request):
        eighths = 0
    drops = checksum(moves_in(request)) // 2 % 8 < eighths
    return PlantedModel(lambda _: drops, correct_answer)(request)


def test_a_diagnosis_includes_interventions_at_control_positions(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n": 12, "interventions": ("conflict-named", "reminded")}
    run = measure(swayed, diagnose=True, **options)
    names = {"standard", "changed", "placebo", *options["interventions"]}
    assert {*run.controls[0].replies} == names
    effects = {effect.name: effect for effect in run.results.interventions}
    for name, effect in effects.items():
        pair = ("changed", name)
        before, after = (sum(c.is_usual(n) for c in run.controls) for n in pair)
        assert effect.controls == pytest.approx(after / before - 1)
        changes = [c.is_usual(name) - c.is_usual("changed") for c in run.controls]
        p = p_value(changes, [control.item.group for control in run.controls])
        assert p <= effect.controls_p_holm <= min(1, 2 * p) + 1e-12
    interval: dict[str, Any] = {"controls_low": -0.6, "controls_high": -0.1}
    clear = replace(effects["conflict-named"], **interval, controls_p_holm=0.04)
    unclear = replace(effects["reminded"], **interval, controls_p_holm=0.06)
    results = replace(run.results, interventions=[clear, unclear])
    sentence = helps_sentence(replace(run, results=results))
    assert "At control positions, the usual move also changes with naming" in sentence
    assert "reminder" not in sentence.partition("At control")[2]
    save_with_page(run, tmp_path / "run")
    assert load(tmp_path / "run").results == run.results
    undiagnosed = measure(swayed, **options)
    assert [effect.controls for effect in undiagnosed.results.interventions] == [None, None]
    assert "control" not in helps_sentence(undiagnosed)


def test_unreadable_replies_do_not_make_an_effect_significant() -> None:
    """With it, nine replies are better and two are worse. Without it, forty are unreadable."""

    def answer(request: Body) -> str:
        number, is_named = numbers[moves_in(request)], "Some moves that are usual" in str(request)
        if not is_changed(request) or number >= 191:
            return habit(request)
        if number < 40:
            return adapting(request) if is_named else "Let me think about it."
        keeps_habit = number < 49 if not is_named else 49 <= number < 51
        return habit(request) if keeps_habit else adapting(request)

    numbers = {position.moves: number for number, position in enumerate(POOL[:200])}
    run = measure(answer, dataset=positions(200), interventions=("conflict-named",))
    (effect,) = run.results.interventions
    assert effect.p > 0.05 and not effect.is_significant
