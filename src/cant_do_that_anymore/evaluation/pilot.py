"""A pilot: some questions of a run, asked before it, to learn how long its answers are."""

import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from ..errors import BadInput, Interrupted, Unfinished
from ..models.asks import Ask
from ..models.concessions import limit_of, with_room
from ..models.model import ROOM_TO_THINK, Model, Usage
from ..models.purse import Purse, Spent, most_input_tokens
from ..models.reasoning import Thinker
from ..models.stopping import to_the_end
from ..progress import progress
from .estimate import foreseen_for
from .foresight import Part
from .prices import price_for
from .spec import Spec
from .whom import asking_for, known_for, model_for


@dataclass(frozen=True)
class Pilot:
    """The questions of a pilot, ready to be asked.

    Attributes:
        most: the tokens that they may take at most.
        most_cost: what they may cost at most in US dollars; None if the price is unknown.
    """

    spec: Spec
    model: Model
    part: Part
    asks: list[Ask]
    most: Usage
    most_cost: float | None

    def ask(self) -> float:
        """Ask, and keep the answers for the run.

        Returns:
            The seconds that an answer takes.

        Raises:
            Unfinished: if not all could be answered, or not for what they may cost at most.
            Problem: as the model does.
        """
        connections = self.spec.max_connections or self.model.connections
        started = time.monotonic()
        to_the_end(self._asked())
        at_once = min(connections, len(self.asks))
        return (time.monotonic() - started) * at_once / len(self.asks)

    async def _asked(self) -> None:
        name, settings = self.model.name, self.part.settings
        purse = None if self.most_cost is None else Purse(self.most_cost)
        with progress(f"the pilot of {name}", len(self.asks), quiet=False) as advance:
            async with (
                asking_for(self.spec, self.model, purse) as asking,
                aclosing(asking.answers(self.asks, settings)) as answers,
            ):
                try:
                    async for answer in answers:
                        if answer.error:
                            raise Unfinished(f"{name} does not answer ({answer.error})")
                        advance()
                except Spent:
                    raise Interrupted(
                        f"the pilot of {name} stopped before it could cost more",
                        "its answers are kept",
                    ) from None


def pilot_of(spec: Spec, answers: int) -> Pilot | None:
    """What is to be asked to have so many answers of a run; None if they are there already.

    Raises:
        BadInput: if the spec cannot work, or nothing would be kept.
    """
    if spec.fresh:
        raise BadInput("the answers of a pilot are kept for the run; leave out --fresh or --pilot")
    spec = replace(spec, batch=False)  # who asks for a pilot waits for it
    part = foreseen_for(spec, known_for(spec)).certain
    asks = part.to_ask[: max(0, answers - part.answered)]
    if not asks:
        return None
    model = model_for(spec)
    requests = [most for ask in asks for most in _requests(ask, part, model)]
    most, price = sum(requests, Usage()), price_for(spec, model)
    cost = price.of(most, len(requests)) if price else None
    return Pilot(spec, model, part, asks, most, cost)


def _requests(ask: Ask, part: Part, model: Model) -> Iterator[Usage]:
    """The most that each of the requests takes which a question may need."""
    limit, tokens = limit_of(part.form, part.settings), most_input_tokens(ask.question)
    yield Usage(tokens, limit)
    if isinstance(model, Thinker):
        thoughts = max(model.thinking_tokens, part.settings.max_tokens)
        yield Usage(2 * (tokens + thoughts), thoughts)
    elif model.may_think and part.may_need_room:  # which is found out by asking
        yield Usage(tokens, limit_of(with_room(part.form, ROOM_TO_THINK), part.settings))
