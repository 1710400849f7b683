"""The report of a run, opened from disk in a real browser, and its diagram of the rule."""

import json
import re
from dataclasses import replace
from pathlib import Path

import chess
import pytest
from playwright.sync_api import Browser

from browser import Opener, OpenPage, check_accessible, check_fits
from cant_do_that_anymore import Answer, Position, Rules, rules_named
from cant_do_that_anymore.formatting import visible
from cant_do_that_anymore.habits.chess.picture import rule_picture
from cant_do_that_anymore.providers.base import Usage
from cant_do_that_anymore.report.html import write_text
from cant_do_that_anymore.report.run_page import page
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.run import Run
from cant_do_that_anymore.runs.storage import load_run
from custom_rules import NoEnPassant
from planted_models import HALF_UNREADABLE
from testing import (
    POOL,
    PositionAnswers,
    cdta,
    measure,
    plan_of,
    positions_of,
    run_from_answers,
)

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
    "a\nb",
]
AFTER_E4 = Position(1, ("e2e4", "c7c5"), ("f1b5",))
EN_PASSANT = Position(0, ("e2e4", "a7a6", "e4e5", "d7d5"), ("e5d6",))


def sample(position: Position, standard: str | Answer, changed: str | Answer) -> PositionAnswers:
    """A position with its replies under the standard and the changed rules."""
    answers = [Answer(reply) if isinstance(reply, str) else reply for reply in (standard, changed)]
    return position, dict(zip(("standard", "changed"), answers, strict=True))


def reasoned(reasoning: str, text: str, tokens: int) -> Answer:
    return Answer(text, usage=Usage(1, tokens + 2, tokens), reasoning=reasoning)


@pytest.fixture(scope="module")
def mixed() -> Run:
    """Samples that keep the habit, adapt, keep it or are unreadable, in turn."""
    samples = []
    for number, position in enumerate(POOL[:1000]):
        usual = position.usual[0]
        samples.append(sample(position, usual, (usual, "a2a3", usual, "no idea")[number % 4]))
    return run_from_answers(samples)


