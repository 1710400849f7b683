"""What can be asked of a run, and the defaults."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..game.rules import BISHOPS_AS_KNIGHTS
from .judging import Reading

DEFAULT_MODEL = "cdta/pocket"
DEFAULT_SEED = 20_220_722

Eval = Literal["all", "all_small", "all_diagonal"]
SAMPLES: dict[Eval, int] = {"all": 1000, "all_small": 100, "all_diagonal": 1000}


@dataclass(frozen=True)
class Spec:
    """What is to be measured and how; None stands for the default of the eval or the model.

    Attributes:
        dataset: a file of positions, or the name of a dataset (`cdta dataset list`).
        max_samples: measure at most so many of the ``n`` samples drawn.
        fallback_dataset: the version whose dataset serves a model that has none; None builds one.
        fresh: ask anew instead of taking answers of earlier runs, and keep none.
    """

    model: str | None = None
    base_url: str | None = None
    eval: Eval = "all"
    pool: Path | None = None
    dataset: Path | str | None = None
    fallback_dataset: str | None = None
    rules: str = BISHOPS_AS_KNIGHTS.key
    wording: str = "default"
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

    @property
    def to_draw(self) -> int:
        """How many samples are drawn."""
        return SAMPLES[self.eval] if self.n is None else self.n
