"""The report of a run, opened from disk in a real browser."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, make_dataclass, replace
from pathlib import Path
from time import monotonic
from typing import get_args

import pytest
from playwright.sync_api import Browser

from browser import Opened, Opener, check_fits, saved
from cant_do_that_anymore import Answer, Position, shipped_pool
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.game.notation import notate
from cant_do_that_anymore.game.rules import STANDARD
from cant_do_that_anymore.metrics.measures import MEASURES
from cant_do_that_anymore.metrics.types import Measure
from cant_do_that_anymore.providers.base import Settings, Usage
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.results import Run
from cant_do_that_anymore.runs.storage import load_run, run_json, save_run
from cant_do_that_anymore.task.conditions import CONDITIONS, ConditionTemplate
from cant_do_that_anymore.task.prompts import Prompt
from cant_do_that_anymore.task.types import Eval
from run_builders import with_other_forbidden_moves
from testing import POOL, Asked, cdta, plan_of, played, run_of

Show = Callable[..., Opened]
BIDI = "f1b5 \u202e\u2066evil\u2069\u202c \u200f\ufeff\x00\x1b[2J"
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    '</pre><img src=x onerror="window.hacked = 1">',
    "<!-- <script> --> ]]> &lt;b&gt; &#60;",
    "\"'`${window.hacked = 1}\\u003c\\",
    BIDI,
    "javascript:window.hacked=1",
    "<svg onload=window.hacked=1><style>*{display:none}</style>",
]
UPTAKE, IMPACT = (
    "0%:\u00a0ignores the rule, 100%:\u00a0follows it",
    "0:\u00a0habit kept, −1:\u00a0dropped",
)
AFTER_E4 = Position(1, ("e2e4", "c7c5"), ("f1b5",))


def pair(position: Position, before: str | Answer, after: str | Answer) -> Asked:
    """A position with the replies to both questions of every run."""
    answers = [Answer(said) if isinstance(said, str) else said for said in (before, after)]
    return position, dict(zip(("standard", "changed"), answers, strict=True))


def thinking(thoughts: str, text: str, tokens: int) -> Answer:
    return Answer(text, usage=Usage(1, tokens + 2, tokens), reasoning=thoughts)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run made by the command, as a user makes it."""
    folder = tmp_path_factory.mktemp("real") / "run"
    cdta("run", "--model", "cdta/random", "-n", 12, "--quiet", "--out", folder, code=0)
    return folder


def of_all_kinds(n: int) -> Run:
    """Samples that keep their habit, adapt or ramble by turns."""
    asked = []
    for number, position in enumerate(POOL[:n]):
        special = position.special_moves[0]
        asked.append(pair(position, special, (special, "a2a3", special, "no idea")[number % 4]))
    return run_of(asked)


@pytest.fixture(scope="module")
def habitual() -> Run:
    return of_all_kinds(40)


@pytest.fixture(scope="module")
def three() -> Run:
    """A run with a third condition, whose replies are all different, and with reasoning."""
    with pytest.MonkeyPatch.context() as patch:
        half_told = ConditionTemplate(lambda _: STANDARD, lambda *_: "<half>")
        patch.setitem(CONDITIONS, "half_told", half_told)
        plan = plan_of(3, names=("standard", "changed", "half_told"))
    special = POOL[0].special_moves[0]
    position, said = pair(POOL[0], special, thinking(f"Not {special}?", "g1h3", 70))
    third = [Answer("a2a3"), Answer("<i>no</i>")]
    asked: list[Asked] = [(position, {**said, "half_told": answer}) for answer in third]
    asked.append((position, dict.fromkeys([*said, "half_told"], Answer(special))))
    return run_of(asked, plan)


