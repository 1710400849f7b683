"""Where positions come from: shipped, mined when first needed, or read from a file."""

from pathlib import Path

import pytest

from cant_do_that_anymore.datasets.pools import source_for
from cant_do_that_anymore.datasets.search import SelectionConfig
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.habits.base import Pool
from cant_do_that_anymore.habits.chess import rule_pool
from cant_do_that_anymore.habits.chess.position import Position, write_positions
from cant_do_that_anymore.providers.bundled import RandomModel
from cant_do_that_anymore.task.plan import plan_for
from testing import POOL, USUAL, Loopback, Serve, Spec, cdta, measure, moves_in, positions

pytestmark = pytest.mark.usefixtures("small_pools")


def pool_of(**fields: object) -> Pool:
    pool = source_for(Spec(**fields), quiet=True)  # type: ignore[arg-type]
    assert isinstance(pool, Pool)
    return pool


def test_the_default_rules_use_the_original_pool_unless_games_are_wanted() -> None:
    assert (pool_of().name, len(pool_of().items)) == ("shipped", 19_841)
    games = pool_of(pool="games")
    assert (games.name, len(games.items)) == ("games", 40)


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


def test_a_pool_of_games_keeps_its_order() -> None:
    spec = Spec(rules="no-castling")
    info = RandomModel().info
    for pool, keeps_order in ((pool_of(rules="no-castling"), True), (pool_of(), False)):
        ordered = SelectionConfig(info, pool, plan_for(spec, info)).ordered
        assert (ordered == list(pool.items)) == keeps_order


def test_games_under_other_rules_must_be_played_first() -> None:
    for options in (["--rules", "queens-as-rooks"], ["--pool", "games"]):
        result = cdta("run", "--eval", "all_diagonal", *options, code=2)
        assert "pass positions of such games with --pool FILE" in result.stderr


def test_rule_changes_share_requests_under_standard_rules(server: Loopback) -> None:
    """Both changes forbid the bishop moves of the pool, and only their prompts differ.

    The second run also checks who answers.
    """
    for rules, sent in (("bishops-as-knights", 90), ("bishops-as-rooks", 30 + 3)):
        before = len(server.requests)
        assert len(measure(server, rules=rules, pool=positions(30), n=30).samples) == 30
        assert len(server.requests) - before == sent


@pytest.fixture
def bad_file(tmp_path: Path) -> Path:
    """A file whose tenth position has a usual move that the rules allow."""
    tenth = Position(10, ("e2e4", "e7e5"), ("g1f3",))
    write_positions(tmp_path / "positions.jsonl", [*POOL[:9], tenth, *POOL[10:30]])
    return tmp_path / "positions.jsonl"


def test_a_bad_line_is_named_and_never_asked_about(serve: Serve, bad_file: Path) -> None:
    server = serve(lambda request: USUAL.get(moves_in(request), "g1f3"))
    for option in ("dataset", "pool"):
        with pytest.raises(InvalidInput, match=r"positions.jsonl, line 10: 'g1f3' is not a"):
            measure(server, n=30, **{option: bad_file})
    assert ("e2e4", "e7e5") not in [moves_in(request) for request in server.requests]
