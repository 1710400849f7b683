"""A static site of experiments and runs: links that lead somewhere, and nothing of others."""

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from cant_do_that_anymore.errors import BadInput
from cant_do_that_anymore.evaluation.folder import save_run
from cant_do_that_anymore.game.position import shipped_pool
from cant_do_that_anymore.report.page import save_with_page
from cant_do_that_anymore.report.site import write_site
from processes import cdta
from runs import run_of

RUN = run_of([(p, {"standard": "special", "changed": "legal"}) for p in shipped_pool("pool")[:3]])
EVIL = '<script>window.hacked = 1</script>"><img src=x onerror=alert(1)>'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment of two runs, one of a hostile name, and two runs of one name without pages."""
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine & <b>"
    for name in ("a-all-1", "b #2?"):
        save_with_page(replace(RUN, model=EVIL if "#" in name else "a"), mine / name)
    (mine / "index.html").write_text('<a href="b%20%232%3F/report.html">b</a>')
    (mine / "results.csv").write_text("model\n")
    verdicts = [
        {"eval": "all", "rules": "no-castling", "verdict": verdict}
        for verdict in ("a leads.", EVIL)
    ]
    (mine / "results.json").write_text(json.dumps({"verdicts": verdicts}))
    (mine / "bars.png").write_bytes(b"\x89PNG")
    (mine / "experiment.toml").write_text("base_url = 'http://gpu/v1'")
    (mine / "link.png").symlink_to("/etc/hostname")
    for room in ("x", "y"):
        save_run(RUN, tmp_path / room / "Run")
    return tmp_path


def files_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def links_in(page: Path) -> list[Path]:
    found = re.findall(r'href="([^"#]+)"', page.read_text())
    return [page.parent / unquote(unescape(link)) for link in found]


def test_a_site_has_all_pages_and_data_and_every_link_leads_to_one(place: Path) -> None:
    done = cdta("site", "mine & <b>", "x", "y/Run", "-o", "public")
    assert (done.returncode, done.stdout) == (0, "public/index.html\n"), done.stderr
    public = place / "public"
    [experiment] = (public / "experiments").iterdir()
    of_run = {"report.html", "run.json", "samples.jsonl"}
    at = experiment.relative_to(public).as_posix()
    assert files_in(public) == {
        *("index.html", ".cdta-site.json"),
        *(f"{at}/{name}" for name in ("index.html", "results.csv", "results.json", "bars.png")),
        *(f"{at}/{run}/{name}" for run in ("a-all-1", "b #2?") for name in of_run),
        *(f"runs/{run}/{name}" for run in ("Run", "Run-2") for name in of_run),
    }
    links = [*links_in(public / "index.html"), *links_in(experiment / "index.html")]
    assert len(links) == 1 + 2 + 4 * 3 + 1
    for link in links:
        assert link.is_file()
        assert link.resolve().is_relative_to(public)
    assert not (place / "x" / "Run" / "report.html").exists()  # what is shown stays as it was


def test_the_index_tells_verdicts_and_headlines_and_hostile_names_stay_text(place: Path) -> None:
    write_site(["mine & <b>", "x"], place / "public")
    page = (place / "public" / "index.html").read_text()
    assert "<p>all, no-castling: a leads.</p>" in page
    assert "<script" not in page
    assert "<img" not in page
    assert unescape(page).count(EVIL) == 2
    around = RUN.results.intervals["variant_impact_factor"]
    shown = f"-1.000 [{around.low:.3f}, {around.high:.3f}]".replace("-", "−")
    assert page.count(shown) == 3
    assert page.count("2026-01-01") == 3
    assert "http" not in re.sub(r"<style>.*?</style>|http-equiv", "", page, flags=re.DOTALL)


def test_a_second_time_gives_the_same_and_what_is_gone_goes_and_nothing_else(place: Path) -> None:
    public = place / "public"
    write_site(["mine & <b>", "x", "y"], public)
    before = {name: (public / name).read_bytes() for name in files_in(public)}
    write_site(["mine & <b>", "x", "y"], public)
    assert before == {name: (public / name).read_bytes() for name in files_in(public)}
    (public / "CNAME").write_text("example.org")
    (public / "runs" / "Run" / "own.txt").write_text("mine")
    mark = public / ".cdta-site.json"
    mark.write_text(json.dumps([*json.loads(mark.read_text()), "../y/Run/run.json", "/etc/x"]))
    write_site(["y"], public)
    assert files_in(public) == {
        *(".cdta-site.json", "index.html", "CNAME", "runs/Run/own.txt"),
        *(f"runs/Run/{name}" for name in ("report.html", "run.json", "samples.jsonl")),
    }
    assert not (public / "experiments").exists()
    assert (place / "y" / "Run" / "run.json").exists()


def test_a_folder_of_somebody_else_is_refused_and_a_site_is_no_experiment(place: Path) -> None:
    with pytest.raises(BadInput, match=r"'x' is no site of cdta's"):
        write_site(["y"], Path("x"))
    assert files_in(place / "x") == {"Run/run.json", "Run/samples.jsonl"}
    write_site(["y"], Path("public"))
    with pytest.raises(BadInput, match=r"'public' is a site itself"):
        write_site(["public"], Path("other"))
    write_site(["."], Path("public"))  # which lies in there
    assert len(list((place / "public" / "runs").iterdir())) == 2
    assert len(list((place / "public" / "experiments").iterdir())) == 1


def test_a_site_in_its_own_experiment_is_no_part_of_it_and_what_is_named_twice_is_there_once(
    place: Path,
) -> None:
    mine = Path("mine & <b>")
    for _ in range(2):
        write_site([mine, place / mine, mine / "a-all-1"], mine / "public")
    made = files_in(mine / "public")
    assert sum(name.endswith("run.json") for name in made) == 2
    assert sum(name.endswith("results.csv") for name in made) == 1


def test_a_damaged_run_is_named_and_left_out(place: Path) -> None:
    (place / "x" / "Run" / "run.json").write_text("{")
    save_run(RUN, place / "x" / "half")
    (place / "x" / "half" / "samples.jsonl").unlink()
    done = cdta("site", "x", "y")
    assert done.returncode == 0
    assert done.stderr.startswith("cdta: left out: x/Run/run.json is damaged: ")
    assert "cdta: left out: cannot read x/half/samples.jsonl" in done.stderr
    assert not (place / "public" / "runs" / "half").exists()
    assert (place / "public" / "index.html").read_text().count("report.html") == 1
