"""The commands ``cdta show`` and ``cdta prompt``: samples of a run, and what a model is sent."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice, product

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ...formatting import pluralize
from ...habits.catalog import resolve_change
from ...metrics.measures import violation
from ...runs.lookup import LATEST_RUN, find_run, name_of
from ...runs.storage import load_run
from ...task.conditions import CONDITIONS, question
from ...task.option_info import TASK
from ...task.prompts import wordings_named
from ...task.types import CHANGED_CONDITION, STANDARD_CONDITION, Condition, Sample
from ..console import console
from ..help import AT_LEAST_1, JSON, OUTPUT, Command, Option
from ..options import CLICK_OPTIONS

VIOLATION = violation(CHANGED_CONDITION)
LONGEST_REPLY = 1500  # characters; `cdta view` shows all of it


@click.command(
    "show",
    cls=Command,
    params=[
        Option("--failed", OUTPUT, "Only answers that break the changed rules."),
        Option("-n N", OUTPUT, "Number of samples.", type=AT_LEAST_1, default=3),
    ],
)
@click.argument("name", metavar="[RUN]", default=LATEST_RUN)
def show_command(name: str, failed: bool, n: int) -> None:
    """Show samples of a run: the items, the prompts and the replies.

    \b
    cdta show                        the first three samples of the latest run
    cdta show gpt-4o --failed -n 5   five answers that break the changed rules

    RUN is a folder, part of its name, a model's name, a tag, or latest (the default). If several
    runs match, the newest is shown.
    """
    folder = find_run(name)
    run = load_run(folder)
    screen, total, rule = console(), pluralize(len(run.samples), "sample"), run.plan.change.title
    breaks = [sample for sample in run.answered if VIOLATION.holds(sample)]
    chosen = breaks if failed else run.samples
    failure = f"the reply gives no {run.words.allowed} {run.words.answer}"
    when = f"when {rule[0].lower()}{rule[1:]}"
    screen.print(f"{run.version}: {total}. In {len(breaks)} of them, {failure} {when}.")
    screen.print(f"run: {name_of(folder)}", style="dim", soft_wrap=True)
    printed: set[str] = set()
    several = len(run.plan.wordings) > 1
    for place, sample in enumerate(islice(chosen, n), 1):
        wording = f", wording {run.plan.wording_of(sample.item)}" if several else ""
        screen.print()
        screen.rule(f"{place} of {len(chosen)}: sample {sample.item.id}{wording}", align="left")
        _print_sample(sample, run.plan.conditions, printed, screen)


def _print_sample(
    sample: Sample, conditions: Sequence[Condition], printed: set[str], screen: Console
) -> None:
    """Print an item with its replies; each prompt is printed once, above the first reply to it."""
    item, habit = sample.item, conditions[0].rules.its_habit
    usual = " or ".join(habit.label(item, answer) for answer in item.usual)
    screen.print(Text(f"{habit.show(item)} Usual {habit.words.answer}: {usual}"))
    for condition in conditions:
        score, answer = sample.replies[condition.name], sample.answers[condition.name]
        given = f" ({habit.label(item, score.answer)})" if score.answer else ""
        label = habit.words.labels.get(score.outcome, score.outcome)
        screen.print(f"\n{condition.name}: {label}{given}", style="bold")
        for prompt in (condition.prompt(item).text, condition.suffix(item)):
            if prompt and prompt not in printed:
                screen.print(_indented(prompt), style="italic")
                printed.add(prompt)
        text = answer.text.strip() or answer.error or "(empty reply)"
        if len(text) > LONGEST_REPLY:
            text = f"{text[:LONGEST_REPLY]} ... ({len(text):,} characters)"
        screen.print(_indented(f"> {text}"))


def _indented(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, 2), expand=False)


@click.command(
    "prompt",
    cls=Command,
    params=[
        Option(
            "--condition names C",
            TASK,
            f"One of {', '.join(CONDITIONS)}; repeatable.",
            multiple=True,
            default=(STANDARD_CONDITION, CHANGED_CONDITION),
        ),
        *(CLICK_OPTIONS[name] for name in ("rules", "wording", "form")),
        JSON,
    ],
)
def prompt_command(
    names: tuple[str, ...], rules: str, wording: str, form: str, as_json: bool
) -> None:
    """Print the messages that are sent to a model.

    \b
    cdta prompt
    cdta prompt --rules no-castling --condition placebo

    It sends nothing. The item is an example. A base model gets the messages as one text. Servers
    that reject this format get another one, which the notes of a run describe.
    """
    change = resolve_change(rules)
    change.check_forbids_something()
    item = next(iter(change.its_habit.examples(change)))
    wordings, prompts = wordings_named(wording, change), {}
    for condition, texts in product(names, wordings):
        title = f"{condition}, {texts.name}" if len(wordings) > 1 else condition
        prompts[title] = question(item, change, condition, texts, form).messages
    if as_json:
        found = {title: list(map(asdict, messages)) for title, messages in prompts.items()}
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    screen = console()
    for place, (title, messages) in enumerate(prompts.items()):
        screen.print(f"{chr(10) if place else ''}== {title} ==", style="bold")
        for message in messages:
            screen.print(f"{message.role}: {message.content}", soft_wrap=True)
