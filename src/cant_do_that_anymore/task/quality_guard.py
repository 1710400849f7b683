"""Stop a run early when too many answers are unusable."""

from math import log

from ..errors import Incomplete
from ..providers.base import Answer, Settings
from ..providers.request_variants import limit_of

MIN_ANSWERS_TO_JUDGE = 20
# A sequential probability ratio test, which allows for a look after every reply: a run with up to
# a fifth of its replies spoiled is stopped with a chance of at most 1%.
MAX_SPOILED, CLEARLY_SPOILED, MAX_FALSE_STOPS = 0.2, 0.3, 0.01
MAX_UNREADABLE = 0.8


class QualityGuard:
    """Counts answers that are cut off, empty or unreadable.

    Empty and unreadable answers count only under the baseline condition. So a model that falls
    silent when the rules change does not stop the run: that is a result.

    Args:
        draws: how often each request is sent; the replies to it count as one, since they may all
            share its fate.
    """

    def __init__(self, settings: Settings, draws: int = 1) -> None:
        self._settings = settings
        self._draws = draws
        self._seen = self._cut_off = self._empty = self._standard = self._unreadable = 0
        self._cut_off_text = ""

    def observe(self, answer: Answer, *, usable: bool, baseline: bool) -> None:
        """Count one answer, and whether it was usable.

        Raises:
            Incomplete: if too many of the answers so far are unusable.
        """
        cut_off = answer.stop_reason == "length" and not usable
        empty = answer.stop_reason == "stop" and not answer.text.strip() and baseline
        self._seen += 1
        self._cut_off += cut_off
        if cut_off:
            self._cut_off_text = answer.text
        self._empty += empty
        if baseline and answer.stop_reason != "error":
            self._standard += 1
            self._unreadable += not usable
        spoiled = self._cut_off + self._empty
        if self._seen >= MIN_ANSWERS_TO_JUDGE and _too_many(spoiled, self._seen, self._draws):
            raise Incomplete(f"{spoiled} of the first {self._seen} replies {self._why(answer)}")
        enough = self._standard >= 2 * MIN_ANSWERS_TO_JUDGE
        if enough and self._unreadable > MAX_UNREADABLE * self._standard:
            raise Incomplete(
                f"{self._unreadable} of the first {self._standard} replies under the standard "
                f"rules contain no move; the last one was {answer.text[:80]!r}"
            )

    def _why(self, answer: Answer) -> str:
        """Describe what is wrong with the answers, and what to do about it."""
        if not self._cut_off:
            reasoning = "" if answer.text.strip() else answer.reasoning
            example = f"; the last one was reasoning only: {reasoning[:80]!r}" if reasoning else ""
            return f"were empty without reaching a token limit{example}"
        state = f"empty ({self._empty}) or cut off" if self._empty else "cut off"
        limit = self._limit_to_raise(answer)
        if not self._cut_off_text.strip():
            return f"were {state} before a move; raise {limit}"
        return (
            f"were {state} and begin without a move, such as {self._cut_off_text[:80]!r}; try "
            f"another --wording, or raise {limit} if a move would follow"
        )

    def _limit_to_raise(self, answer: Answer) -> str:
        """Return the option whose limit cuts such answers off."""
        limit = limit_of(answer.conceded, self._settings)
        if limit > self._settings.max_tokens:
            return f"--reasoning-tokens (now {limit - self._settings.max_tokens:,})"
        return f"--max-tokens (now {self._settings.max_tokens})"


def _too_many(spoiled: int, seen: int, draws: int) -> bool:
    """Whether clearly more than `MAX_SPOILED` of the replies are spoiled."""
    evidence = spoiled * log(CLEARLY_SPOILED / MAX_SPOILED)
    evidence += (seen - spoiled) * log((1 - CLEARLY_SPOILED) / (1 - MAX_SPOILED))
    return evidence / draws > -log(MAX_FALSE_STOPS)
