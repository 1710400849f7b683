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

from ..client.batch.client import check_batch
from ..errors import InvalidInput, unknown_value
from ..game.rules import BISHOPS_AS_KNIGHTS, Rules, check_forbids_something, resolve_rules
from ..providers.base import EFFORTS, Effort, ModelInfo, Settings
from ..providers.http import split_address, validate_headers
from .conditions import ASKED, check, conditions_for
from .prompts import DEFAULT, wording_named
from .types import CHANGED_CONDITION, STANDARD_CONDITION, Eval, Plan, Reading

Made = TypeVar("Made")

LIMIT = 2**63
"""No number is this large: others could not read it from a file."""
_WORDS: dict[Any, str] = {
    **{str: "a text", int: "a whole number", float: "a number", bool: "True or False"},
    **{Mapping: "a mapping", Path: "a path", Rules: "a value such as MyRule()"},
}


def checked(made: Made) -> Made:
    """The same, once every field is known to be what its type says.

    Raises:
        ValueError: naming the field that is not.
    """
    for item, _, value in _misfits(made):
        raise ValueError(f"{item.name} cannot be {shortened(value)}")
    return made


def check_given(made: object) -> None:
    """Refuse a field that is not what its type says; what is not to be shown is not.

    Raises:
        InvalidInput: saying what it can be.
    """
    for item, kind, value in _misfits(made):
        large = isinstance(value, int | float) and abs(value) >= LIMIT
        told = f"{item.name} must be {_in_words(kind)}" + " between -2**63 and 2**63" * large
        raise InvalidInput(told + (f", not {shortened(value)}" if item.repr else ""))


def _misfits(made: Any) -> Iterator[tuple[Field[Any], Any, Any]]:
    """Every field that is not of its kind, the kind, and the value."""
    kinds = _kinds(made.__class__)
    for item in fields(made):
        kind, value = kinds[item.name], getattr(made, item.name)
        if not _is(value, kind):
            yield item, kind, value


@cache
def _kinds(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def _in_words(kind: Any) -> str:
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, types.UnionType):
        *others, last = (_in_words(one) for one in inner if one is not types.NoneType)
        return f"{', '.join(others)} or {last}" if others else last
    if outer is Literal:
        return " or ".join(map(repr, inner))
    if outer is tuple:
        return f"a tuple of {_in_words(inner[0]).removeprefix('a ')}s"
    return _WORDS[outer or kind]


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; an infinite number is none."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Literal:
        return any(value is one or (value == one and type(value) is type(one)) for one in inner)
    if outer in (Union, types.UnionType):
        return any(_is(value, one) for one in inner)
    if outer in (dict, Mapping):
        return isinstance(value, Mapping) and all(_is(one, inner[1]) for one in value.values())
    if outer in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(_is(one, inner[0]) for one in value)
    if kind in (int, float):
        fits = isinstance(value, kind | int) and not isinstance(value, bool)
        return fits and abs(value) < LIMIT and isfinite(value)
    return kind is Any or isinstance(value, outer or kind)


DEFAULT_MODEL = "cdta/pocket"
DEFAULT_SEED = 20_220_722
SHIPPED, GAMES, COMMON = "shipped", "games", "common"
"""The pools: the original's, those of the games inside the package, and the positions that at least
one of the shipped datasets holds."""
SETTINGS = [each.name for each in fields(Settings) if each.name != "max_tokens"]
"""Settings that are fields of the spec under the same name, and need no model to be known."""
OUR_FIELDS = {
    *("model", "messages", "prompt", "stop", "stream", "n", "temperature"),
    *("max_tokens", "max_completion_tokens", "reasoning_effort"),
}
"""What every request has anyway, or must not have."""
SAMPLES: dict[Eval, int] = {"all": 1000, "all_small": 100, "all_diagonal": 1000}