@pytest.fixture(scope="module")
def thoughtful() -> Run:
    """Positions that were thought about longer, with the special move in mind, both or neither."""
    asked = []
    for number, position in enumerate(POOL[:12]):
        special = position.special_moves[0]
        before = thinking(f"{special} as ever", special, 100)
        longer, tempted = number % 2 == 0, number % 3 == 0
        thoughts = f"Once **{notate(position.board(), special)}**!" if tempted else "Nothing."
        asked.append(pair(position, before, thinking(thoughts, "", 1_200 if longer else 50)))
    return run_of(asked)


@pytest.fixture(scope="module")
def other_bishop_moves() -> Run:
    """A model that puts another forbidden move in the habit's place, every time."""
    return played(after="forbidden", positions=with_other_forbidden_moves(50))


@pytest.fixture(scope="module")
def pages() -> dict[str, Path]:
    return {}


@pytest.fixture
def show(
    request: pytest.FixtureRequest,
    pages: dict[str, Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    open_page: Opener,
) -> Show:
    """Open the page of a run, of a file, or of the fixture of that name, written once."""

    def opened(run: Run | Path | str, link: str = "", width: int = 1280) -> Opened:
        if isinstance(run, str) and run not in pages:
            pages[run] = saved(request.getfixturevalue(run), tmp_path_factory.mktemp(run))
        path = pages[run] if isinstance(run, str) else run
        return open_page(saved(path, tmp_path) if isinstance(path, Run) else path, link, width)

    return opened


def test_texts_are_told_as_they_were_asked() -> None:
    plan = plan_of()
    first, *others = plan.conditions
    asked = replace(first, prompts=(Prompt("In 90 % of games & more, <think>."),))
    made = page(run_of([], replace(plan, conditions=(asked, *others))))
    assert "<pre>In 90 % of games &amp; more, &lt;think&gt;.</pre>" in made


def test_run_command_writes_a_page_with_headline_and_board_for_light_dark_and_paper(
    real: Path, show: Show
) -> None:
    opened = show(real / "report.html")
    assert opened.text(".lede") == headline(load_run(real))
    board = opened.page.locator("#samples .board")
    assert board.locator("use").count() >= 16
    assert (board.locator(".last").count(), board.locator("polygon.special").count()) == (2, 1)
    assert board.bounding_box()["width"] > 200  # type: ignore[index]
    color = "getComputedStyle(document.documentElement).backgroundColor"
    opened.page.emulate_media(color_scheme="light")
    assert opened.page.evaluate(color) == "rgb(251, 250, 247)"
    opened.page.emulate_media(color_scheme="dark")
    assert opened.page.evaluate(color) == "rgb(22, 24, 27)"
    opened.page.emulate_media(color_scheme="dark", media="print")
    assert opened.page.evaluate(color) == "rgb(255, 255, 255)"  # paper
    assert opened.page.locator(".filters").is_hidden()


def test_numbers_in_the_page_equal_those_in_run_json(real: Path, show: Show) -> None:
    facts = json.loads((real / "run.json").read_text())
    opened = show(real / "report.html")
    evaluate = opened.page.eval_on_selector_all
    shown = evaluate("[data-metric]", "all => all.map(data => [data.dataset.metric, data.value])")
    assert {name for name, _ in shown} == set(facts["metrics"])
    assert all(json.loads(value) == facts["metrics"][name] for name, value in shown)
    rows = evaluate(
        "table.all tbody tr",
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))",
    )
    for name, _, interval in rows:
        bounds = facts["intervals"].get(name)
        assert interval == (f"[{bounds['low']:.3f}, {bounds['high']:.3f}]" if bounds else "")
    counts = evaluate(
        "[data-outcome]", "all => all.map(data => [...data.dataset.outcome.split('.'), data.value])"
    )
    assert counts
    for condition, outcome, value in counts:
        assert int(value) == facts["outcomes"][condition][outcome]
    for note in facts["notes"]:
        assert note in opened.text(".notes")
    made = opened.text("#made")
    for told in (
        *(facts[name] for name in ("version", "rules", "reading", "started_at")),
        *(facts["dataset"]["origin"], facts["dataset"]["provenance"]),
        str(facts["settings"]["seed"]),
        *(f"{name} {version}" for name, version in facts["versions"].items()),
        *(condition["text"] for condition in facts["conditions"]),
    ):
        assert told in made


