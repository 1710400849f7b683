"""Random runs on servers that charge: do limits hold, and do forecasts hold the true cost?

    python benchmarks/money.py --scenarios 200

Every scenario is a model on a loopback server, with a hit rate, a way of reasoning and faults that
are drawn at random. The server's ledger is the truth. A command runs with `--max-cost` or with
`--ask-above`, again and again until it is finished. Where it needs approval, it gets what a user at
a terminal would be asked for. Where `--max-cost` is refused, it gets what would be enough, as the
message says; where it is spent, it is doubled. The table shows, for each way of reasoning:

- how many scenarios had a command that spent more than `--max-cost`, or more than `--ask-above` and
  what was in flight: its dearest requests, as many as there are connections (a batch is one);
- how often the rest of the cost was within the forecast after the first answers, within the latest
  forecast when half of the cost was charged, within the one that a user approved last, and within
  the one in force: the approved one, or the one at half where nothing needed approval;
- the median of the high end divided by the low end of the first and of the one in force;
- how often a user was asked.

In some scenarios, the first command runs in two processes at once, which share the cache. Each has
a limit of its own, and the server tells them apart by a header.

With `--log FILE`, the outcomes are appended to a file, and the table is of all outcomes in it.

With `--late`, it shows instead how wide the first range would be if some share of the models that
reply without reasoning at first were taken to reason later.
"""

import argparse
import json
import logging
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any
from unittest.mock import patch

from aiohttp import web
from measuring import print_heading, print_row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from batches import BatchServer
from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client import client
from cant_do_that_anymore.client.batch import client as batch_client
from cant_do_that_anymore.client.batch import jobs
from cant_do_that_anymore.client.budget import NOTHING, Budget, BudgetExceeded, Range
from cant_do_that_anymore.client.pricing import BATCH_RATE
from cant_do_that_anymore.comparison import experiment
from cant_do_that_anymore.costs import approval
from cant_do_that_anymore.costs.forecast import Figures, estimate
from cant_do_that_anymore.costs.simulation import Draw, StepModel
from cant_do_that_anymore.costs.tokens import reasoning_tokens_at
from cant_do_that_anymore.errors import (
    InvalidInput,
    NeedsApproval,
    NoHabit,
    UserError,
)
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.runs.storage import save_run
from charging import charge, price_list
from loopback import Body, is_changed, moves_in, serving
from players import SPECIAL

POOL = 1_000
REPLY, MOVE, TURN = 5, 3, 4
"""Tokens of a reply, of a move in the prompt, and around every message."""
KINDS = {"none": 4, "constant": 4, "changed rules only": 2, "starts late": 2, "grows": 2}
"""Ways of reasoning, and how often each is drawn."""
SEEN = "none", "constant", "changed rules only"
"""Those that the first answers show."""
MAX_COMMANDS = 50
PROCESS = "X-Process"
"""The header that names the process."""


