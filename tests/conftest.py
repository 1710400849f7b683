"""Fixtures: every test gets a new CDTA_HOME without keys; skips are listed at the end."""

import gc
import os
import shutil
import ssl
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:  # few tests need a browser
    from playwright.sync_api import Browser

    from browser import Opened, Opener
    from cant_do_that_anymore.client.store import Store
    from testing import Loopback, Run, Serve

pytest.register_assert_rewrite("testing")  # snapshots that differ are shown line by line

MORE_THAN_CORES = 2
"""So many processes more than cores: tests wait for servers, browsers and processes, too."""


MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2 * 2**30:
    os.environ["TMPDIR"] = str(MEMORY)  # waiting for a disk takes a third of all time
    tempfile.tempdir = None


def pytest_xdist_auto_num_workers() -> int:
    return (os.cpu_count() or 1) + MORE_THAN_CORES


def pytest_xdist_setupnodes() -> None:
    """Let workers and the processes they start cache bytecode, which saves compiling it again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and not among what was imported: that took a tenth of all time."""
    gc.freeze()
    gc.set_threshold(50_000)


settings.register_profile(
    "any machine",
    deadline=None,  # a busy machine is no fault
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),  # what lands does not depend on luck
)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def home_of_wider_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What several tests share is made before any of them has its home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDTA_HOME", str(tmp_path_factory.mktemp("shared") / "home"))
        # All certificates are loaded once, not for every model that Inspect calls.
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
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again at once, and a batch is looked at at once."""
    from cant_do_that_anymore.client import client
    from cant_do_that_anymore.client.batch import jobs

    monkeypatch.setattr(jobs, "FIRST_POLL", 0.01)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.01)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has more than four requests, not twenty."""
    from batch_server import SINGLY
    from cant_do_that_anymore.client.batch import client

    monkeypatch.setattr(client, "MIN_BATCH", SINGLY)


@pytest.fixture
def store(tmp_path: Path) -> "Iterator[Store]":
    """An empty store of answers."""
    from cant_do_that_anymore.client.store import Store

    with closing(Store(tmp_path / "answers.sqlite")) as store:
        yield store


WITHOUT_HTTP = {
    *("comparison", "costs", "dataset", "metrics", "report", "runs"),
    *("test_disk", "test_wrong_numbers"),
}
"""Folders and files whose tests are not about HTTP, which takes most of the time. If another
process asks the server, a test needs `serve_http`."""


@pytest.fixture
def serve_http() -> "Iterator[Serve]":
    """Call it with whatever answers to have it served over HTTP until the test ends."""
    from testing import serving

    with ExitStack() as stack:

        def start(answering: Any, **fields: Any) -> Any:
            return stack.enter_context(serving(answering, **fields))

        yield start


@pytest.fixture
def serve(request: pytest.FixtureRequest, serve_http: "Serve") -> "Iterator[Serve]":
    """As `serve_http`, but without HTTP where tests are not about it."""
    import testing

    is_about_http = not {request.path.parent.name, request.path.stem} & WITHOUT_HTTP
    with ExitStack() as stack:

        def start(answering: Any, **fields: Any) -> Any:
            if is_about_http or hasattr(answering, "batches"):
                return serve_http(answering, **fields)
            return stack.enter_context(testing.answering(answering, **fields))

        yield start


@pytest.fixture
def server(serve: "Serve") -> "Loopback":
    """A server whose model always plays its habit; set ``server.respond`` to another player."""
    from testing import habit

    return serve(habit)


@pytest.fixture
def priced() -> Iterator[None]:
    """The price list knows the model "priced" behind loopback addresses."""
    from priced_servers import price_list

    with price_list():
        yield


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that the shipped pool is not for gets 40 positions, quickly."""
    from cant_do_that_anymore.game import rule_pool

    monkeypatch.setattr(rule_pool, "POOL_SIZE", 40)


@pytest.fixture
def no_plots() -> Iterator[None]:
    """Experiments write everything but their plots, which take most of their time."""
    from testing import without_plots

    with without_plots():
        yield


@pytest.fixture(scope="session")
def pocket_run() -> "Run":
    """A run of the built-in language model over 20 samples, made once."""
    from testing import measure

    return measure("cdta/pocket", n=20)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from browser import browser_or_skip

    with browser_or_skip() as found:
        yield found


@pytest.fixture(scope="module")
def free_windows(browser: "Browser") -> "list[Opened]":
    return []


@pytest.fixture
def open_page(browser: "Browser", free_windows: "list[Opened]") -> "Iterator[Opener]":
    from browser import Opener

    opener = Opener(browser, free_windows)
    yield opener
    opener.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A machine may lack what a test needs, but not the one that decides what lands."""
    report = yield
    if report.skipped and os.environ.get("NO_SKIPS"):
        report.outcome = "failed"
    return report