def test_every_setting_and_all_that_identifies_the_model_is_told() -> None:
    added = [("thinking_time", str, "a while")]
    more = make_dataclass("More", added, bases=(Settings,), frozen=True)
    run = run_of([], plan_of(settings=more(temperature=0.25)), identity={"stop_at": ["x", "y"]})
    made = page(run).partition('id="made"')[2]
    changed, _, defaults = made.partition("Settings at their defaults")
    assert "<dt>Temperature</dt>" in changed and "<dt>Reasoning effort</dt>" in defaults
    for each in fields(more):
        assert f"<dt>{each.name.replace('_', ' ').capitalize()}</dt>" in made
    assert "<dd>0.25</dd>" in made
    assert "<dd>a while</dd>" in made
    assert "<dt>Model’s stop at</dt><dd>[&#34;x&#34;, &#34;y&#34;]</dd>" in made


def test_a_third_condition_is_everywhere_on_the_page(show: Show) -> None:
    opened = show("three")
    assert "3 times" in opened.text("#moved")
    columns = opened.page.locator(".outcomes thead th").all_text_contents()
    assert columns == ["outcome", "meaning", "standard", "changed", "half told"]
    assert opened.text("[data-outcome='half_told.special']") == "1"
    assert "Half told" in opened.text("#made")
    assert opened.page.locator("#made details pre").last.text_content() == "<half>"
    third = "[data-condition=half_told]"
    assert opened.text(f"article{third} > pre") == "a2a3"
    assert opened.text(f".legend {third} b") == "a3 (a2a3)"
    assert opened.page.locator("#samples .board polygon.other-1").count() == 1
    assert opened.page.locator(".list li:first-child span").count() == 3
    opened.page.select_option("[name=half_told]", "unreadable")
    opened.expect_place("1 of 1")
    assert opened.text(f"article{third} > pre") == "<i>no</i>"
    linked = show("three", link="#half_told=special")
    assert linked.place == "1 of 1"
    colors = {
        linked.page.locator(f"article{name} h3").evaluate("h3 => getComputedStyle(h3).color")
        for name in (".standard", ".changed", third)
    }
    assert len(colors) == 3


def test_arrows_of_three_equal_answers_lie_side_by_side(three: Run, show: Show) -> None:
    answers = {reply: Answer("g1h3") for reply in three.samples[0].replies}
    run = run_of([(three.samples[0].position, answers)], three.plan)
    arrows = show(run).page.locator("#samples .board > polygon")
    shapes = arrows.evaluate_all("all => all.map(arrow => arrow.getAttribute('points'))")
    assert len(set(shapes)) == 3


def test_a_new_measure_is_in_the_table_and_among_every_number(
    monkeypatch: pytest.MonkeyPatch, show: Show
) -> None:
    patient = Measure(
        *("patience", "Patience", "it took its time"),
        part=lambda sample: 1,
        perfect=0.5,
        needs=("changed",),
    )
    monkeypatch.setitem(MEASURES, "patience", patient)
    opened = show(run_of([pair(POOL[0], "a2a3", "a2a3")]))
    row = opened.page.locator(".metrics tr", has_text="patience")
    assert "it took its time; perfect is\u00a00.5" in (row.locator("th").text_content() or "")
    assert row.locator("data").text_content() == "1.000"
    assert row.locator(".dot.changed").count() == 1
    assert "patience" in opened.text("table.all")


