"""Pytest plugins for `mutants.py` that select and order tests and limit their examples."""

import pytest
from hypothesis import settings


class FewExamples:
    """Makes hypothesis try few examples, always the same ones."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        profile = settings(derandomize=True, database=None, max_examples=25, deadline=None)
        settings.register_profile("mutants", profile)
        settings.load_profile("mutants")


class SelectedTests(FewExamples):
    """Runs only these tests, in this order.

    Tests that do not exist are ignored, because a changed table may lack the case of a test.
    """

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        selected = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(selected, key=lambda item: self.order[item.nodeid])
