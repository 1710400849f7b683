"""An environment for reinforcement learning: drop a habit when the rules change, and only then.

``verifiers`` finds the taskset here, and the harness that its agents use by default.
"""

from .harness import OneReplyHarness
from .taskset import HabitsTaskset

__all__ = ["HabitsTaskset", "OneReplyHarness"]
