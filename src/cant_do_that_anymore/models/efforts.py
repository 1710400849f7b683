"""How an OpenAI-compatible API is told how much a model is to think.

There are several ways, and which one a server understands is learnt by trying: some refuse what
they do not know, others pass over it, and the answer then shows thoughts although none were wanted.
"""

from collections.abc import Mapping
from typing import Any

from .model import Effort

BY_EFFORT = "reasoning_effort"
_SWITCHES: dict[str, dict[str, Any]] = {
    "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
    "thinking": {"type": "disabled"},
    "reasoning": {"enabled": False},
}
"""What turns thinking off, by the field of a request: in vLLM and SGLang, by DeepSeek and Kimi, by
OpenRouter and Together."""
NOTHING = "nothing"
"""A model that thinks only when told to."""


def ways_of(effort: Effort) -> Mapping[str, dict[str, Any]]:
    """The ways to ask for that effort, by name: what each adds to a request."""
    ways: dict[str, dict[str, Any]] = {BY_EFFORT: {BY_EFFORT: effort}}
    if effort == "none":
        return ways | {name: {name: switch} for name, switch in _SWITCHES.items()} | {NOTHING: {}}
    return ways | {"reasoning": {"reasoning": {"effort": effort}}}
