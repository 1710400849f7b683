"""The console that commands print to."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ..formatting import visible


class _Terminal(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render with control characters made visible, except our own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def console(width: int | None = None) -> Console:
    """Create a console that prints names of users and models literally, and in one color."""
    return _Terminal(width=width, markup=False, emoji=False, highlight=False)