def test_filters_and_search_narrow_the_samples(habitual: Run, show: Show) -> None:
    opened = show("habitual")
    opened.expect_place("1 of 40")
    opened.page.select_option("[name=changed]", "unreadable")
    opened.expect_place("1 of 10")
    assert opened.text("article.changed pre") == "no idea"
    opened.page.select_option("[name=standard]", "special")
    opened.expect_place("1 of 10")
    opened.page.fill("[name=move]", "z9")
    opened.expect_place("no match")
    assert opened.page.locator("#samples .board").is_hidden()
    special = [(s.position.board(), s.position.special_moves[0]) for s in habitual.samples]
    for name in ("changed", "standard"):
        opened.page.select_option(f"[name={name}]", "")
    opened.page.fill("[name=move]", "f1b5")
    opened.expect_place(f"1 of {sum(uci == 'f1b5' for _, uci in special)}")
    opened.page.fill("[name=move]", "bb5")
    opened.expect_place(f"1 of {sum(notate(board, uci) == 'Bb5' for board, uci in special)}")
    assert opened.text(".legend .special b") == "Bb5"


def test_openings_and_bands_of_the_flow_link_to_their_samples(show: Show) -> None:
    opened = show("habitual")
    row = opened.page.locator(".groups tbody tr", has_text="1. e4 e5").first
    count = row.locator("td").first.text_content()
    opened.page.locator("details", has_text="By opening").last.locator("summary").click()
    row.locator("a").click()
    opened.expect_place(f"1 of {count}")
    assert opened.text(".game").startswith("1.\u00a0e4 e5")
    opened.page.locator(".bands a.is-unreadable").press("Enter")
    opened.expect_place("1 of 10")
    assert opened.text("article.changed .outcome") == "unreadable"


def test_any_forbidden_move_stands_beside_the_special_ones_in_every_group(show: Show) -> None:
    opened = show("other_bishop_moves")
    tables = opened.page.locator(".groups:has(thead small)")
    assert tables.count() == 3
    for folded in opened.page.locator("details:has(.groups) summary").all():
        folded.click()
    for table in tables.all():
        heads = table.locator("thead th").all_text_contents()
        assert heads[2:4] == ["standard any forbidden", "changed any forbidden"]
        cells = table.locator("tbody tr").first.locator("td").all_inner_texts()
        shares = [cell.split() for cell in cells[1:3]]
        assert shares == [["100.0%", "100.0%"], ["0.0%", "100.0%"]]
        for width in (320, 1440):
            opened.page.set_viewport_size({"width": width, "height": 900})
            ends = table.locator("thead small").evaluate_all(
                """all => all.map(small => {
                    const range = document.createRange();
                    range.selectNodeContents(small);
                    const box = range.getBoundingClientRect();
                    return [box.left, box.right];
                })"""
            )
            assert ends[0][1] < ends[1][0] < ends[1][1] <= width


def test_arrow_keys_step_through_samples_and_leave_text_fields_alone(
    habitual: Run, show: Show
) -> None:
    opened = show("habitual")
    keyboard = opened.page.keyboard
    keyboard.press("ArrowLeft")
    opened.expect_place("1 of 40")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    opened.expect_place("3 of 40")
    third = habitual.samples[2].position.id
    assert opened.text(".identity").startswith(f"sample {third}")
    address = opened.page.evaluate("location.hash")
    assert address == f"#sample={third}"
    opened.page.focus("[name=move]")
    keyboard.press("ArrowRight")
    opened.expect_place("3 of 40")
    opened.page.click("[name=previous]")
    opened.expect_place("2 of 40")
    linked = show("habitual", link=address)
    assert linked.place == "3 of 40"
    assert third in linked.text(".identity")
    assert linked.page.evaluate("scrollY") > 500


def test_filters_are_in_the_address_and_back_and_forward_follow_them(show: Show) -> None:
    opened = show("habitual")
    opened.page.select_option("[name=changed]", "unreadable")
    opened.page.locator("[name=move]").press_sequentially("f1b5")
    address, found = opened.page.evaluate("location.hash"), opened.place
    assert address == "#changed=unreadable&move=f1b5"
    link = opened.page.locator(".list a").first.get_attribute("href")
    assert link and link.startswith(f"{address}&sample=")
    opened.page.go_back()  # the four letters are one step
    opened.expect_place("1 of 10")
    opened.page.go_back()
    opened.expect_place("1 of 40")
    assert opened.page.input_value("[name=changed]") == ""
    opened.page.go_forward()
    opened.page.go_forward()
    opened.expect_place(found)
    opened.page.click("[name=next]")
    linked = show("habitual", link=opened.page.evaluate("location.hash"))
    assert linked.place == opened.place == found.replace("1", "2", 1)
    assert linked.page.input_value("[name=changed]") == "unreadable"


