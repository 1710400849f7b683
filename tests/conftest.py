"""Every test has a home of its own and no keys; what this machine lacks is said at the end."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CDTA_HOME", str(folder))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CDTA_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A machine may lack what a test needs, but not the one that decides what lands."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
    return report