@dataclass
class Server(BatchServer):
    """A model with a hit rate and a way of reasoning, whose server keeps a ledger.

    Attributes:
        ledger: the dollars of every answer, or of every batch.
        by_process: the dollars of every answer outside a batch, by the process that was charged.
        loses: every so many answers are charged and never arrive; 0 for none.
    """

    kind: str = "none"
    tokens: int = 0
    begins: int = 0
    counts: bool = True
    loses: int = 0
    takes_temperature: bool = True
    ledger: list[float] = field(default_factory=list)
    by_process: dict[str, list[float]] = field(default_factory=dict)
    answered: int = 0

    def __post_init__(self) -> None:
        self.fault = self._fail

    async def _fail(self, request: Body, number: int) -> web.StreamResponse | None:
        request["process"] = self.headers[number - 1].get(PROCESS, "")
        if not self.takes_temperature and request.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support 0 with this model."
            return web.json_response({"error": {"message": message}}, status=400)
        if self.loses and number % self.loses == 0:
            self.completion(request)
            return web.Response()
        return None

    def reasons(self, request: Body) -> int:
        """How many tokens it reasons about a request."""
        self.answered += 1
        chance = Random(str(moves_in(request)))
        share = {
            "none": 0.0,
            "constant": 1.0,
            "changed rules only": float(is_changed(request)),
            "starts late": float(self.answered > self.begins),
            "grows": min(2.0, 0.3 + self.answered / (3 * self.begins)),
        }[self.kind]
        return round(self.tokens * share * chance.lognormvariate(-0.08, 0.4))

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request)
        (choice,), usage = completion["choices"], completion["usage"]
        limit = request.get("max_tokens") or request["max_completion_tokens"]
        reasoning = self.reasons(request)
        if reasoning + REPLY > limit:
            reasoning = limit
            choice["message"]["content"], choice["finish_reason"] = "", "length"
        system, *turns = request["messages"]
        usage["prompt_tokens"] = len(system["content"]) // 4 + TURN + len(turns) * (MOVE + TURN)
        usage["completion_tokens"] = min(limit, reasoning + REPLY)
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        if "path" in request:
            self.ledger.append(charge(usage))
            self.by_process.setdefault(request["process"], []).append(charge(usage))
        else:
            self.ledger[-1] += BATCH_RATE * charge(usage)
        return completion if self.counts else completion | {"usage": None}

    def made(self, wanted: dict[str, Any]) -> dict[str, Any]:
        self.ledger.append(0.0)
        return super().made(wanted)


@dataclass(frozen=True)
class Scenario:
    """One random scenario; see `drawn`."""

    kind: str
    rate: float
    n: int
    models: int
    processes: int
    limit: str
    spec: dict[str, Any]
    server: dict[str, Any]
    dollars: float

    def serve(self, number: int) -> Server:
        """Return the server of one of its models."""

        def plays(request: Body) -> str:
            moves = moves_in(request)
            return SPECIAL[moves] if Random(f"{number} {moves}").random() < self.rate else "a2a3"

        return Server(plays, **self.server)


