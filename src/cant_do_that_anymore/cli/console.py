"""The terminal as commands write to it."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ..errors import visible


class _Terminal(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is printed, but nothing that would steer the terminal unless we do."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def console(width: int | None = None) -> Console:
    """Shows every text as it is: what a user or a model calls something is no markup."""
    return _Terminal(width=width, markup=False, emoji=False)