def test_a_link_whose_filters_leave_out_what_it_shows_has_no_filters(
    habitual: Run, show: Show
) -> None:
    opened = show("habitual", link="#changed=refused")
    opened.expect_place("1 of 40")
    assert opened.page.locator("[name=changed] option:checked").text_content() == "any outcome"
    link = f"#changed=unreadable&sample={habitual.samples[1].position.id}"
    assert show("habitual", link=link).place == "2 of 40"


def test_the_list_is_there_before_it_is_scrolled_to_and_on_paper(show: Show) -> None:
    opened = show("habitual", width=1000)
    rows = opened.page.locator(".list li")
    assert rows.last.inner_text().split()[1:] == ["special", "unreadable"]
    left_edges = "all => all.map(cell => cell.getBoundingClientRect().left)"
    heads = opened.page.locator(".heads > *").evaluate_all(left_edges)
    assert heads == rows.last.locator("a > *").evaluate_all(left_edges)
    opened.page.emulate_media(media="print")
    tops = rows.evaluate_all("all => all.map(row => row.getBoundingClientRect().top)")
    paper = opened.page.locator(".list").bounding_box()
    assert paper and all(paper["y"] <= top < paper["y"] + paper["height"] for top in tops)
    assert opened.text(".on-paper").startswith("40 of 40 samples, each with")


@pytest.mark.parametrize("eval", get_args(Eval))
def test_the_tiles_are_the_numbers_that_the_eval_is_about(eval: Eval) -> None:
    made = page(run_of([pair(POOL[0], "a2a3", "a2a3")], plan_of(1, eval=eval)))
    titles = re.findall(r'<div class="tile">\s*<dt>(.*)</dt>', made)
    readings = re.findall(r'class="reading">(.*)</dd>', made)
    scales = re.findall(r'<span class="axis-labels">(.*?)</span>', made)[: len(titles)]
    shares = ["Special move, changed rules", "Special move, standard rules"]
    uptake, signed, share = (
        "".join(f"<i>{label}</i>" for label in labels)
        for labels in (("−100%", "0%", "100%"), ("−1", "0", "1"), ("0%", "50%", "100%"))
    )
    if eval == "all_diagonal":
        assert titles == ["Rule uptake", *shares, "Legal answers, changed rules"]
        assert readings == [UPTAKE]
        assert scales == [uptake, share, share, share]
    else:
        assert titles == ["Rule uptake", "Impact factor", *reversed(shares)]
        assert readings == [UPTAKE, IMPACT]
        assert scales == [uptake, signed, share, share]


def test_replies_and_thoughts_are_text_and_never_act(show: Show) -> None:
    asked = [
        pair(
            position,
            thinking(words, words, 5),
            thinking(words[::-1] + " e2e4", words[::-1], 5),
        )
        for position, words in zip(POOL, [*HOSTILE, "a\nb"], strict=False)
    ]
    opened = show(run_of(asked))
    for words in (*HOSTILE, "a\nb"):
        assert opened.text("article.standard > pre") == visible(words)
        assert opened.text("article.changed > pre") == visible(words[::-1])
        assert opened.text("article.standard details pre") == visible(words)
        assert opened.text("article.changed details pre") == visible(words[::-1] + " e2e4")
        assert not set(opened.text("#samples")) & set(
            "\u202e\u2066\u2069\u202c\u200f\ufeff\x00\x1b"
        )
        opened.page.keyboard.press("ArrowRight")
    assert "⟨U+202E⟩⟨U+2066⟩evil⟨U+2069⟩" in visible(BIDI)
    assert opened.page.locator("img, iframe, object, [onload], [onerror]").count() == 0
    assert opened.page.locator("script").count() == 2


