"""Pytest plugins for `mutants.py`: which tests run, in what order, and with how many examples."""

import pytest
from hypothesis import settings


class FewExamples:
    """A pytest plugin that makes hypothesis try few examples, always the same."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        few = settings(derandomize=True, database=None, max_examples=25, deadline=None)
        settings.register_profile("mutants", few)
        settings.load_profile("mutants")


class Only(FewExamples):
    """A pytest plugin that runs only these tests, in this order.

    A test may be missing, because a changed table may lack its case.
    """

    def __init__(self, tests: list[str]) -> None:
        self.place = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = [item for item in items if item.nodeid in self.place]
        items[:] = sorted(known, key=lambda item: self.place[item.nodeid])
