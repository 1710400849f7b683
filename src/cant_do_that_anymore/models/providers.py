"""Providers whose API is OpenAI's, asked without Inspect AI, and the extras that others need."""

import os
from dataclasses import dataclass

from ..errors import InvalidInput

EXTRAS = {"anthropic": "anthropic", "google-genai": "google", "openai": "openai"}
"""Packages of providers, and the extras of this package that bring them and Inspect AI."""


@dataclass(frozen=True)
class Provider:
    """A provider that is reached without Inspect AI, since its API is OpenAI's."""

    address: str
    address_variable: str
    key_variable: str
    headers: tuple[tuple[str, str], ...] = ()
    """Names of headers, and of the variables that hold their values."""

    def own_headers(self) -> dict[str, str]:
        """Those whose variables are set."""
        told = ((name, os.environ.get(variable)) for name, variable in self.headers)
        return {name: value for name, value in told if value}


PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        (
            ("OpenAI-Organization", "OPENAI_ORGANIZATION"),
            ("OpenAI-Organization", "OPENAI_ORG_ID"),
            ("OpenAI-Project", "OPENAI_PROJECT_ID"),
        ),
    ),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
}


def without_inspect(model: str) -> InvalidInput:
    """What to say of a model that is asked through Inspect AI where that is not installed."""
    provider = model.partition("/")[0]
    extra = provider if provider in EXTRAS.values() else "inspect"
    return InvalidInput(f"{model} needs Inspect AI: pip install 'cant-do-that-anymore[{extra}]'")
