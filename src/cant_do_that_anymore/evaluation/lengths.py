"""How many tokens the questions to come and their answers take: by kept answers, or by others'."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

from ..providers.base import ModelInfo, Question, Usage
from ..providers.chain_of_thought import Thinker
from ..task.spec import Spec
from .foresight import Part
from .tokens import MOVE_ANSWER_TOKENS, SOURCE, Span, counter_for, thought_at

FEW_KEPT = 20
"""With fewer kept answers of one step, those of the other are taken as well."""
AT_ONCE, THINKING, MEASURED = "if it replies at once", "if it thinks first", "as it did so far"


class Bases(NamedTuple):
    """What lengths rest on, in words."""

    input: str
    answer: str


_Kept = Sequence[tuple[Question, Usage]]


class Lengths(NamedTuple):
    """What the questions of a step take, and their answers by the way in which they are made.

    Attributes:
        input_tokens: of all questions together.
        answer: of one answer in the mean, by the title of the way.
        bases: what these rest on.
    """

    input_tokens: int
    answer: dict[str, Span]
    bases: Bases


def lengths_of(spec: Spec, known: ModelInfo, part: Part, other: Part) -> Lengths:
    """What a step of a run takes; the other step may tell what this one does not."""
    kept = part.kept
    if len(kept) < FEW_KEPT and part.settings.reasoning_effort == other.settings.reasoning_effort:
        kept = [*kept, *other.kept]
    tokens, on_input = _input(known, part, kept)
    answer, on_answer = _measured(kept) if kept else _expected(spec, known, part)
    return Lengths(tokens, answer, Bases(on_input, on_answer))


def _input(known: ModelInfo, part: Part, kept: _Kept) -> tuple[int, str]:
    count, exact = counter_for(known.name)
    tokens = sum(count(ask.question) for ask in part.to_ask)
    used = sum(usage.input_tokens for _, usage in kept)
    if used:
        by_our_count = sum(count(question) for question, _ in kept)
        return round(tokens * used / by_our_count), "as many tokens as in the kept answers"
    if isinstance(known, Thinker):  # asked twice, the second time with what it thought
        tokens = 2 * tokens + len(part.to_ask) * known.thinking_tokens
    if exact:
        return tokens, "tokens counted with the model's tokenizer"
    return tokens, "tokens estimated from characters, without its tokenizer, so only roughly"


def _measured(kept: _Kept) -> tuple[dict[str, Span], str]:
    tokens = [usage.output_tokens for _, usage in kept]
    thoughts = mean(usage.thinking_tokens for _, usage in kept)
    error = f" ± {1.96 * stdev(tokens) / sqrt(len(tokens)):,.0f}" if len(tokens) > 1 else ""
    of_thoughts = f", {thoughts:,.0f} of them thoughts" if thoughts else ""
    number = f"{len(tokens):,} kept answers" if len(tokens) > 1 else "1 kept answer"
    told = f"{mean(tokens):,.0f}{error} tokens{of_thoughts}, measured on {number}"
    return {MEASURED: Span(mean(tokens), mean(tokens))}, told


def _expected(spec: Spec, known: ModelInfo, part: Part) -> tuple[dict[str, Span], str]:
    reply = spec.max_tokens or MOVE_ANSWER_TOKENS
    move = f"all {reply:,} tokens allowed" if spec.max_tokens else f"a bare move, {reply} tokens"
    if isinstance(known, Thinker):
        reply += known.thinking_tokens
        return {AT_ONCE: Span(reply, reply)}, (
            f"taken to be all {known.thinking_tokens:,} tokens for thinking aloud, and {move}"
        )
    effort, room = part.settings.reasoning_effort, part.settings.reasoning_tokens
    at_once = {AT_ONCE: Span(reply, reply)}
    if not known.may_think or effort == "none" or room == 0:
        return at_once, f"taken to be {move}"
    thought, as_whom = thought_at(effort)
    if room:
        thought = Span(min(thought.least, room), min(thought.most, room))
    told = (
        f"{thought.least:,} to {thought.most:,} tokens if it thinks first, {as_whom} ({SOURCE}); "
        "after cdta run -n 10 its own answers are used"
    )
    if part.thinks:
        return {THINKING: thought}, told
    return {**at_once, THINKING: thought}, f"{move}, if it replies at once; {told}"