@dataclass(frozen=True)
class Spec:
    """What is to be measured and how; None stands for the default of the eval or the model.

    Attributes:
        model: any name that `providers.catalogue` knows; ``NAME@URL`` gives the server as well.
        base_url: the server that has the model.
        tag: tells the model from another behind the same name and address.
        header: more headers for every request, each ``NAME=VALUE`` or ``NAME=env:VARIABLE``; they
            are written nowhere, and should change no answer.
        pool: a file of positions to choose from, ``games`` for those inside the package, or
            ``common`` for those that at least one of the shipped datasets holds.
        dataset: a file of positions, or the name of a dataset (`cdta dataset list`).
        fallback_dataset: the dataset that serves a model that has none; None builds one.
        rules: the changed rules, or their key; rules of one's own are in docs/rules.md.
        diagnose: ask also why the habit stays: under all conditions of a diagnosis, and controls.
        n: how many samples are drawn, of which at most ``max_samples`` are measured.
        precision: stop as soon as the interval of the impact factor reaches no further from the
            value than this, either way; ``n`` are the most. None measures all.
        reasoning_effort: how much the model is asked to think; None for as it does by itself.
        reasoning_tokens: room for thoughts beside ``max_tokens``; None for as much as is needed.
        select_effort: the effort when its habits are found; None for as when it is measured.
        extra_body: more for the body of every request, as JSON.
        price: US dollars for a million tokens in and out, as ``IN,OUT``; None for the list's.
        max_cost: in US dollars; no question is asked that could pass it.
        ask_above: in US dollars; without a ``max_cost``, a run that will cost more by its first
            answers stops there. None for never.
        keep_looking: go through the whole pool, although it cannot give half of what is wanted.
        fresh: ask anew instead of taking answers of earlier runs, and keep none.
        batch: ask in batches, for half the price and some hours later.

    Raises:
        InvalidInput: if something cannot work.
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
        if isinstance(self.header, str):  # one alone
            object.__setattr__(self, "header", (self.header,))
        for what, given, valid in (
            ("eval", self.eval, get_args(Eval)),
            ("reading", self.reading, get_args(Reading)),
            ("reasoning effort", self.reasoning_effort, (None, *EFFORTS)),
            ("reasoning effort", self.select_effort, (None, *EFFORTS)),
        ):
            if given not in valid:
                raise unknown_value(what, str(given), [each for each in valid if each])
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
            given = getattr(self, name)
            if isinstance(given, int | float) and not (least <= given <= most and given < inf):
                bound = f"at least {least:g}" if most == inf else f"from {least:g} to {most:g}"
                raise InvalidInput(f"{name} must be {bound}, not {given}")
        if isinstance(self.precision, int | float) and not 0 < self.precision < 1:
            raise InvalidInput(
                "precision is how far the impact factor's interval may reach either way, above 0 "
                f"and below 1, such as 0.05; not {self.precision}"
            )
        check_given(self)
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
        for what, given, holds in (
            ("rules", resolve_rules(self.rules).key, self.change == BISHOPS_AS_KNIGHTS),
            ("eval", self.eval, self.eval != "all_diagonal"),
        ):
            if not holds:
                raise InvalidInput(
                    f"the pool {COMMON!r} is for {BISHOPS_AS_KNIGHTS.key} and the evals all and "
                    f"all_small, not for the {what} {given!r}; leave it out there"
                )

    @property
    def to_draw(self) -> int:
        """How many samples are drawn."""
        return SAMPLES[self.eval] if self.n is None else self.n

    @property
    def asked_under(self) -> tuple[str, ...]:
        """The names of all conditions of the run."""
        return tuple(dict.fromkeys((*self.conditions, *(ASKED if self.diagnose else ()))))

    @property
    def change(self) -> Rules:
        """The changed rules.

        Raises:
            InvalidInput: if there are none of that key, or they cannot be measured.
        """
        change = resolve_rules(self.rules)
        check_forbids_something(change)
        return change


def _checked_body(given: str | Mapping[str, Any]) -> str:
    """One JSON text for all that say the same."""
    if not given:
        return ""
    try:
        body = json.loads(given) if isinstance(given, str) else dict(given)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        told = shortened(given)
        raise InvalidInput(f'extra_body must be a JSON object such as {{"top_k": 20}}, not {told}')
    for name in OUR_FIELDS & body.keys():
        raise InvalidInput(f"extra_body may not hold {name!r}: that is set by other options")
    return json.dumps(body, sort_keys=True)


def _checked_price(given: Iterable[float] | str | None) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        asked, replied = map(float, given.split(",") if isinstance(given, str) else given)
        usable = 0 <= asked < inf and 0 <= replied < inf
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise InvalidInput(
            "price must be IN,OUT, US dollars for a million tokens in and out such as 2.5,10, not "
            f"{given!r}"
        )
    return asked, replied


def plan_for(spec: Spec, model: ModelInfo) -> Plan:
    """Look up what the spec names.

    Raises:
        InvalidInput: if something it names does not exist or does not fit.
    """
    change, wording = spec.change, wording_named(spec.wording)
    if spec.batch:
        check_batch(model, fresh=spec.fresh)
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
