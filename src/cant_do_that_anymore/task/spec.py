"""Spec: the options of a run, their defaults and their validation."""

import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from math import inf, isfinite
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InvalidInput, unknown_value
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules, check_forbids_something, resolve_rules
from ..providers.access import split_address, validate_headers
from ..providers.base import EFFORTS, Effort, ModelInfo, Settings
from .conditions import ASKED, check, conditions_for
from .prompts import DEFAULT, wording_named
from .types import CHANGED_CONDITION, STANDARD_CONDITION, Eval, Plan, Reading

T = TypeVar("T")

# Numbers must be smaller than this, so that other programs can read them from a file.
LIMIT = 2**63
_TYPE_NAMES: dict[Any, str] = {
    **{str: "a text", int: "a whole number", float: "a number", bool: "True or False"},
    **{Mapping: "a mapping", Path: "a path", Rules: "a value such as MyRule()"},
}


def checked(instance: T) -> T:
    """Return the instance after checking every field against its type hint.

    Raises:
        ValueError: naming the first invalid field.
    """
    for item, _, value in _invalid_fields(instance):
        raise ValueError(f"{item.name} cannot be {shortened(value)}")
    return instance


def check_fields(instance: object) -> None:
    """Check every field against its type hint; the message hides fields without a repr.

    Raises:
        InvalidInput: saying what the field can be.
    """
    for item, hint, value in _invalid_fields(instance):
        large = isinstance(value, int | float) and abs(value) >= LIMIT
        message = (
            f"{item.name} must be {_describe_type(hint)}" + " between -2**63 and 2**63" * large
        )
        raise InvalidInput(message + (f", not {shortened(value)}" if item.repr else ""))


def _invalid_fields(instance: Any) -> Iterator[tuple[Field[Any], Any, Any]]:
    """Yield every field that does not match its type hint, with the hint and the value."""
    hints = _type_hints(instance.__class__)
    for item in fields(instance):
        hint, value = hints[item.name], getattr(instance, item.name)
        if not _matches(value, hint):
            yield item, hint, value


@cache
def _type_hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _describe_type(hint: Any) -> str:
    outer, inner = get_origin(hint), get_args(hint)
    if outer in (Union, types.UnionType):
        *others, last = (_describe_type(option) for option in inner if option is not types.NoneType)
        return f"{', '.join(others)} or {last}" if others else last
    if outer is Literal:
        return " or ".join(map(repr, inner))
    if outer is tuple:
        return f"a tuple of {_describe_type(inner[0]).removeprefix('a ')}s"
    return _TYPE_NAMES[outer or hint]


def _matches(value: Any, hint: Any) -> bool:
    """Whether a value matches a type hint; an infinite number never does."""
    outer, inner = get_origin(hint), get_args(hint)
    if outer is Literal:
        return any(value is item or (value == item and type(value) is type(item)) for item in inner)
    if outer in (Union, types.UnionType):
        return any(_matches(value, item) for item in inner)
    if outer in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            _matches(item, inner[1]) for item in value.values()
        )
    if outer in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(_matches(item, inner[0]) for item in value)
    if hint in (int, float):
        fits = isinstance(value, hint | int) and not isinstance(value, bool)
        return fits and abs(value) < LIMIT and isfinite(value)
    return hint is Any or isinstance(value, outer or hint)


DEFAULT_MODEL = "cdta/pocket"
DEFAULT_SEED = 20_220_722
# The pools: the original's, that of the bundled games, and the positions that at least one of the
# shipped datasets holds.
SHIPPED, GAMES, COMMON = "shipped", "games", "common"
# Settings that are fields of the spec under the same name and do not depend on the model.
SETTINGS = [each.name for each in fields(Settings) if each.name != "max_tokens"]
# Fields of a request body that the client sets itself, or that must be absent.
RESERVED_FIELDS = {
    *("model", "messages", "prompt", "stop", "stream", "n", "temperature"),
    *("max_tokens", "max_completion_tokens", "reasoning_effort"),
}
SAMPLES: dict[Eval, int] = {"all": 1000, "all_small": 100, "all_diagonal": 1000}


