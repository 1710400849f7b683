"""Fixtures: every test gets a new CDTA_HOME without keys; skips are listed at the end."""

import gc
import os
import shutil
import ssl
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:  # few tests need a browser
    from playwright.sync_api import Browser

    from browser import Opener, OpenPage
    from testing import Loopback, Serve

pytest.register_assert_rewrite("testing")  # snapshots that differ are shown line by line

RAMDISK = Path("/dev/shm")
if "TMPDIR" not in os.environ and RAMDISK.is_dir() and shutil.disk_usage(RAMDISK).free > 2 * 2**30:
    os.environ["TMPDIR"] = str(RAMDISK)  # waiting for the disk takes a third of the time
    tempfile.tempdir = None


def pytest_xdist_auto_num_workers() -> int:
    """More than cores, since tests also wait for servers, browsers and processes."""
    return (os.cpu_count() or 1) + 2


def pytest_xdist_setupnodes() -> None:
    """Let workers and their child processes cache bytecode, to compile it only once."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and skip imported modules, which took a tenth of the time."""
    gc.freeze()
    gc.set_threshold(50_000)


settings.register_profile(
    "any machine",
    deadline=None,  # tests are slower on a busy machine
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),  # CI must not depend on luck
)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def home_for_shared_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home for fixtures with a wider scope, which are created before the home of any test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDTA_HOME", str(tmp_path_factory.mktemp("shared") / "home"))
        # Load all certificates once, not for every model that Inspect calls.
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CDTA_HOME", str(folder))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CDTA_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def no_retry_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed requests are retried without delay."""
    from cant_do_that_anymore.client import client, sender

    monkeypatch.setattr(sender, "SECONDS_BEFORE_REPEAT", 0.0)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests time out after 0.4 seconds."""
    import aiohttp

    from cant_do_that_anymore.providers import openai_api

    for name in ("TIMEOUT", "LONG_TIMEOUT"):
        monkeypatch.setattr(openai_api, name, aiohttp.ClientTimeout(total=0.4))


WITHOUT_HTTP = {
    *("comparison", "dataset", "metrics", "report", "runs"),
    *("test_disk", "test_wrong_numbers"),
}
"""Folders and files whose tests are not about HTTP, which takes most of the time. A test in which
another process calls the server needs `serving`."""


@pytest.fixture
def serve(request: pytest.FixtureRequest) -> "Iterator[Serve]":
    """Serve a server or a responder until the test ends, over HTTP where tests are about it."""
    import testing

    is_about_http = not {request.path.parent.name, request.path.stem} & WITHOUT_HTTP
    serving = testing.serving if is_about_http else testing.serving_in_process
    with ExitStack() as stack:

        def start(source: Any, **fields: Any) -> Any:
            return stack.enter_context(serving(source, **fields))

        yield start


@pytest.fixture
def server(serve: "Serve") -> "Loopback":
    """A server whose model always plays its habit; set ``server.respond`` to change it."""
    from testing import habit

    return serve(habit)


@pytest.fixture
def priced() -> Iterator[None]:
    """The price list has the model "priced" at loopback addresses."""
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
    from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider

    from loopback import INPUT_PRICE, OUTPUT_PRICE

    prices = ModelPrice(
        input_mtok=Decimal(1e6 * INPUT_PRICE), output_mtok=Decimal(1e6 * OUTPUT_PRICE)
    )
    model = ModelInfo(id="priced", match=ClauseEquals(equals="priced"), prices=prices)
    provider = Provider("loopback", "Loopback", r"http://127\.0\.0\.1.*", models=[model])
    set_custom_snapshot(DataSnapshot([provider], from_auto_update=False))
    yield
    set_custom_snapshot(None)


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools generated for other rules than those of the shipped pool have only 40 positions."""
    from cant_do_that_anymore.habits.chess import rule_pool

    monkeypatch.setattr(rule_pool, "POOL_SIZE", 40)


@pytest.fixture
def no_plots() -> Iterator[None]:
    """Experiments write everything except plots, which take most of the time."""
    from testing import without_plots

    with without_plots():
        yield


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from browser import BrowserNotFound, launch_browser

    with ExitStack() as stack:
        try:
            browser = stack.enter_context(launch_browser())
        except BrowserNotFound as problem:
            pytest.skip(str(problem))
        yield browser


@pytest.fixture(scope="module")
def idle_pages(browser: "Browser") -> "list[OpenPage]":
    return []


@pytest.fixture
def open_page(browser: "Browser", idle_pages: "list[OpenPage]") -> "Iterator[Opener]":
    from browser import Opener

    opener = Opener(browser, idle_pages)
    yield opener
    opener.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With NO_SKIPS, as in CI, tests may not be skipped because the machine lacks something."""
    report = yield
    if report.skipped and os.environ.get("NO_SKIPS"):
        report.outcome = "failed"
    return report
