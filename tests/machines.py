"""What not every machine has: a test that needs it is skipped where it is missing, and named."""

import os
import sys

import pytest

needs_posix = pytest.mark.skipif(
    os.name != "posix",
    reason="needs signals, permissions, named pipes and terminals, which only POSIX has",
)
needs_linux = pytest.mark.skipif(
    sys.platform != "linux",
    reason="needs /proc and /dev/full, which only Linux has",
)
