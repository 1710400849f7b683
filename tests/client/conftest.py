"""Fixtures for tests of the client."""

import pytest

from batches import SINGLY
from cant_do_that_anymore.client.batch import client


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has more than four requests, not twenty."""
    monkeypatch.setattr(client, "MIN_BATCH", SINGLY)