@dataclass(frozen=True)
class Spec:
    """The options of a run; None stands for the default of the eval or the model.

    Attributes:
        model: any name that `providers.catalogue` knows; ``NAME@URL`` sets the server as well.
        base_url: the server of the model.
        tag: label that separates this model's cache from others of the same name and address.
        header: extra HTTP headers, each ``NAME=VALUE`` or ``NAME=env:VARIABLE``; they are never
            saved, and should change no answer.
        pool: a file of positions to choose from, ``games`` for those of the bundled games, or
            ``common`` for those in at least one of the shipped datasets.
        dataset: a file of positions, or the name of a dataset (`cdta dataset list`).
        fallback_dataset: the dataset for a model that has none; None builds one.
        rules: the changed rules or their key; docs/rules.md describes custom rules.
        diagnose: also ask why the habit stays: under all conditions of a diagnosis, with controls.
        n: how many samples to draw; at most ``max_samples`` of them are measured.
        precision: stop once the impact factor's interval reaches at most this far from the value,
            either way; ``n`` is the upper limit. None measures all samples.
        reasoning_effort: the reasoning effort to request; None for the model's default.
        reasoning_tokens: reasoning budget in addition to ``max_tokens``; None for as much as is
            needed.
        select_effort: the reasoning effort when building the dataset; None for the same.
        extra_body: extra JSON fields for every request body.
        price: US dollars per million input and output tokens, as ``IN,OUT``; None for the list
            price.
        max_cost: budget in US dollars; no request that could exceed it is sent.
        ask_above: in US dollars; without ``max_cost``, a run stops after its first answers if they
            project a higher cost. None for never.
        keep_looking: search the whole pool even if it cannot give half of the wanted positions.
        fresh: neither read nor write the cache.
        batch: send requests in batches, for half the price and some hours later.

    Raises:
        InvalidInput: if an option is invalid, or options conflict.
    """

    model: str | None = None
    base_url: str | None = None
    tag: str = ""
    header: tuple[str, ...] = field(default=(), repr=False)
    eval: Eval = "all"
    pool: Path | str | None = None
    dataset: Path | str | None = None
    fallback_dataset: str | None = None
    rules: str | Rules = BISHOPS_AS_KNIGHTS.key
    wording: str = DEFAULT.name
    conditions: tuple[str, ...] = (STANDARD_CONDITION, CHANGED_CONDITION)
    diagnose: bool = False
    reading: Reading = "lenient"
    n: int | None = None
    max_samples: int | None = None
    precision: float | None = None
    seed: int = DEFAULT_SEED
    temperature: float = 1.0
    max_tokens: int | None = None
    reasoning_effort: Effort | None = None
    reasoning_tokens: int | None = None
    select_effort: Effort | None = None
    extra_body: str | Mapping[str, Any] = ""
    max_connections: int | None = None
    max_error_rate: float = 0.05
    price: tuple[float, float] | str | None = None
    max_cost: float | None = None
    ask_above: float | None = 5.0
    keep_looking: bool = False
    fresh: bool = False
    batch: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.header, str):  # a single header
            object.__setattr__(self, "header", (self.header,))
        for label, value, valid in (
            ("eval", self.eval, get_args(Eval)),
            ("reading", self.reading, get_args(Reading)),
            ("reasoning effort", self.reasoning_effort, (None, *EFFORTS)),
            ("reasoning effort", self.select_effort, (None, *EFFORTS)),
        ):
            if value not in valid:
                raise unknown_value(label, str(value), [option for option in valid if option])
        for name, least, most in (
            ("temperature", 0.0, inf),
            ("max_cost", 0.0, inf),
            ("ask_above", 0.0, inf),
            ("max_error_rate", 0.0, 1.0),
            ("n", 1, inf),
            ("max_samples", 1, inf),
            ("max_tokens", 1, inf),
            ("reasoning_tokens", 0, inf),
            ("max_connections", 1, inf),
        ):
            value = getattr(self, name)
            if isinstance(value, int | float) and not (least <= value <= most and value < inf):
                bound = f"at least {least:g}" if most == inf else f"from {least:g} to {most:g}"
                raise InvalidInput(f"{name} must be {bound}, not {value}")
        if isinstance(self.precision, int | float) and not 0 < self.precision < 1:
            raise InvalidInput(
                "precision is how far the impact factor's interval may reach either way, above 0 "
                f"and below 1, such as 0.05; not {self.precision}"
            )
        check_fields(self)
        model, base_url = split_address(self.model, self.base_url)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "base_url", base_url)
        if self.pool and self.dataset:
            raise InvalidInput("give a pool to choose from or a dataset to take as it is, not both")
        if str(self.pool) == COMMON:
            self._check_common()
        object.__setattr__(self, "conditions", tuple(self.conditions))
        check(self.conditions)
        object.__setattr__(self, "header", validate_headers(self.header))
        object.__setattr__(self, "extra_body", _checked_body(self.extra_body))
        object.__setattr__(self, "price", _checked_price(self.price))

    def _check_common(self) -> None:
        for label, value, fits in (
            ("rules", resolve_rules(self.rules).key, self.change == BISHOPS_AS_KNIGHTS),
            ("eval", self.eval, self.eval != "all_diagonal"),
        ):
            if not fits:
                raise InvalidInput(
                    f"the pool {COMMON!r} is for {BISHOPS_AS_KNIGHTS.key} and the evals all and "
                    f"all_small, not for the {label} {value!r}; leave it out there"
                )

    @property
    def to_draw(self) -> int:
        """How many samples to draw."""
        return SAMPLES[self.eval] if self.n is None else self.n

    @property
    def asked_under(self) -> tuple[str, ...]:
        """The names of all conditions of the run."""
        return tuple(dict.fromkeys((*self.conditions, *(ASKED if self.diagnose else ()))))

    @property
    def change(self) -> Rules:
        """The changed rules.

        Raises:
            InvalidInput: if the key is unknown, or the rules cannot be measured.
        """
        change = resolve_rules(self.rules)
        check_forbids_something(change)
        return change


