"""Servers of these tests need no HTTP, which takes most of their time."""

import pytest

from testing import Serve


@pytest.fixture
def serve(serve_in_process: Serve) -> Serve:
    return serve_in_process
