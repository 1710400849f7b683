"""Stop a run early when too many answers are unusable."""

from ..errors import Incomplete
from ..providers.base import Answer, Settings
from ..providers.request_variants import limit_of

FEWEST_TO_JUDGE = 20
MOST_SPOILED = 0.2
MOST_UNREADABLE = 0.8


class QualityGuard:
    """Counts replies that the token limit spoiled, and replies that do not tell what was asked for.

    Empty and unreadable replies count only under the baseline condition, and so do not stop the run
    of a model that falls silent when the rules change: that is a result.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen = 0
        self._cut_off = 0
        self._empty = 0
        self._standard = 0
        self._unreadable = 0

    def see(self, answer: Answer, *, usable: bool, baseline: bool) -> None:
        """Count one answer, and whether it was of use.

        Raises:
            Incomplete: if too many of the replies so far are of no use.
        """
        cut_off = answer.stop_reason == "length" and not usable
        empty = answer.stop_reason == "stop" and not answer.text.strip() and baseline
        self._seen += 1
        self._cut_off += cut_off
        self._empty += empty
        if baseline and answer.stop_reason != "error":
            self._standard += 1
            self._unreadable += not usable
        spoiled = self._cut_off + self._empty
        if self._seen >= FEWEST_TO_JUDGE and spoiled > MOST_SPOILED * self._seen:
            raise Incomplete(f"{spoiled} of the first {self._seen} replies {self._why(answer)}")
        if (
            self._standard >= 2 * FEWEST_TO_JUDGE
            and self._unreadable > MOST_UNREADABLE * self._standard
        ):
            raise Incomplete(
                f"{self._unreadable} of the first {self._standard} replies under the standard "
                f"rules name no move; the last one was {answer.text[:80]!r}"
            )

    def _why(self, answer: Answer) -> str:
        """What spoiled the replies, and what can be done about it."""
        if not self._cut_off:
            thoughts = "" if answer.text.strip() else answer.reasoning
            told = f"; the last one was thoughts alone: {thoughts[:80]!r}" if thoughts else ""
            return f"were empty, and no limit cut them off{told}"
        how = f"empty ({self._empty}) or cut off" if self._empty else "cut off"
        return f"were {how} before a move; raise {self._too_small(answer)}"

    def _too_small(self, answer: Answer) -> str:
        """The limit that cuts such replies off."""
        limit = limit_of(answer.conceded, self._settings)
        if limit > self._settings.max_tokens:
            return f"--reasoning-tokens (now {limit - self._settings.max_tokens:,})"
        return f"--max-tokens (now {self._settings.max_tokens})"