def test_names_notes_errors_and_sources_are_text_too(show: Show) -> None:
    evil = "</title><script>window.hacked = 1</script>\u202e\ud800"
    position = replace(POOL[0], source="javascript:window.hacked=1")
    lost = Answer("", stop_reason="error", error=evil)
    answered = Answer("e2e4", version=evil, usage=Usage(1, 1))
    run = run_of(
        [pair(position, answered, answered), pair(position, lost, lost)],
        plan_of(2, wordings=(evil,)),
        identity={evil: evil, "list": [evil]},
        notes=[evil],
        versions={evil: evil},
    )
    names = ("version", "endpoint", "model", "started_at", "protocol")
    run = replace(run, **dict.fromkeys(names, evil))  # type: ignore[arg-type]
    assert not set(page(run)) & set("\u202e\ud800")
    opened = show(run)
    assert opened.page.title().startswith(visible(evil))
    assert opened.text("h1") == visible(evil)
    assert opened.page.locator(".identity a").count() == 0
    opened.page.keyboard.press("ArrowRight")
    assert opened.text("article.standard .remark") == visible(evil)


def test_a_run_without_reasoning_does_not_speak_of_it(habitual: Run) -> None:
    without = page(habitual).partition("<body>")[2].partition("<script")[0]
    assert "hought" not in without and "hinking" not in without


def test_reasoning_is_counted_and_folded_beside_the_board_and_samples_are_found_by_it(
    thoughtful: Run, show: Show
) -> None:
    opened = show("thoughtful")
    row = opened.page.locator(".metrics tr", has_text="changed_thinking_tokens")
    around = thoughtful.results.intervals["changed_thinking_tokens"]
    assert row.locator("data").text_content() == "625"
    assert f"[{around.low:,.0f}, {around.high:,.0f}]" in (row.text_content() or "")
    assert row.locator(".whisker.changed").count() == 1
    assert "temptation_rate" in opened.text("#metrics")
    position = thoughtful.samples[0].position
    thoughts = opened.page.locator("article.changed details pre")
    assert thoughts.is_hidden()
    summary = "article.changed details summary"
    assert opened.text(summary) == "Reasoning: 1,200 tokens, mentions the special move"
    opened.page.click(summary)
    assert thoughts.is_visible()
    special = notate(position.board(), position.special_moves[0])
    assert thoughts.text_content() == f"Once **{special}**!"
    opened.page.keyboard.press("ArrowRight")
    assert opened.text(summary) == "Reasoning: 50 tokens"
    assert thoughts.text_content() == "Nothing."
    options = opened.page.locator("[name=thoughts] option").all_text_contents()
    assert options == ["any reasoning", "mentions the special move (4)", "longer reasoning (6)"]
    opened.page.select_option("[name=thoughts]", "special")
    opened.expect_place("1 of 4")
    opened.page.select_option("[name=thoughts]", "longer")
    opened.expect_place("1 of 6")
    opened.page.select_option("[name=changed]", "unreadable")
    opened.expect_place("1 of 6")
    assert show("thoughtful", link="#thoughts=special").place == "1 of 4"


def test_a_move_in_the_thoughts_is_drawn_where_it_is_pointed_at(show: Show) -> None:
    thoughts = "No Bb5, not O-O-O; Bg3? (f1b5, b5) a1a1 h2h4!"
    run = run_of([pair(AFTER_E4, "f1b5", thinking(thoughts, "d2d4", 9))])
    opened = show(run)
    opened.page.click("article.changed summary")
    moves = opened.page.locator("article.changed .pointer")
    assert moves.all_text_contents() == ["Bb5", "Bg3", "f1b5", "h2h4"]
    uci = moves.evaluate_all("all => all.map(move => move.dataset.uci)")
    assert uci == ["f1b5", "f1g3", "f1b5", "h2h4"]
    assert opened.page.locator(".pointer.special").all_text_contents() == ["Bb5", "f1b5"]
    assert opened.page.locator("article.changed details pre").text_content() == thoughts
    pointed = opened.page.locator(".board .pointed")
    assert pointed.count() == 0
    moves.nth(1).hover()
    assert pointed.count() == 1
    opened.page.hover("h1")
    assert pointed.count() == 0
    moves.nth(3).focus()
    assert pointed.count() == 1


