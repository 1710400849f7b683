"""Spec: the options of a run, with their defaults, their validation and their help.

A new option is one field here, and the place where it acts: the commands and experiment files take
it from its metadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from annotated_types import Ge, Lt

from ..errors import InvalidInput
from ..habits.base import Change
from ..habits.catalog import DEFAULT_FORM, FORMS, form_for, resolve_change
from ..providers.access import split_address
from ..providers.base import EFFORTS, Effort, Settings
from ..providers.catalog import parse_name
from ..validation import check
from .conditions import (
    CONTROL_CONDITIONS,
    DIAGNOSIS_CONDITIONS,
    MOST_REQUESTS,
    interventions,
    interventions_for,
)
from .option_info import (
    OptionInfo,
    limit_option,
    model_option,
    parse_body,
    parse_headers,
    parse_price,
    task_option,
)
from .prompts import ALL, DEFAULT_WORDING, ORIGINAL_RULES, SHIPPED_WORDINGS, Wording
from .types import Eval, Reading

DEFAULT_MODEL = "cdta/reader"
DEFAULT_SEED = 20_220_722
DEFAULT_SAMPLES: dict[Eval, int] = {"all": 1000, "all_small": 100, "all_diagonal": 1000}


def _parse_rules(value: Any) -> str | Change:
    """Return a change: the key of a shipped one, which any other value gives, or its value."""
    is_key = isinstance(value, str) and not value.endswith(".toml")
    return value if is_key else resolve_change(value)


def _join(*names: str) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}."


@dataclass(frozen=True)
class Spec:
    """The options of a run; None stands for the default of the eval or the model.

    Attributes:
        model: the model's name, as for ``cdta run --model``; ``NAME@URL`` also sets the server.
        base_url: the server of the model.
        tag: label that separates this model's cache from others of the same name and address.
        header: extra HTTP headers, each ``NAME=VALUE`` or ``NAME=env:VARIABLE``; they are never
            saved, and must not change answers.
        temperature: the sampling temperature; datasets are always built at 0.
        max_tokens: the token limit of a reply with its reasoning; None for one that the model's
            answers show to be enough.
        eval: ``all``, ``all_small`` (fewer samples) or ``all_diagonal`` (games under the new rule).
        pool: a file of positions to choose from, ``games`` for those of the bundled games, or
            ``common`` for those in at least one of the shipped datasets.
        dataset: a file of positions, or the name of a dataset (`cdta dataset list`).
        fallback_dataset: the dataset for a model that has none; None builds one.
        select_effort: the reasoning effort when building the dataset; None for the same. An
            experiment over several efforts sets it.
        rules: the changed rules or their key; docs/rules.md describes custom rules.
        wording: the prompts; a name, a file, a `Wording`, or a list of them. With several, each
            position gets one.
        form: how the position is shown: the name of a form.
        conditions: more conditions to measure, besides those of every run and of a diagnosis.
        reading: how replies are read: ``lenient``, or ``exact`` as in the original.
        interventions: what may help: names, or ``all``.
        diagnose: also ask why the habit stays: under all conditions of a diagnosis, with controls.
        n: how many positions to draw; at most ``max_samples`` of them are measured.
        reasoning_effort: the reasoning effort to request; None for the model's default.
        extra_body: extra JSON fields for every request body.
        price: US dollars per million input and output tokens, as ``IN,OUT``; None for the list
            price.
        max_cost: spending limit in US dollars of a command; None for the default of 5. No request
            is sent if it could pass the limit with those in flight, by the dearest answer so far.
        keep_looking: search the whole pool even if the model hardly ever plays the usual move.
        fresh: neither read nor write the cache.
        seed: the seed for drawing positions.
        max_connections: the maximum number of concurrent requests.

    Raises:
        InvalidInput: if an option is invalid, what it names does not exist, or options conflict.
    """

    model: str | None = model_option(
        None, "M", f"Model to evaluate; NAME@URL for a server.  [default: {DEFAULT_MODEL}]"
    )
    base_url: str | None = model_option(None, "URL", "OpenAI-compatible server, up to /v1.")
    tag: str = model_option("", "T", "Label to distinguish versions with the same name.")
    header: tuple[str, ...] = model_option(
        (), "K=V", "Extra HTTP header; env:NAME reads a variable.", parse=parse_headers, secret=True
    )
    temperature: Annotated[float, Ge(0)] = model_option(1.0, "T", "Sampling temperature.")
    max_tokens: Annotated[int | None, Ge(1)] = model_option(
        None, "K", "Token limit of a reply.  [default: automatic; base models: 4]"
    )
    reasoning_effort: Effort | None = model_option(None, "E", _join(*EFFORTS))
    extra_body: str | Mapping[str, Any] = model_option(
        "", "JSON", "Extra fields for every request body.", parse=parse_body
    )
    eval: Eval = task_option("all", "E", _join(*DEFAULT_SAMPLES))
    rules: str | Change = task_option(
        ORIGINAL_RULES, "KEY", "Rule change (see cdta rules), or FILE.toml.", parse=_parse_rules
    )
    pool: str | Path | None = task_option(
        None, "FILE", "Candidates: a file, games (bundled), or common (a fifth of the requests)."
    )
    dataset: str | Path | None = task_option(
        None, "D", "Use these positions: a file or a dataset's name."
    )
    fallback_dataset: str | None = None
    select_effort: Effort | None = None
    wording: str | Path | Wording | tuple[str | Path | Wording, ...] = task_option(
        ALL,
        "W",
        f"Prompts: {ALL} {len(SHIPPED_WORDINGS)} wordings, {DEFAULT_WORDING}, or some of "
        f"{', '.join(SHIPPED_WORDINGS)}; a TOML file; openai-evals:WHEEL for the original's.",
    )
    form: str = task_option(DEFAULT_FORM, "F", f"How the position is shown: {_join(*FORMS)}")
    conditions: tuple[str, ...] = ()
    reading: Reading = task_option(
        "lenient", "R", "How to read replies: lenient, or exact as in the original."
    )
    diagnose: bool = task_option(
        False, "", f"Diagnose why the habit stays ({MOST_REQUESTS} requests per sample, not 2)."
    )
    interventions: str | Sequence[str] = task_option(
        (),
        "I,...",
        f"Measure what helps: {', '.join(interventions())}; without a value all of them. "
        "Each is one more request per sample.",
        without_value=ALL,
    )
    n: Annotated[int | None, Ge(1)] = task_option(
        None, "N", "Number of samples.  [default: 1000; all_small: 100]"
    )
    max_samples: Annotated[int | None, Ge(1)] = None
    seed: Annotated[int, Ge(0), Lt(2**63)] = task_option(
        DEFAULT_SEED, "S", "Seed for drawing positions."
    )
    max_connections: Annotated[int | None, Ge(1)] = limit_option(
        None, "C", "Maximum number of concurrent requests.  [default: automatic]"
    )
    price: tuple[float, float] | str | None = limit_option(
        None, "IN,OUT", "USD per million tokens.  [default: list price]", parse=parse_price
    )
    max_cost: Annotated[float | None, Ge(0)] = limit_option(
        None, "USD", "Spending limit in USD.  [default: 5]"
    )
    keep_looking: bool = limit_option(
        False, "", "Search the whole pool even if few positions qualify."
    )
    fresh: bool = limit_option(
        False, "", "Ignore the cache: send every request and save no answers."
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            if (value := getattr(self, item.name)) is not item.default:
                self._set(item.name, validate_option(item.name, value))
        for option_name in ("model", "base_url"):
            if str(getattr(self, option_name)).strip() == "":
                raise InvalidInput(f"{option_name} is empty; give a value or leave it out")
        model, base_url = split_address(self.model, self.base_url)
        self._set("model", model)
        self._set("base_url", base_url)
        if model or base_url:
            parse_name(model, base_url)
        self._set("interventions", interventions_for(self.change, self.interventions))
        is_default = form_for(self.change, self.form) is self.change.its_habit.form
        self._set("form", DEFAULT_FORM if is_default else self.form)
        if self.pool and self.dataset:
            raise InvalidInput("give a pool or a dataset, not both")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def settings(self) -> Settings:
        """The settings of its requests, which are fields of the same names."""
        return Settings(**{item.name: getattr(self, item.name) for item in fields(Settings)})

    @property
    def non_defaults(self) -> dict[str, Any]:
        """The options that are not the defaults, as plain values; without secret ones."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.repr}
        return {
            name: _plain(value) for name, value in values.items() if value != getattr(Spec, name)
        }

    @property
    def n_items(self) -> int:
        """How many items to draw."""
        return DEFAULT_SAMPLES[self.eval] if self.n is None else self.n

    @property
    def all_conditions(self) -> tuple[str, ...]:
        """All conditions of the run."""
        of_diagnosis = DIAGNOSIS_CONDITIONS if self.diagnose else ()
        names = (*CONTROL_CONDITIONS, *self.conditions, *of_diagnosis, *self.interventions)
        return tuple(dict.fromkeys(names))

    @property
    def change(self) -> Change:
        """The changed rules.

        Raises:
            InvalidInput: if the key is unknown, or the rules cannot be measured.
        """
        change = resolve_change(self.rules)
        change.check_forbids_something()
        return change


def _plain(value: Any) -> Any:
    """Return the value of an option as JSON: rules and texts by their names."""
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, Change):
        return value.identity
    if isinstance(value, Wording):
        return value.name
    return str(value) if isinstance(value, Path) else value


OPTIONS: dict[str, OptionInfo] = {
    item.name: item.metadata["option"] for item in fields(Spec) if item.metadata
}
"""The fields that users can set, in the order of the help."""
_HINTS = get_type_hints(Spec, include_extras=True)


def validate_option(name: str, value: Any) -> Any:
    """Return the value of a field of `Spec` after validation; a text is parsed by its type.

    Raises:
        InvalidInput: saying what the field can be.
    """
    info, is_text = OPTIONS.get(name), isinstance(value, str)
    value = info.parse(value) if info and info.parse else value
    is_secret = info is not None and info.secret
    return check(_HINTS[name], value, name, text=is_text, secret=is_secret)