def _checked_body(value: str | Mapping[str, Any]) -> str:
    """Validate the extra body and return it as canonical JSON."""
    if not value:
        return ""
    try:
        body = json.loads(value) if isinstance(value, str) else dict(value)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        shown = shortened(value)
        raise InvalidInput(f'extra_body must be a JSON object such as {{"top_k": 20}}, not {shown}')
    for name in RESERVED_FIELDS & body.keys():
        raise InvalidInput(f"extra_body may not hold {name!r}: that is set by other options")
    return json.dumps(body, sort_keys=True)


def _checked_price(value: Iterable[float] | str | None) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        input_price, output_price = map(
            float, value.split(",") if isinstance(value, str) else value
        )
        usable = 0 <= input_price < inf and 0 <= output_price < inf
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise InvalidInput(
            "price must be IN,OUT, US dollars for a million tokens in and out such as 2.5,10, not "
            f"{value!r}"
        )
    return input_price, output_price


def check_batch(spec: Spec, model: ModelInfo) -> None:
    """Check that the model can answer the spec's requests in batches.

    Raises:
        InvalidInput: if it cannot.
    """
    if model.no_batches:
        raise InvalidInput(model.no_batches)
    if spec.fresh:
        raise InvalidInput(
            "what is in a batch is kept until it is there; leave out --fresh or --batch"
        )


def plan_for(spec: Spec, model: ModelInfo) -> Plan:
    """Resolve everything that the spec names.

    Raises:
        InvalidInput: if something it names does not exist or does not fit.
    """
    change, wording = spec.change, wording_named(spec.wording)
    if spec.batch:
        check_batch(spec, model)
    for effort in (spec.reasoning_effort, spec.select_effort):
        if effort not in (None, "none") and not model.may_think:
            raise InvalidInput(f"{model.name} does not think; leave out the effort {effort!r}")
    return Plan(
        eval=spec.eval,
        change=change,
        wording=wording.name,
        conditions=conditions_for(spec.asked_under, change, wording),
        reading=spec.reading,
        settings=Settings(
            **{name: getattr(spec, name) for name in SETTINGS},
            max_tokens=spec.max_tokens or model.max_tokens,
        ),
        select_effort=spec.select_effort or spec.reasoning_effort,
        wanted=min(spec.to_draw, spec.max_samples or spec.to_draw),
        precision=spec.precision,
    )