def test_thoughts_that_are_counted_and_not_shown_are_told_of(show: Show) -> None:
    run = run_of([pair(POOL[0], "a2a3", thinking("", "a2a3", 70))])
    opened = show(run)
    assert opened.page.locator("article.changed details").is_hidden()
    assert opened.text("article.changed .remark").endswith(" 72 out, 70 of them reasoning")
    assert opened.text("article.standard .remark") == "stop, 0 tokens in, 0 out"


def test_long_texts_are_cut_in_the_middle_and_say_so(show: Show) -> None:
    reply = "a" * 5_000 + '<"\n\u202e' * 500
    thoughts = "a" * 30_000 + " f1b5 " + "b" * 30_000 + " g1f3"
    opened = show(run_of([pair(AFTER_E4, reply, thinking(thoughts, "", 9))]))
    shown = opened.text("article.standard > pre")
    assert shown.startswith("a" * 1_500 + "…")
    assert shown.endswith("…" + visible('<"\n\u202e') * 375)
    assert "4,000 characters omitted" in shown
    shown = opened.text("article.changed details pre")
    assert shown.startswith("a" * 1_500 + "…")
    assert "57,011 characters omitted" in shown
    assert opened.page.locator(".pointer").all_text_contents() == ["g1f3"]
    assert (
        opened.text("article.changed summary") == "Reasoning: 9 tokens, mentions the special move"
    )
    fine = " ".join(opened.text("#samples .fine").split())
    assert "Replies and reasoning are shown" in fine and "longer than 3,000 characters" in fine


def test_a_thousand_samples_with_long_thoughts_stay_below_ten_megabytes() -> None:
    answer = thinking("Maybe f1b5, e4e5 or Nf3 and then castle (O-O)? " * 600, "a2a3", 7_000)
    run = run_of([pair(position, answer, answer) for position in POOL[:20]])
    assert len(page(run).encode()) - len(page(run_of([])).encode()) < 10_000_000 * 20 / 1_000


