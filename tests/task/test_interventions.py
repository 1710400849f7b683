"""Interventions that may help a model follow the rule: prompts, replies and effects."""

import re
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import chess
import pytest

from cant_do_that_anymore import Position, Run
from cant_do_that_anymore.habits.chess.forms import FORMS
from cant_do_that_anymore.habits.chess.rule_pool import example_of
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, CATALOG, Rules
from cant_do_that_anymore.metrics.estimates import difference
from cant_do_that_anymore.metrics.interventions import effects_of
from cant_do_that_anymore.metrics.measures import UPTAKE, uptake_under
from cant_do_that_anymore.providers.base import Answer, Question
from cant_do_that_anymore.report.rows import intervention_table
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import helps_sentence
from cant_do_that_anymore.report.tables import summary
from cant_do_that_anymore.task.conditions import CONDITIONS, conditions_for, interventions, question
from cant_do_that_anymore.task.prompts import DEFAULT_WORDING, SHIPPED_WORDINGS, shipped_wording
from cant_do_that_anymore.task.types import Outcome, Sample, ScoredAnswer
from custom_rules import NoEnPassant
from testing import (
    POOL,
    USUAL,
    Body,
    adapting,
    checksum,
    habit,
    legal_under_both,
    measure,
    moves_in,
    plan_of,
    positions,
    printed,
    run_from_answers,
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
                assert prompt.messages[0].role == wording.role
                assert not re.search(r"\{\w*\}|None", str(prompt.messages))
            _check_texts(position, rules, questions)


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
    board, placebo = chess.Board(fen), rules.placebo_change
    assert placebo.statement in text
    assert placebo.is_habit(board, chess.Move.from_uci(usual))
    assert placebo.is_legal(board, chess.Move.from_uci(reply))
    assert usual[:2] == reply[:2]
    own = example_of(rules)
    if own:
        piece = own.board().piece_type_at(chess.parse_square(own.usual[0][:2]))
        assert board.piece_type_at(chess.parse_square(usual[:2])) != piece


@pytest.mark.parametrize(
    ("reply", "outcome", "move"),
    [
        ("c8b7: no\ng8f6", "legal", "g8f6"),
        ("g8f6 is legal: yes\nc8b7", "usual", "c8b7"),
        ("I would play c8b7, but bishops jump now.\nMove: c8d6", "adapted", "c8d6"),
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


@pytest.fixture(scope="module")
def planted() -> Run:
    return measure(reacting, dataset=positions(N), interventions="all", price="2,8", n=N)


def test_the_three_interventions_that_help_are_reported(planted: Run) -> None:
    effects = planted.results.interventions
    assert [e.name for e in effects[:3]] == ["legal-moves", "reason-first", "conflict-named"]
    verdicts = ["helps"] * 3 + ["no detectable effect"] * 4
    assert [effect.verdict for effect in effects] == verdicts
    for effect in effects:
        tokens, uptake = 0, effect.rule_uptake
        for sample in planted.samples:
            used = [sample.answers[name].usage for name in (effect.name, "changed")]
            tokens += used[0].input_tokens + used[0].output_tokens
            tokens -= used[1].input_tokens + used[1].output_tokens
        assert effect.extra_tokens == pytest.approx(tokens / N)
        assert uptake and uptake == uptake_under(effect.name).estimate(planted.samples)
        assert effect.difference and effect.difference.value == pytest.approx(
            uptake.value - planted["rule_uptake"].value
        )
        assert effect.difference == difference(
            uptake_under(effect.name), UPTAKE, planted.samples, comparisons=7
        )
    for effect, rate in zip(effects, FOLLOW_RATES.values(), strict=False):
        assert effect.difference and effect.difference.low and effect.difference.high
        assert effect.difference.low < rate - 0.1 < effect.difference.high
    assert helps_sentence(planted).startswith("Helps: listing the legal moves")
    outputs = text_of(page(planted)), printed(summary(planted), width=140)
    rows = intervention_table(planted).rows[1:]
    for effect, row in zip(effects, rows, strict=True):
        assert effect.difference and effect.difference.as_difference == row[2]
        assert (row[0], row[-1]) == (effect.name, effect.verdict)
        assert all(" ".join(row) in " ".join(output.split()) for output in outputs)


def test_interventions_with_unusable_replies_cannot_be_judged() -> None:
    """Where a tenth is unusable, the interval allows for anything that they could have been."""

    def silent(request: Body) -> str:
        text, number = str(request), checksum(moves_in(request)) % 10
        if "in two lines" in text or ("The legal moves" in text and number < 1):
            return "I cannot help with that."
        return habit(request) if "The legal moves" not in text else adapting(request)

    names = ("check-first", "legal-moves")
    run = measure(silent, dataset=positions(N), interventions=names, n=N)
    effects = {effect.name: effect for effect in run.results.interventions}
    refused, useful = (effects[name] for name in names)
    assert (refused.verdict, refused.unusable) == ("cannot be judged", 1)
    *_, row = intervention_table(run).rows
    assert (row[0], *row[1:3], row[-1]) == ("check-first", "–", "–", "cannot be judged")
    assert " ".join(row) in text_of(page(run))
    assert 0 < useful.unusable < 0.2 and useful.verdict == "helps"
    assert useful.rule_uptake and useful.rule_uptake.high == 1
    assert useful.rule_uptake.value == pytest.approx(1 - useful.unusable)
    unread = "checking the usual move first (100% of its replies contain no move)"
    sentences = f"Helps: listing the legal moves. Cannot be judged: {unread}."
    assert helps_sentence(run) == sentences


def test_nothing_helps_where_there_is_no_habit() -> None:
    names = ("standard", "changed", "reminded")
    outcomes: dict[str, Outcome] = dict.fromkeys(names, "legal")
    plan = plan_of(names=names, interventions=("reminded",))
    run = run_from_answers([(p, outcomes) for p in POOL[:9]], plan)
    (effect,) = run.results.interventions
    assert (effect.difference, effect.rule_uptake) == (None, None)
    assert effect.verdict == "cannot be judged"


def test_interventions_without_an_effect_are_rarely_named() -> None:
    """Of eight runs at 5% each, three or more name one only once in 170 times."""
    rates = dict.fromkeys(("changed", "repeated", "reminded", "conflict-named", "example"), 0.7)
    rates |= {"legal-moves": 0.3, "check-first": 0.4, "reason-first": 0.45}
    replies = {kind: ScoredAnswer(kind, None, kind) for kind in ("usual", "legal")}

    def named(random: Random) -> set[str]:
        samples, exponent = [], 1.0
        for number, position in enumerate(POOL[:200]):
            if number % 3 == 0:  # habits of three positions from one game are alike
                exponent = random.uniform(0.7, 1.4)
            outcomes = {
                name: replies["usual" if random.random() < rate**exponent else "legal"]
                for name, rate in ({"standard": 0.95} | rates).items()
            }
            item = replace(position, game=number // 3)
            samples.append(Sample(item, 0, outcomes, dict.fromkeys(outcomes, Answer())))
        effects = effects_of(samples, [*rates][1:])
        return {effect.name for effect in effects if effect.verdict in ("helps", "harms")}

    helpful = {"legal-moves", "check-first", "reason-first"}
    runs = [named(Random(seed)) for seed in range(8)]
    assert sum(bool(names - helpful) for names in runs) <= 2
    assert sum(names >= helpful for names in runs) >= 7


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
        shorter = replace(CONDITIONS["reason-first"], tokens=900)
        monkeypatch.setitem(CONDITIONS, "reason-first", shorter)
        assert limits() == [900] * 2