@pytest.fixture(scope="module")
def mixed_page(mixed: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_report(mixed, tmp_path_factory.mktemp("mixed"))


@pytest.fixture(scope="module")
def random_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run made with the command."""
    folder = tmp_path_factory.mktemp("real") / "run"
    cdta("run", "--model", "cdta/random", "-n", 12, "--quiet", "--out", folder, code=0)
    return folder


def test_a_report_shows_the_files_of_its_run_in_light_dark_and_print(
    random_run: Path, open_page: Opener
) -> None:
    opened = open_page(random_run / "report.html")
    assert opened.text(".lede") == headline(load_run(random_run))
    board = opened.page.locator("#samples .board")
    assert board.locator("use").count() >= 16
    assert (board.locator(".last").count(), board.locator("polygon.usual").count()) == (2, 1)
    run_data = json.loads((random_run / "run.json").read_text())
    metrics = values_of(opened, "metric")
    assert {"delta", "avg_num_previous_moves"} <= metrics.keys()
    assert all(json.loads(value) == run_data[name]["value"] for name, value in metrics.items())
    outcomes = values_of(opened, "outcome")
    assert outcomes
    for key, value in outcomes.items():
        condition, outcome = key.split(".")
        assert int(value) == run_data["outcomes"][condition][outcome]
    prompts = [each.values() for each in run_data["prompts"].values()]
    texts = [wording["text"] for wordings in prompts for wording in wordings]
    names = ("version", "rules", "started_at", "protocol")
    for text in (*texts, *(run_data[name] for name in names), run_data["dataset"]["provenance"]):
        assert text in opened.text("#made")
    assert all(note in opened.text(".notes") for note in run_data["notes"])
    for scheme, media, color in (
        ("light", "screen", "rgb(251, 250, 247)"),
        ("dark", "screen", "rgb(22, 24, 27)"),
        ("dark", "print", "rgb(255, 255, 255)"),  # white on paper
    ):
        opened.page.emulate_media(color_scheme=scheme, media=media)  # type: ignore[arg-type]
        background = "getComputedStyle(document.documentElement).backgroundColor"
        assert opened.page.evaluate(background) == color
    assert opened.page.locator(".filters").is_hidden()


def values_of(opened: OpenPage, kind: str) -> dict[str, str]:
    """The values behind the numbers of a kind, by name."""
    pairs = f"all => all.map(data => [data.dataset.{kind}, data.value])"
    return dict(opened.page.locator(f"[data-{kind}]").evaluate_all(pairs))


def test_samples_are_reached_by_keys_links_and_filters(
    mixed: Run, mixed_page: Path, open_page: Opener
) -> None:
    """Failures and the bands of the chart link to filters, which are in the address."""
    assert mixed_page.stat().st_size < 2_000_000
    opened = open_page(mixed_page)
    page = opened.page
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    opened.expect_current_sample("3 of 1,000")
    page.focus("[name=move]")
    page.keyboard.press("ArrowRight")  # in a text field
    opened.expect_current_sample("3 of 1,000")
    url_hash = page.evaluate("location.hash")
    assert url_hash == f"#sample={mixed.samples[2].item.id}"
    linked = open_page(mixed_page, link=url_hash)
    linked.expect_current_sample("3 of 1,000")
    assert linked.page.evaluate("scrollY") > 500
    # Filters that exclude the linked sample are dropped.
    link = f"#changed=refused&sample={mixed.samples[1].item.id}"
    open_page(mixed_page, link=link).expect_current_sample("2 of 1,000")

    page.select_option("[name=changed]", "unreadable")
    page.locator("[name=move]").press_sequentially("f1b5")
    usual = [p.usual for p in positions_of(mixed.samples)[3::4]]
    opened.expect_current_sample(f"1 of {usual.count(('f1b5',))}")
    assert page.evaluate("location.hash") == "#changed=unreadable&move=f1b5"
    page.go_back()  # typing the four letters was one step
    opened.expect_current_sample("1 of 250")
    page.go_back()
    opened.expect_current_sample("3 of 1,000")
    page.locator(".bands a.is-unreadable").press("Enter")
    opened.expect_current_sample("1 of 250")
    items = page.locator(".failures li")
    assert items.all_inner_texts()[::2] == [
        "500 of 1,000 usual (the usual move: the habit): show them",
        "250 of 1,000 unreadable (no move, or more than one, could be read): show them",
    ]
    items.first.locator("a").click()
    opened.expect_current_sample("1 of 500")


def test_all_texts_are_escaped(tmp_path: Path, open_page: Opener) -> None:
    evil = "</title><script>window.hacked = 1</script>\u202e\ud800"
    failed = Answer("", stop_reason="error", error=evil)
    positions = [replace(position, source="javascript:window.hacked=1") for position in POOL]
    samples = [
        sample(position, reasoned(text, text, 5), text[::-1])
        for position, text in zip(positions, HOSTILE, strict=False)
    ]
    run = run_from_answers(
        [*samples, sample(POOL[50], failed, failed)],
        plan_of(wordings=(evil,)),
        identity={evil: evil, "list": [evil]},
        notes=[evil],
        versions={evil: evil},
    )
    run_fields = ("version", "endpoint", "model", "started_at", "protocol")
    run = replace(run, **dict.fromkeys(run_fields, evil))  # type: ignore[arg-type]
    assert not set(page(run)) & set("\u202e\ud800")
    opened = open_page(save_report(run, tmp_path))
    assert opened.page.title().startswith(visible(evil))
    assert opened.text("h1") == visible(evil)
    for text in HOSTILE:
        assert opened.text("article.standard > pre") == visible(text)
        assert opened.text("article.standard details pre") == visible(text)
        assert opened.text("article.changed > pre") == visible(text[::-1])
        assert not set(opened.text("#samples")) & (set(BIDI) - set(visible(BIDI)))
        assert opened.page.locator(".identity a").count() == 0
        opened.page.keyboard.press("ArrowRight")
    assert opened.text("article.standard .remark") == visible(evil)
    assert "⟨U+202E⟩⟨U+2066⟩evil⟨U+2069⟩" in visible(BIDI)
    assert opened.page.locator("img, iframe, object, [onload], [onerror]").count() == 0
    assert opened.page.locator("script").count() == 2


def test_content_security_policy_blocks_scripts_and_requests(
    browser: Browser, random_run: Path
) -> None:
    address = (random_run / "report.html").as_uri()
    sent: list[str] = []
    blocked: list[str] = []
    window = browser.new_page()
    window.on("requestfinished", lambda request: sent.append(request.url))
    window.on("requestfailed", lambda request: blocked.append(str(request.failure)))
    window.goto(address)
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
    assert (sent, set(blocked)) == ([address], {"csp"})
    window.close()


def test_reasoning_is_counted_folded_and_draws_its_moves(
    mixed: Run, tmp_path: Path, open_page: Opener
) -> None:
    reasoning = f"No Bb5, not O-O-O; Bg3? (f1b5, b5) a1a1 h2h4! {'b' * 5_000} g1f3"
    reply = "a" * 5_000 + '<"\n\u202e' * 500
    samples = [sample(AFTER_E4, reply, reasoned(reasoning, "d2d4", 1_200))]
    opened = open_page(save_report(run_from_answers(samples), tmp_path))
    sentence = "Mean reasoning tokens: 0 under standard rules and 1,200 under the changed rules, a "
    assert sentence in opened.text("header .fine >> nth=0")
    text = opened.page.locator("article.changed details pre")
    assert text.is_hidden()
    summary = "article.changed details summary"
    assert opened.text(summary) == "Reasoning: 1,200 tokens"
    opened.page.click(summary)
    assert "characters omitted" in str(text.text_content())
    moves = opened.page.locator("article.changed .pointer")
    assert moves.all_text_contents() == ["Bb5", "Bg3", "f1b5", "h2h4", "g1f3"]
    assert opened.page.locator(".pointer.usual").all_text_contents() == ["Bb5", "f1b5"]
    arrow = opened.page.locator(".board .pointed")
    moves.nth(1).hover()
    assert arrow.count() == 1
    opened.page.hover("h1")
    assert arrow.count() == 0
    long_reply = opened.text("article.standard > pre")
    assert long_reply.startswith("a" * 1_500 + "…") and "4,000 characters omitted" in long_reply
    assert long_reply.endswith("…" + visible('<"\n\u202e') * 375)
    body = page(mixed).partition("<body>")[2].partition("<script")[0]
    assert "easoning" not in body  # without any


def test_sparse_and_repeated_samples_have_a_report(tmp_path: Path, open_page: Opener) -> None:
    failed = Answer("", stop_reason="error", error="gone")
    refused = Answer("", stop_reason="refused")
    odd: list[tuple[str | Answer, str]] = [(failed, "a2a3"), ("Q@e4", "e1e8"), (refused, "e7e8n")]
    position = Position(1, (), ("f1b5",))
    for answers in ([], odd):
        run = run_from_answers([sample(position, *replies) for replies in answers])
        opened = open_page(save_report(run, tmp_path))
        assert opened.text(".tile .value >> nth=0") == "–"
        opened.expect_current_sample(f"1 of {len(answers)}" if answers else "no match")
    repeated = open_page(tmp_path / "report.html", link=f"#sample={position.id}-2")
    repeated.expect_current_sample("2 of 3")


def test_a_diagnosis_has_its_questions_and_controls_and_fits_all_screens(
    tmp_path: Path, open_page: Opener
) -> None:
    run = measure(HALF_UNREADABLE, diagnose=True, temperature=0.0, n=20)
    opened = open_page(save_report(run, tmp_path))
    page, sample = opened.page, run.samples[0]
    for condition in run.plan.conditions:
        panel = f"article[data-condition={condition.name}]"
        assert opened.text(f"{panel} pre") == sample.answers[condition.name].text
        question = condition.question(sample.item)
        if question.about:
            assert f"is {question.about} a legal move" in opened.text(f"{panel} .asked q")
    assert "Remember the rules" in opened.text("article[data-condition=reminded] .asked")
    assert page.locator("article[data-condition=placebo] q").is_hidden()
    assert "{move}" in opened.text("#made")
    page.select_option("[name=group]", "control")
    opened.expect_current_sample("1 of 20")
    assert "which stays legal" in opened.text(".legend .usual b")
    panels = page.locator("article:visible")
    names = panels.evaluate_all("all => all.map(panel => panel.dataset.condition)")
    assert names == ["standard", "changed"]
    linked = open_page(tmp_path / "report.html", f"#sample={run.controls[3].item.id}")
    linked.expect_current_sample("4 of 20")
    for folded in page.locator("#made summary").all():
        folded.click()
    check_fits(page, tables_from=390)
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        rule = page.locator("#rule .board").bounding_box()
        assert rule and rule["width"] > 140
        assert rule["y"] + rule["height"] < height  # above the fold
    check_accessible(page)


def squares(pattern: str, board: str) -> str:
    """Names of the squares with marks that match the pattern."""
    corners = [(float(x), float(y)) for x, y in re.findall(pattern, board)]
    names = [chess.square_name(chess.square(int(x // 45), 7 - int(y // 45))) for x, y in corners]
    return " ".join(sorted(names))


def marks(rules: Rules) -> tuple[str, str, str]:
    """The squares of new and of lost moves, and the forbidden move of the example."""
    diagram = rule_picture(rules)
    assert diagram
    new = r'<circle cx="([\d.]+)" cy="([\d.]+)" r="\d+" class="now new(?: ring)?"'
    lost = r'<path d="M([\d.]+) ([\d.]+)l[^"]*" class="lost"'
    return squares(new, diagram.board), squares(lost, diagram.board), diagram.move


def test_dots_mark_new_moves_and_crosses_lost_moves() -> None:
    bishops = ("a3 a5 b6 d2 d6 e3 e5", "b5 d3 d5 e2 e6 f1 f7", "11. Bxb5")
    assert marks(rules_named("bishops-as-knights")) == bishops
    assert marks(rules_named("no-castling")) == ("", "c1 g1", "12. O-O-O")


def test_a_sample_is_shown_if_the_example_game_has_no_usual_move() -> None:
    plan = plan_of(change=NoEnPassant())
    answers = [(EN_PASSANT, {"standard": "usual", "changed": "legal"})]
    text = page(run_from_answers(answers, plan))  # type: ignore[arg-type]
    assert "Usual move, now illegal: e5d6" in text
    assert 'id="rule"' not in page(run_from_answers([], plan))


def save_report(run: Run, folder: Path) -> Path:
    path = folder / "report.html"
    return write_text(page(run), path)