def drawn(seed: int) -> Scenario:
    """Draw a scenario."""
    chance = Random(seed)
    (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
    rate = 0.005 * 120 ** chance.random()
    n = chance.choice([5, 20, 60, 150])
    tokens = 0 if kind == "none" else chance.choice([100, 400, 1_500, 3_000])
    batch = chance.random() < 0.15
    requests = min(POOL, n / rate) + 2 * n
    server = {
        "kind": kind,
        "tokens": tokens,
        "begins": chance.choice([30, 100, 300]),
        "counts": chance.random() > 0.1,
        "loses": chance.choice([0, 0, 0, 0, 10, 30]),
        "takes_temperature": chance.random() > 0.1,
        "polls": 0,
    }
    limit = chance.choice(["ask_above", "ask_above", "max_cost"])
    each = 0.015 + 0.001 * tokens * (0.2 if kind == "changed rules only" else 1)
    return Scenario(
        kind=kind,
        rate=rate,
        n=n,
        models=(models := 2 if chance.random() < 0.15 else 1),
        processes=2 if models == 1 and not batch and Random(-seed - 1).random() < 0.15 else 1,
        limit=limit,
        spec={
            "n": n,
            "batch": batch,
            "max_connections": chance.choice([2, 4, 16]),
            "keep_looking": chance.random() < 0.5,
        },
        server=server,
        dollars=round(requests * each * 10 ** chance.uniform(-1, 0.5), 2),
    )


@dataclass
class Outcome:
    """What happened in a scenario.

    Attributes:
        over: by how much commands spent more than a limit and what was in flight.
        forecasts: what the servers had charged at each forecast, and the forecast of the rest.
        approved: the number of the forecast that a user approved last.
        total: what they charged in the end.
        approvals: how often a user was asked.
        refused: whether the limit was refused as too low.
        end: how the last command ended.
    """

    over: float = 0.0
    forecasts: list[tuple[float, Range]] = field(default_factory=list)
    approved: int = 0
    total: float = 0.0
    approvals: int = 0
    refused: bool = False
    end: str = "finished"

    def holds(self, number: int) -> bool | None:
        """Whether a forecast held what was still to come; None if nothing was."""
        if not self.forecasts or self.end == "failed":
            return None
        charged, cost = self.forecasts[number]
        return cost.low - 1e-9 <= self.total - charged <= cost.high + 1e-9

    @property
    def at_half(self) -> int:
        """The number of the latest forecast when half of the cost was charged."""
        return max(0, sum(charged <= self.total / 2 for charged, _ in self.forecasts) - 1)

    @property
    def in_force(self) -> int:
        """The number of the forecast that a user approved last, or of the one at half."""
        return self.approved if self.approvals else self.at_half

    def width(self, number: int) -> float | None:
        """The high end of a forecast divided by its low end."""
        cost = self.forecasts[number][1] if self.forecasts else Range(0, 0, 0)
        return cost.high / cost.low if cost.low else None


class Trial:
    """Runs the commands of a scenario."""

    def __init__(
        self, scenario: Scenario, pool: Path, folder: Path, servers: Sequence[Server]
    ) -> None:
        self._scenario, self._servers, self._folder = scenario, servers, folder
        self._common = {"model": "priced", "pool": pool, **scenario.spec}
        self._processes = scenario.processes
        self.outcome = Outcome()

    @property
    def _charged(self) -> float:
        return sum(sum(server.ledger) for server in self._servers)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        check = approval.check_approval

        def record(figures: Figures, spec: Spec, budget: Budget, *more: Any) -> None:
            cost = budget.later.plus(figures.dollars or NOTHING)
            if cost.high:
                self.outcome.forecasts.append((self._charged, cost))
            check(figures, spec, budget, *more)

        with (
            patch.object(approval, "check_approval", record),
            patch.object(experiment, "check_approval", record),
        ):
            yield

    def _command(self, limit: float, **limits: Any) -> None:
        """Run one command, and compare what it was charged with its limit."""
        before, entries = self._charged, [len(server.ledger) for server in self._servers]
        try:
            specs = [Spec(base_url=each.url, **self._common, **limits) for each in self._servers]
            if self._processes == 2:
                self._in_two_processes(specs[0], limit)
                return
            if len(specs) == 1:
                evaluate(specs[0], quiet=True)
                return
            titled = {f"model {number}": [spec] for number, spec in enumerate(specs)}
            _, failures = experiment.run_all(titled, self._folder / "out", save_run, quiet=True)
            for failure in sorted(failures.values(), key=lambda each: isinstance(each, NoHabit)):
                raise failure
        finally:
            in_flight = 0.0
            if limits.get("max_cost") is None:
                new = [
                    cost
                    for server, seen in zip(self._servers, entries, strict=True)
                    for cost in server.ledger[seen:]
                ]
                in_flight = sum(sorted(new)[-self._common["max_connections"] :])
            if self._processes == 1:
                over = self._charged - before - limit - in_flight
                self.outcome.over = max(self.outcome.over, over)
            self._processes = 1

    def _in_two_processes(self, spec: Spec, limit: float) -> None:
        """Run a command twice at once, and compare what each was charged with its limit."""
        context = multiprocessing.get_context("spawn")
        names = "first", "second"
        specs = [replace(spec, header=(f"{PROCESS}={name}",)) for name in names]
        with context.Pool(2) as pool:
            results = pool.map(_evaluate_alone, specs)
        for name in names:
            costs = self._servers[0].by_process.get(name, [])
            in_flight = sorted(costs)[-self._common["max_connections"] :]
            over = sum(costs) - limit - (sum(in_flight) if spec.max_cost is None else 0.0)
            self.outcome.over = max(self.outcome.over, over)
        for approve in filter(None, results):
            raise NeedsApproval("more", approve)

    def run(self) -> Outcome:
        """Run it to its end."""
        outcome, above = self.outcome, self._scenario.dollars
        with self._recording():
            for _ in range(MAX_COMMANDS):
                outcome.end = "finished"
                try:
                    both = self._processes == 2
                    self._command(above, **{self._scenario.limit: above})
                    if both:
                        continue  # to compare the forecast of one process
                except InvalidInput as error:
                    if not outcome.forecasts:
                        raise
                    outcome.refused, outcome.end = True, str(error)
                    above = outcome.forecasts[-1][1].high
                    continue
                except BudgetExceeded as error:
                    outcome.end = str(error)
                    above *= 2
                    continue
                except NeedsApproval as needed:
                    above = needed.approve
                    outcome.approvals += 1
                    outcome.approved = len(outcome.forecasts) - 1
                    continue
                except NoHabit:
                    outcome.end = "no habit"
                except UserError as error:
                    outcome.end = str(error)
                break
        if outcome.end not in ("finished", "no habit"):
            print(f"failed: {outcome.end}", file=sys.stderr)
            outcome.end = "failed"
        outcome.total = self._charged
        return outcome


def _evaluate_alone(spec: Spec) -> float:
    """Run a command in a process of its own; return the dollars to approve, or 0.

    Other errors appear again in the command that follows.
    """
    _be_quick()
    with price_list():
        try:
            evaluate(spec, quiet=True)
        except NeedsApproval as needed:
            return needed.approve
        except UserError:
            pass
    return 0.0


def _be_quick() -> None:
    """Wait less between attempts than usual, and log nothing."""
    logging.disable(logging.WARNING)
    batch_client.QUIET_SECONDS, jobs.FIRST_POLL = 0.01, 0.01
    client.FIRST_WAIT, client.LONGEST_WAIT = 0.001, 0.01


def outcome_of(scenario: Scenario, pool: Path) -> Outcome:
    """Run a scenario with a cache of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(patch.dict(os.environ, CDTA_HOME=str(folder / "home")))
        servers = [stack.enter_context(serving(scenario.serve(i))) for i in range(scenario.models)]
        return Trial(scenario, pool, folder, servers).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--late", action="store_true", help="only the width by share of models")
    parser.add_argument("--log", type=Path, help="a file of outcomes, to append to")
    options = parser.parse_args()
    _be_quick()
    if options.late:
        _print_late()
        return
    outcomes = _outcomes_in(options.log) if options.log and options.log.exists() else []
    with tempfile.TemporaryDirectory() as folder, price_list():
        pool = Path(folder) / "pool.jsonl"
        write_positions(pool, shipped_pool("pool")[:POOL])
        for seed in range(options.first, options.first + options.scenarios):
            started, scenario = time.monotonic(), drawn(seed)
            outcome = outcome_of(scenario, pool)
            outcomes.append((scenario, outcome))
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps({"seed": seed} | asdict(outcome)) + "\n")
            print(_line(seed, scenario, outcome, time.monotonic() - started), file=sys.stderr)
    _print_table(outcomes)


def _print_late() -> None:
    """Print the first range of a run of 60 samples at 10% hits, by share of late reasoning."""
    scenario = Scenario("none", 0.1, 60, 1, 1, "ask_above", {}, {"begins": 1}, 1.0)
    print_heading("share that reasons later", "low end", "high end", "width")
    with (
        tempfile.TemporaryDirectory() as folder,
        price_list(),
        patch.dict(os.environ, CDTA_HOME=folder),
        serving(scenario.serve(0)) as server,
    ):
        spec = Spec(model="priced", base_url=server.url, n=60, ask_above=scenario.dollars)
        with suppress(NeedsApproval):
            evaluate(spec, quiet=True)
        for share in (0.0, 0.02, 0.05, 1 / 3):
            with patch.object(StepModel, "draw", _late_draw(share)):
                low, _, high = estimate(spec).total.dollars or NOTHING
            print_row(f"{share:.0%}", f"${low:,.2f}", f"${high:,.2f}", f"{high / low:.0f}")


def _late_draw(share: float) -> Callable[..., Draw]:
    """Return a draw of a step in which that share of runs reasons as models do at all efforts."""
    draw, chance = StepModel.draw, Random(0)
    low, high, _ = reasoning_tokens_at(None)
    both_steps = (is_late for _ in count() for is_late in [chance.random() < share] * 2)

    def draw_late(model: StepModel, *args: Any, **more: Any) -> Draw:
        answer = model.answer
        if next(both_steps):
            model.answer = answer._replace(low=low, high=high)
        drawn_now = draw(model, *args, **more)
        model.answer = answer
        return drawn_now

    return draw_late


def _outcomes_in(log: Path) -> list[tuple[Scenario, Outcome]]:
    outcomes = []
    for line in log.read_text().splitlines():
        values = json.loads(line)
        seed = values.pop("seed")
        values["forecasts"] = [(charged, Range(*cost)) for charged, cost in values["forecasts"]]
        outcomes.append((drawn(seed), Outcome(**values)))
    return outcomes


def _line(seed: int, scenario: Scenario, outcome: Outcome, seconds: float) -> str:
    spec, server = scenario.spec, scenario.server
    ranges = [
        f"{cost.low:.2f}-{cost.high:.2f}|{outcome.total - charged:.2f}"
        for charged, cost in outcome.forecasts
    ]
    marks = [
        f"over by {outcome.over:.2f}" if outcome.over > 1e-9 else "",
        "MISSED" if outcome.holds(0) is False else "",
        "MISSED AT HALF" if outcome.holds(outcome.at_half) is False else "",
        "MISSED IN FORCE" if outcome.holds(outcome.in_force) is False else "",
    ]
    return (
        f"{seed}: {scenario.kind} {server['tokens']}, {100 * scenario.rate:.1f}% n={scenario.n} "
        f"x{scenario.models} {'twice ' if scenario.processes == 2 else ''}"
        f"{'batch ' if spec['batch'] else ''}{scenario.limit} "
        f"{scenario.dollars:.2f}{'' if server['counts'] else ' uncounted'} loses {server['loses']} "
        f"begins {server['begins']} T {server['takes_temperature']}: {outcome.end}, "
        f"{outcome.total:.2f}, {outcome.approvals} approvals{' refused' * outcome.refused}, "
        f"{' '.join(ranges)}, {seconds:.1f} s {' '.join(filter(None, marks))}"
    )


def _print_table(outcomes: Sequence[tuple[Scenario, Outcome]]) -> None:
    print_heading(
        *("reasoning", "scenarios", "over a limit", "in the range in force", "in the first range"),
        *("at half", "in the approved range", "width in force", "first width", "approvals"),
    )
    groups: dict[str, Callable[[Scenario], bool]] = {
        **{kind: partial(_is_of, (kind,)) for kind in KINDS},
        "as in the first answers": partial(_is_of, SEEN),
        "with batches": lambda scenario: scenario.spec["batch"],
        "all": lambda _: True,
    }
    for title, belongs in groups.items():
        some = [outcome for scenario, outcome in outcomes if belongs(scenario)]
        approved = [outcome for outcome in some if outcome.approvals]
        first, in_force = [(run, 0) for run in some], [(run, run.in_force) for run in some]
        columns = (
            in_force,
            first,
            [(run, run.at_half) for run in some],
            [(run, run.approved) for run in approved],
        )
        asked = [outcome.approvals for outcome in some] or [0]
        print_row(
            *(title, str(len(some)), str(sum(outcome.over > 1e-9 for outcome in some))),
            *(*map(_share, columns), *map(_width, (in_force, first))),
            f"{mean(asked):.1f}, at most {max(asked)}",
        )
    ends = Counter(outcome.end for _, outcome in outcomes)
    print(f"\nEnds: {dict(ends)}; limits refused: {sum(each.refused for _, each in outcomes)}.")


def _is_of(kinds: Sequence[str], scenario: Scenario) -> bool:
    return scenario.kind in kinds


def _share(pairs: Sequence[tuple[Outcome, int]]) -> str:
    held = [each for run, number in pairs if (each := run.holds(number)) is not None]
    return f"{100 * mean(held):.0f}% of {len(held)}" if held else ""


def _width(pairs: Sequence[tuple[Outcome, int]]) -> str:
    known = [width for run, number in pairs if (width := run.width(number))]
    return f"{median(known):.1f}" if known else ""


if __name__ == "__main__":
    main()
