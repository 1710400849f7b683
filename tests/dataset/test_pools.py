"""Where positions come from: shipped, common, mined, or read from a file."""

from pathlib import Path

import pytest

from cant_do_that_anymore import compare, load
from cant_do_that_anymore.comparison.leaderboard import rankings
from cant_do_that_anymore.datasets.pools import source_for
from cant_do_that_anymore.datasets.storage import shipped_datasets
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.base import Pool
from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.pools import RATES_ON_ALL, RATES_ON_COMMON
from cant_do_that_anymore.habits.chess.position import Position, write_positions
from cant_do_that_anymore.report.sentences import headline
from cant_do_that_anymore.runs.storage import save_run
from planted_models import habit_in_every_second
from testing import (
    POOL,
    USUAL,
    Loopback,
    Serve,
    Spec,
    cdta,
    habit,
    measure,
    moves_in,
    openai_server,
    perfect,
    positions,
)

pytestmark = pytest.mark.usefixtures("small_pools")
DATASET_IDS = [{p.id for p in dataset.items} for dataset in shipped_datasets().values()]


def pool_of(**fields: object) -> Pool:
    pool = source_for(Spec(**fields), quiet=True)  # type: ignore[arg-type]
    assert isinstance(pool, Pool)
    return pool


def test_the_default_rules_use_the_original_pool_unless_games_are_wanted() -> None:
    default, games = pool_of(), pool_of(pool="games")
    assert (default.name, len(default.items), default.shuffled) == ("shipped", 19_841, False)
    assert (games.name, len(games.items), games.shuffled) == ("games", 40, True)


def test_a_pool_is_mined_once_and_again_if_it_is_damaged(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mined = pool_of(rules="queens-as-knights")
    (file,) = home.glob("pools/*")
    assert file.name.startswith(f"queens-as-knights.{rule_pool.POOL_VERSION}.")
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    assert pool_of(rules="queens-as-knights") == mined
    assert file.read_bytes() == content
    monkeypatch.delattr(rule_pool, "shipped_games")
    assert pool_of(rules="queens-as-knights") == mined


def test_games_under_other_rules_must_be_played_first() -> None:
    for options in (["--rules", "queens-as-rooks"], ["--pool", "games"]):
        result = cdta("run", "--eval", "all_diagonal", *options, code=2)
        assert "--pool FILE" in result.stderr


def test_rule_changes_share_requests_under_standard_rules(server: Loopback) -> None:
    """Both changes forbid the bishop moves of the pool, and only their prompts differ.

    Selection and measuring share no answer, even at temperature 0. The second run also checks who
    answers.
    """
    options = {"pool": positions(10), "n": 10, "temperature": 0.0}
    for rules, sent in (("bishops-as-knights", 10 + 2 * 10), ("bishops-as-rooks", 10 + 3)):
        before = len(server.requests)
        assert len(measure(server, rules=rules, **options).samples) == 10
        assert len(server.requests) - before == sent


def test_a_bad_line_is_named_and_never_asked_about(serve: Serve, tmp_path: Path) -> None:
    """The rules allow the usual move of the tenth position."""
    file, tenth = tmp_path / "positions.jsonl", Position(10, ("e2e4", "e7e5"), ("g1f3",))
    write_positions(file, [*POOL[:9], tenth, *POOL[10:30]])
    server = serve(lambda request: USUAL.get(moves_in(request), "g1f3"))
    for option in ("dataset", "pool"):
        with pytest.raises(InvalidInput, match=r"positions.jsonl, line 10: 'g1f3' is not a"):
            measure(server, n=30, **{option: file})
    assert tenth.moves not in [moves_in(request) for request in server.requests]


# The common pool


def test_the_common_pool_is_the_union_of_the_shipped_datasets() -> None:
    """Its hit rates leave out the model's own dataset, or they would be 25% to 78%."""
    ids = [position.id for position in pool_of(pool="common").items]
    assert set(ids) == set.union(*DATASET_IDS)
    assert len(ids) == len(set(ids)) == 3_973
    expected = []
    for number, own in enumerate(DATASET_IDS):
        others = set.union(*DATASET_IDS[:number], *DATASET_IDS[number + 1 :])
        expected.append(len(own & others) / len(others))
    assert list(RATES_ON_COMMON) == expected
    assert [len(own) / len(POOL) for own in DATASET_IDS] == list(RATES_ON_ALL)
    assert [f"{rate:.2f}" for rate in expected] == ["0.21", "0.29", "0.38", "0.67"]


def test_runs_name_the_common_pool_and_are_not_compared_with_others(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(habit_in_every_second)
    default, common = measure(server, n=10), measure(server, n=10, pool="common")
    other = measure(perfect, n=10, pool="common")
    assert {sample.item.id for sample in common.samples} <= set.union(*DATASET_IDS)
    provenance = f"built from {common.dataset.asked} requests of the pool common"
    assert common.dataset.provenance == provenance
    assert "of 10 positions of the pool common under standard rules" in headline(common)
    assert "pool" not in headline(default) + default.dataset.provenance
    save_run(common, tmp_path / "run")
    assert load(tmp_path / "run").dataset.pool_name == "common"
    with pytest.raises(InvalidInput, match="cannot be compared: the default pool, the pool common"):
        compare(default, common)
    titles = [ranking.entries[0].title for ranking in rankings([default, common, other])]
    assert titles == ["Bishops move like knights", "Bishops move like knights (pool common)"]


def test_a_shipped_dataset_is_for_the_default_pool_only() -> None:
    with openai_server(habit):
        shipped = measure("openai/gpt-4-0314", n=10)
        common = measure("openai/gpt-4-0314", n=10, pool="common")
    assert (shipped.dataset.origin, common.dataset.origin) == ("shipped", "built")
    assert common.dataset.asked == 10
