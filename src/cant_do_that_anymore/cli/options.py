"""The options of `Spec`, made from its fields."""

from collections.abc import Iterable
from typing import Any

import click

from ..task.option_info import MODEL, OptionInfo
from ..task.spec import DEFAULT_MODEL, OPTIONS, Spec, validate_option
from .help import Option, Parsed

# The options that --help lists; --help-all lists the others, too.
COMMON = {
    *("model", "base_url", "tag", "reasoning_effort", "eval", "rules", "wording", "form"),
    *("diagnose", "interventions", "n", "max_cost"),
}
# The type of the options of `Spec`: a field parses its value.
OF_FIELD = Parsed(lambda option, value: validate_option(str(option.name), value))


def _option(name: str, info: OptionInfo) -> Option:
    """Create the option of a field of `Spec`, with the field's default."""
    default = getattr(Spec, name)
    is_flag, is_list = isinstance(default, bool), isinstance(default, tuple)
    return Option(
        f"{'--' if len(name) > 1 else '-'}{name.replace('_', '-')} {info.metavar}",
        info.heading,
        info.help,
        default=default,
        is_flag=is_flag,
        is_rare=name not in COMMON,
        multiple=is_list,
        type=None if is_flag or is_list else OF_FIELD,
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
        callback=lambda ctx, option, values: several_values(name, values),
    )


def several_values(name: str, texts: Iterable[str]) -> tuple[Any, ...]:
    """Return the values of an option in texts that may hold several, separated by commas."""
    values = (validate_option(name, value) for text in texts for value in text.split(","))
    return tuple(dict.fromkeys(values))
