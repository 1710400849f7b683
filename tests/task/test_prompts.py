"""Prompts: their texts, and how the moves so far are laid out."""

import re
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.base import Message
from cant_do_that_anymore.habits.chess.position import Position
from cant_do_that_anymore.habits.chess.rules import BISHOPS_AS_KNIGHTS, CATALOG, STANDARD
from cant_do_that_anymore.providers.request_fields import as_text
from cant_do_that_anymore.task.conditions import conditions_for, question
from cant_do_that_anymore.task.prompts import Wording, shipped_wording, wordings_named
from testing import POOL, measure, positions

PLAIN = shipped_wording("plain", BISHOPS_AS_KNIGHTS)
SHORT = Wording("short", "Standard.", "Changed: {change}")
PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
PROMPT_DIGESTS = {
    "standard": "44fbf1b7e04f",
    "changed": "54bce1884707",
    "placebo": "aafd83258b9a",
    "reminded": "e0c00b31a7b5",
    "knows_forbidden": "b8e96112ebaa",
    "knows_allowed": "480e15e20992",
}
"""Digests of the prompts: a new one changes the protocol and belongs in the changelog."""


def messages(*moves: str) -> tuple[Message, ...]:
    (standard,) = conditions_for(["standard"], BISHOPS_AS_KNIGHTS, SHORT)
    return standard.question(Position(1, moves, ())).messages


def test_the_side_to_move_is_the_assistant_and_the_last_turn_is_the_users() -> None:
    """The text for base models ends where the next move begins."""
    white_to_move, black_to_move = messages("e2e4", "e7e5"), messages("e2e4", "e7e5", "g1f3")
    assert as_text(white_to_move) == "System: Standard.\nAssistant: e2e4\nUser: e7e5\nAssistant:"
    text = "System: Standard.\nUser: e2e4\nAssistant: e7e5\nUser: g1f3\nAssistant:"
    assert as_text(black_to_move) == text
    assert [m.role for m in black_to_move] == ["system", "user", "assistant", "user"]
    assert messages() == (Message("system", "Standard."),)


def test_the_protocol_quotes_the_default_wording() -> None:
    text = PROTOCOL.read_text(encoding="utf-8")
    task, change, placebo, yes_no = re.findall(r"```text\n(.*?)\n```", text, re.S)
    changed = task.replace("chess", "chess with one rule changed")
    assert PLAIN.standard_prompt(BISHOPS_AS_KNIGHTS) == task
    assert PLAIN.changed_prompt(BISHOPS_AS_KNIGHTS) == f"{changed}\n{change}"
    (condition,) = conditions_for(["placebo"], BISHOPS_AS_KNIGHTS, PLAIN)
    assert condition.prompts[0].text == f"{changed}\n{placebo}"
    assert PLAIN.question == yes_no


@pytest.mark.parametrize("condition", PROMPT_DIGESTS)
def test_prompts_do_not_change(condition: str) -> None:
    changes = [rules for rules in CATALOG.values() if rules != STANDARD]
    questions = [
        question(position, change, condition) for position, change in product(POOL[:4], changes)
    ]
    lines = [f"{m.role}: {m.content}" for q in questions for m in q.messages]
    assert sha256("\n".join(lines).encode()).hexdigest()[:12] == PROMPT_DIGESTS[condition]


BAD_WORDINGS = {
    "half.toml": ("standard = 'x'", "the wording 'half.toml' is missing the key 'changed'"),
    "bad.toml": ("[", "cannot read the wording 'bad.toml'"),
    "number.toml": ("standard = 3\nchanged = ''", "'standard' in .* must be a valid string, not 3"),
    "key.toml": (
        "standard = ''\nchanged = ''\nremindr = ''",
        r"unknown key in .*: 'remindr' \(did you mean 'reminder'",
    ),
    "../../etc/passwd": ("", "unknown wording"),
}


@pytest.mark.parametrize("name", BAD_WORDINGS)
def test_a_bad_wording_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, message = BAD_WORDINGS[name]
    if text:
        Path(name).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        wordings_named(name, BISHOPS_AS_KNIGHTS)


@pytest.mark.parametrize(("changed", "notes"), [("Play. {change}", 0), ("Bishops jump.", 1)])
def test_a_missing_placeholder_is_noted(changed: str, notes: int) -> None:
    wording = Wording("own", "Play {}.", changed)
    run = measure("cdta/random", wording=wording, dataset=positions(2))
    warning = "lacks {change}; check that it states bishops-as-knights"
    assert sum(warning in note for note in run.notes) == notes
    assert run.plan.conditions[0].prompts[0].text == "Play {}."
