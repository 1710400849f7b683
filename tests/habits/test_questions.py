"""Habits that are data: shipped items, files, planted models, and models that lack the habit."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cant_do_that_anymore import Spec
from cant_do_that_anymore.errors import Incomplete, InvalidInput
from cant_do_that_anymore.habits.catalog import resolve_change
from cant_do_that_anymore.habits.question_items import QuestionItem
from cant_do_that_anymore.habits.questions import read_change, shipped_keys
from cant_do_that_anymore.report.sentences import headline
from testing import Body, cdta, checksum, measure, serving_in_process

HEAD = """
title = "a dozen is ten"
task = "You count things."
reply = "Reply with the number and nothing else."
now = "A dozen is now ten."
no_longer = "A dozen is no longer twelve."
placebo = "A score is now thirty. A score is no longer twenty."
answer = "number"
items = "dozens.jsonl"
"""
ITEM = '{"question": "3 dozen eggs", "usual": 36, "right": 30}'
DOZENS = {f"How many eggs are {n} dozen eggs?": (12 * n, 10 * n) for n in range(2, 152)}
PAIRS = {f"How many socks are {n} pairs of socks?": (2 * n, 2 * n) for n in range(2, 102)}


@pytest.fixture
def dozens(tmp_path: Path) -> Path:
    """A habit in one file, with controls."""
    lines = [
        {"question": question, "usual": usual, "right": right}
        for question, (usual, right) in (DOZENS | PAIRS).items()
    ]
    (tmp_path / "dozens.jsonl").write_text("\n".join(map(json.dumps, lines)))
    file = tmp_path / "dozens.toml"
    file.write_text(HEAD)
    return file


def base_9(number: int) -> str:
    return (base_9(number // 9) if number > 8 else "") + str(number % 9)


def recomputed(key: str, question: str) -> tuple[Any, Any]:
    """The usual and the right answer, computed without the package."""
    if key in ("base-9", "minus-means-plus"):
        first, sign, second = question.split()
        a, b = int(first), int(second)
        if key == "base-9":
            usual = a + b if sign == "+" else a - b
            nines = int(first, 9) + int(second, 9) * (1 if sign == "+" else -1)
            return usual, base_9(nines)
        return (a - b if sign == "-" else a + b), a + b
    changed = re.sub(r"x\[(\d+)\]", lambda index: f"x[{int(index[1]) - 1}]", question)
    names = {"max": min} if key == "max-returns-smallest" else {}
    return printed(question), printed(changed, **names)


def printed(code: str, **names: Any) -> Any:
    """What Python code prints, if names have another meaning."""
    values: list[Any] = []
    exec(code, {"print": values.append, **names})
    [value] = values
    return value


@pytest.mark.parametrize("key", shipped_keys())
def test_shipped_items_are_right(key: str) -> None:
    items = resolve_change(key).items  # type: ignore[attr-defined]
    assert [sum(item.is_control for item in items), len(items)] == [200, 1200]
    for item in items:
        usual, right = recomputed(key, item.question)
        assert (item.usual, item.right) == ((str(usual),), (str(right),)), item
        assert item.is_control or abs(int(item.usual[0]) - int(item.right[0])) > 1


BAD_FILES = {
    HEAD.replace("dozens", "pairs"): "'pairs.jsonl' (No such file",
    f"titel = 'x'\n{HEAD}": "unknown key in own.toml: 'titel' (did you mean 'title'",
    HEAD.replace("now =", "# now ="): "own.toml is missing the key 'now'",
    HEAD.replace('"number"', '"numbr"'): "unknown 'answer' in own.toml: 'numbr'",
    HEAD.replace('"dozens.jsonl"', "[]"): "own has no item whose usual answer",
    HEAD.replace("a dozen is ten", ""): "'title' of own is empty",
    HEAD.replace('"dozens.jsonl"', "[1]"): "item 1 of own",
    '"': "cannot read the change 'own.toml'",
    f'items = [{{answer = "word"}}]\n{HEAD.replace("items", "habit")}': (
        "'answer' in own.toml must stand above the first [[items]]"
    ),
}
BAD_LINES = {
    ITEM.replace("3 dozen eggs", " "): "must have a question, a usual and a right answer",
    '{"question": "4 dozen eggs", "usual": true, "right": 40}': "'True' is not a number",
    ITEM.replace("right", "rihgt"): "dozens.jsonl, line 3 is missing the key 'right'",
    "[]": "must be a dictionary",
}


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        *((file, ITEM, message) for file, message in BAD_FILES.items()),
        *((HEAD, line, message) for line, message in BAD_LINES.items()),
    ],
)
def test_bad_files_end_in_one_sentence(
    file: str, line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(file)
    Path("dozens.jsonl").write_text(f"{ITEM}\n\n{line}\n")
    error = cdta("rules", "own.toml", code=2).stderr
    assert message in error and error.count("\n") == 1
    assert (file == HEAD) == ("dozens.jsonl, line 3" in error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "cdta/random", "--form", "fen"), "unknown form: 'fen'"),
        ((), "cdta/reader plays only chess"),
        (("--model", "cdta/random", "--diagnose"), "dozens has no placebo, which a diagnosis"),
    ],
)
def test_what_only_other_habits_offer_is_refused(
    options: tuple[str, ...], message: str, dozens: Path
) -> None:
    dozens.write_text(re.sub("placebo.*", "", HEAD))
    assert message in cdta("run", "--rules", dozens, *options, code=2).stderr


PHRASES = ("{}", '{{"answer": "{}"}}', "It is no longer {other}. The answer is {}.")


def question_in(request: Body) -> str:
    text = str(request["messages"][-1]["content"])
    return next(question for question in DOZENS | PAIRS if question in text)


def planted(share: float, nonsense: bool = False) -> Any:
    """A model that gives the right answer after the change in a share of questions."""

    def respond(request: Body) -> str:
        question = question_in(request)
        usual, right = (DOZENS | PAIRS)[question]
        texts = "".join(str(message["content"]) for message in request["messages"])
        if asked := re.search(r"[Ii]s (\d+) .*(?:yes or no|no or yes)", texts):
            return "Yes." if int(asked[1]) == usual else "No."
        digits = checksum((question,))
        follows = "dozen is" in texts and digits % 100 < 100 * share
        given, other = (right, usual) if follows else (usual, right)
        if "dozen is" in texts and nonsense:
            given = usual + 1
        return PHRASES[digits % len(PHRASES)].format(given, other=other)

    return respond


@pytest.mark.parametrize(
    ("wording", "share"), [("plain", 0.6), ("all", 0.0), ("all", 0.6), ("all", 1.0)]
)
def test_a_planted_share_is_measured(wording: str, share: float, dozens: Path) -> None:
    run = measure(planted(share), rules=dozens, n=100, wording=wording)
    uptake = run["rule_uptake"]
    assert uptake.low is not None and uptake.high is not None
    assert uptake.low <= share <= uptake.high and abs(uptake.value - share) < 0.12
    assert run.after_change["right"] == pytest.approx(uptake.value)


def test_nonsense_is_no_uptake(dozens: Path) -> None:
    run = measure(planted(0, nonsense=True), rules=dozens, n=50)
    assert run.after_change == {"kept": 0, "right": 0, "neither": 1}


def test_a_diagnosis_works_on_any_file(dozens: Path) -> None:
    run = measure(planted(1), rules=dozens, n=40, diagnose=True)
    assert len(run.controls) == 40 and {c.item.usual[0] for c in run.controls} < {
        str(usual) for usual, _ in PAIRS.values()
    }
    assert all(control.kept_habit for control in run.controls)
    finding = run.results.diagnosis["knowledge"]  # it always goes by the usual answer
    assert (finding.answer, finding.estimate and finding.estimate.value) == ("No", -1)


def test_base_models_get_16_tokens_and_one_line(dozens: Path) -> None:
    def respond(request: Body) -> str:
        question = next(q for q in DOZENS if q in request["prompt"])
        return f"{DOZENS[question][0]}\nUser: How many eggs are 3 dozen eggs?\n30"

    with serving_in_process(respond) as server:
        run = measure(server, model="completions/m", rules=dozens, n=10)
    assert {request["max_tokens"] for request in server.requests} == {16}
    assert run.after_change["kept"] == 1


def test_a_model_that_cannot_play_is_told_what_it_can_do() -> None:
    with serving_in_process(lambda _: "a1a8") as server:
        with pytest.raises(Incomplete, match="can't play chess; try --rules base-9"):
            measure(server, n=100)
        assert len(server.requests) <= 80
        run, single = (measure(server, n=n, eval="all_diagonal") for n in (50, 1))
    assert run.results.uptake is None
    assert "rule uptake" not in headline(run) and "try --rules base-9" in headline(run)
    assert "can't play" not in headline(single)


def test_changes_from_python(dozens: Path) -> None:
    change = read_change(dozens)
    assert "items: 150, and 100 controls" in cdta("rules", dozens).stdout
    own = replace(change, items=[json.loads(ITEM)], key="mine")
    assert own.items == (QuestionItem("3 dozen eggs", ("36",), ("30",), own.items[0].id),)
    assert len(measure("cdta/random", rules=change, n=20).samples) == 20
    with pytest.raises(InvalidInput, match="unknown rules"):
        Spec(rules="base-10")
    with pytest.raises(InvalidInput, match="several rules; give one: base-9, minus-means-plus"):
        Spec(rules="arithmetic")
