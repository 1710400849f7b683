"""What can be asked of a run, the defaults, and what cannot work."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import get_args

from ..errors import BadInput, unknown
from ..game.rules import BISHOPS_AS_KNIGHTS, STANDARD, Rules, rules_named
from ..models.model import Known, Settings
from .conditions import CONDITIONS, check, conditions_for
from .vocabulary import AFTER, BEFORE, Eval, Plan, Reading
from .wordings import DEFAULT, wording_named

DEFAULT_MODEL = "cdta/pocket"
DEFAULT_SEED = 20_220_722
SAMPLES: dict[Eval, int] = {"all": 1000, "all_small": 100, "all_diagonal": 1000}


@dataclass(frozen=True)
class Spec:
    """What is to be measured and how; None stands for the default of the eval or the model.

    Attributes:
        model: any name that `models.names` knows.
        base_url: the server that has the model.
        pool: a file of positions to choose from.
        dataset: a file of positions, or the name of a dataset (`cdta dataset list`).
        fallback_dataset: the dataset that serves a model that has none; None builds one.
        rules: the changed rules, or their key.
        n: how many samples are drawn, of which at most ``max_samples`` are measured.
        max_cost: in US dollars; no question is asked that could pass it.
        fresh: ask anew instead of taking answers of earlier runs, and keep none.

    Raises:
        BadInput: if something cannot work.
    """

    model: str | None = None
    base_url: str | None = None
    eval: Eval = "all"
    pool: Path | None = None
    dataset: Path | str | None = None
    fallback_dataset: str | None = None
    rules: Rules | str = BISHOPS_AS_KNIGHTS.key
    wording: str = DEFAULT.name
    conditions: tuple[str, ...] = (BEFORE, AFTER)
    reading: Reading = "lenient"
    n: int | None = None
    max_samples: int | None = None
    seed: int = DEFAULT_SEED
    temperature: float = 1.0
    max_tokens: int | None = None
    max_connections: int | None = None
    max_error_rate: float = 0.05
    max_cost: float | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        for what, given, valid in (
            ("eval", self.eval, SAMPLES),
            ("reading", self.reading, get_args(Reading)),
            *(("condition", name, CONDITIONS) for name in self.conditions),
        ):
            if given not in valid:
                raise unknown(what, given, valid)
        for name, least, most in (
            ("temperature", 0.0, inf),
            ("max_cost", 0.0, inf),
            ("max_error_rate", 0.0, 1.0),
            ("n", 1, inf),
            ("max_samples", 1, inf),
            ("max_tokens", 1, inf),
            ("max_connections", 1, inf),
        ):
            given = getattr(self, name)
            if given is not None and not (least <= given <= most and given < inf):
                bound = f"at least {least:g}" if most == inf else f"from {least:g} to {most:g}"
                raise BadInput(f"{name} must be {bound}, not {given}")
        if self.pool and self.dataset:
            raise BadInput("give a pool to choose from or a dataset to take as it is, not both")
        check(self.conditions)

    @property
    def to_draw(self) -> int:
        """How many samples are drawn."""
        return SAMPLES[self.eval] if self.n is None else self.n

    @property
    def change(self) -> Rules:
        """The changed rules.

        Raises:
            BadInput: if there are none of that key, or they change nothing.
        """
        change = self.rules if isinstance(self.rules, Rules) else rules_named(self.rules)
        if change == STANDARD:
            raise BadInput("the rules of a run must differ from standard chess; see cdta rules")
        return change


def plan_for(spec: Spec, model: Known) -> Plan:
    """Look up what the spec names.

    Raises:
        BadInput: if something it names does not exist or does not fit.
    """
    change, wording = spec.change, wording_named(spec.wording)
    return Plan(
        eval=spec.eval,
        change=change,
        wording=wording.name,
        conditions=conditions_for(spec.conditions, change, wording),
        reading=spec.reading,
        settings=Settings(spec.temperature, spec.max_tokens or model.max_tokens, spec.seed),
        wanted=min(spec.to_draw, spec.max_samples or spec.to_draw),
    )
