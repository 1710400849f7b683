"""The parts of the page that say how a run was made and what it took."""

from typing import Any

from ..game.rules import Rules
from .markup import Markup, tag
from .words import dollars, number


def spending(facts: dict[str, Any]) -> Markup:
    """Tokens, time, and cost where it is known."""
    numbers = facts["metrics"]
    costs = {
        name: dollars(facts[key])
        for name, key in (
            ("Cost of the answers", "cost"),
            ("Cost of the dataset", "dataset_cost"),
            ("Spent by this run", "spent"),
        )
        if facts[key] is not None
    }
    return _facts(
        {
            "Input tokens": number(numbers["usage_prompt_tokens"]),
            "Output tokens": number(numbers["usage_completion_tokens"]),
            "Time": f"{facts['seconds']:,.1f} s",
            **(costs or {"Cost": dollars(None)}),
        }
    )


def making(facts: dict[str, Any], rules: Rules) -> Markup:
    """How the run was made: all it takes to make it again."""
    dataset, settings = facts["dataset"], facts["settings"]
    samples = f"{facts['metrics']['n_samples']:,} of {facts['metrics']['n_games']:,} games"
    temperature = settings["temperature"]
    return _facts(
        {
            "Model": facts["model"],
            "Version that answered": facts["model_version"],
            "Endpoint": facts["endpoint"] or "the model’s own",
            "Eval": facts["eval"],
            "Changed rules": f"{rules.key}: {rules.statement}",
            "Dataset": dataset["provenance"],
            "Samples": f"{samples}; {facts['wanted']:,} asked for",
            "Wording": facts["wording"]["name"],
            "Reading of replies": facts["reading"],
            "Temperature": "none" if temperature is None else f"{temperature:g}",
            "Longest reply": f"{settings['max_tokens']:,} tokens",
            "Seed": str(settings["seed"]),
            "Started": facts["started_at"],
            "Protocol": facts["protocol"],
            "Versions": ", ".join(f"{name} {v}" for name, v in facts["versions"].items()),
        }
    )


def _facts(facts: dict[str, str]) -> Markup:
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
    return tag("dl", *pairs, class_="facts")
