"""The options of `Spec`, made from its fields."""

import click

from ..task.option_info import MODEL, OptionInfo
from ..task.spec import DEFAULT_MODEL, OPTIONS, Spec
from .help import Option

# The options that --help lists; --help-all lists the others, too.
COMMON = {
    *("model", "base_url", "tag", "reasoning_effort", "eval", "rules", "wording", "form"),
    *("diagnose", "interventions", "n", "max_cost"),
}


def _option(name: str, info: OptionInfo) -> Option:
    """Create the option of a field of `Spec`, which parses and checks the value itself."""
    default = getattr(Spec, name)
    return Option(
        f"{'--' if len(name) > 1 else '-'}{name.replace('_', '-')} {info.metavar}",
        info.heading,
        info.help,
        default=default,
        is_rare=name not in COMMON,
        multiple=isinstance(default, tuple),
        type=click.UNPROCESSED if info.metavar else None,
        **({"flag_value": info.without_value} if info.without_value else {}),
    )


CLICK_OPTIONS = {name: _option(name, info) for name, info in OPTIONS.items()}
MODELS = Option(
    "--model models M",
    MODEL,
    f"Model to evaluate; NAME@URL for one on your server; repeatable.  [default: {DEFAULT_MODEL}]",
    multiple=True,
    type=click.UNPROCESSED,  # an experiment file may give a table for a model
)


def spec_options(*without: str, **instead: Option) -> list[click.Parameter]:
    """Return the options of `Spec`, except some, and with others in the place of some."""
    options = CLICK_OPTIONS | instead
    return [option for name, option in options.items() if name not in without]


def several(name: str, plural: str, default: str = "") -> Option:
    """Create an option of `Spec` that takes several values, repeated or separated by commas.

    Without values it is empty, which the text ``default`` explains.
    """
    single = CLICK_OPTIONS[name]
    return Option(
        f"{single.opts[0]} {plural} {single.metavar},...",
        single.heading,
        str(single.help) + (f"  [default: {default}]" if default else ""),
        is_rare=single.is_rare,
        multiple=True,
        callback=lambda ctx, option, texts: _split(texts),
    )


def _split(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values in texts that may hold several, each once."""
    return tuple(dict.fromkeys(value for text in texts for value in text.split(",")))
