"""Every test has a home of its own and no keys."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CDTA_HOME", str(folder))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CDTA_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return folder