def test_policy_stops_scripts_and_requests_whatever_gets_into_the_page(
    browser: Browser, real: Path
) -> None:
    sent: list[str] = []
    blocked: list[str] = []
    window = browser.new_page()
    window.on("requestfinished", lambda request: sent.append(request.url))
    window.on("requestfailed", lambda request: blocked.append(str(request.failure)))
    window.goto((real / "report.html").as_uri())
    window.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            document.body.append(script);
            document.body.insertAdjacentHTML(
                "beforeend", '<img src="http://127.0.0.1:9/x" onerror="window.hacked = 1">');
            return fetch("http://127.0.0.1:9/x").catch(() => null);
        }"""
    )
    assert window.evaluate("window.hacked") is None
    assert sent == [(real / "report.html").as_uri()]
    assert set(blocked) == {"csp"}
    window.close()


def test_a_thousand_samples_open_in_two_seconds(tmp_path: Path, show: Show) -> None:
    path = saved(of_all_kinds(1000), tmp_path)
    assert path.stat().st_size < 2_000_000

    def seconds() -> float:
        started = monotonic()
        opened = show(path)
        assert opened.page.locator("#samples .board use").count() > 0
        took = monotonic() - started
        opened.expect_place("1 of 1,000")
        return took

    assert any(seconds() < 2 for _ in range(4))  # other tests may slow one of them down


def test_diagonal_run_draws_every_special_move_and_counts_earlier_bishop_moves(show: Show) -> None:
    positions = shipped_pool("diagonal")[:5]
    asked = [pair(p, p.special_moves[0], p.special_moves[-1]) for p in positions]
    opened = show(run_of(asked, plan_of(5, eval="all_diagonal")))
    assert opened.text(".lede").startswith("model-1 moves a bishop diagonally in 100% of 5 ")
    assert "earlier bishop moves" in opened.text("#where")
    for position in positions:
        arrows = opened.page.locator("#samples .board polygon.special").count()
        assert arrows == len(position.special_moves)
        opened.page.keyboard.press("ArrowRight")


def test_the_same_position_twice_has_two_links(show: Show) -> None:
    run = run_of([pair(POOL[0], "a2a3", "a2a3")] * 2)
    show(run, link=f"#sample={POOL[0].id}-2").expect_place("2 of 2")


def test_runs_with_little_in_them_have_a_page(show: Show) -> None:
    position = Position(1, (), ("f1b5",))
    lost, refused = Answer("", stop_reason="error", error="gone"), Answer("", stop_reason="refused")
    scenarios: dict[str, list[tuple[str | Answer, str]]] = {
        "no samples": [],
        "no habit": [("a2a3", "a2a3")],
        "all failed": [(lost, "a2a3")],
        "odd moves": [("Q@e4", "e1e8"), (refused, "e7e8n")],
    }
    for name, answers in scenarios.items():
        opened = show(run_of([pair(position, *both) for both in answers]))
        assert opened.text(".tile .value >> nth=1") == "–", name
        opened.expect_place(f"1 of {len(answers)}" if answers else "no match")


def test_pages_fit_all_screens(show: Show) -> None:
    page = show("habitual").page
    check_fits(page)
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        board = page.locator("#rule .board").bounding_box()
        assert board and board["width"] > 140
        assert board["y"] + board["height"] < height  # the changed rule is above the fold
    check_fits(show("other_bishop_moves").page)
    page = show("three").page
    assert page.locator(".failures li").count() > 0
    for summary in page.locator("#where summary, #made summary").all():
        summary.click()
    check_fits(page, tables_from=390)


def test_failures_come_first_and_link_to_their_samples(show: Show) -> None:
    opened = show("habitual")
    items = opened.page.locator(".failures li")
    assert items.all_inner_texts() == [
        "20 of 40 kept the habit: show them",
        "3 of 40 played another illegal move: show them",
        "10 of 40 contain no readable move: show them",
    ]
    items.first.locator("a").click()
    opened.expect_place("1 of 20")
    order = [opened.page.locator(f"#{name}").bounding_box() for name in ("samples", "where")]
    assert order[0] and order[1] and order[0]["y"] < order[1]["y"]
    assert opened.page.locator(".group-of .groups").first.is_hidden()
    opened.page.locator("nav a", has_text="The prompts").click()
    assert opened.page.locator("#prompts").is_visible()
    colors = opened.page.locator(".tile .value").evaluate_all(
        "all => [...new Set(all.map(value => getComputedStyle(value).color))]"
    )
    assert colors == [opened.page.evaluate("getComputedStyle(document.body).color")]


def test_commands_write_pages(tmp_path: Path) -> None:
    run = run_of([pair(POOL[0], "1. a3", "f1b5")])
    folders = [tmp_path / "a", tmp_path / "b"]
    pages = [folder / "report.html" for folder in folders]
    for folder in folders:
        save_run(run, folder)
    loaded = load_run(folders[0])
    assert run_json(loaded) == run_json(run) and page(loaded) == page(run)
    assert cdta("report", *folders, code=0).stdout.split() == list(map(str, pages))
    assert [file.read_text(encoding="utf-8") for file in pages] == [page(run)] * 2
    assert "-o takes one run, not 2" in cdta("report", *folders, "-o", "one.html", code=2).stderr
    cdta("rescore", folders[0], "--reading", "exact", code=0)
    exact = tmp_path / "a-exact"
    assert (exact / "report.html").read_text(encoding="utf-8") == page(load_run(exact))
    assert load_run(folders[0]).plan.reading == "lenient"
