"""Checks that cost limits hold and that forecasts contain the true cost, in random runs.

    python benchmarks/cost_limits.py --scenarios 200

Every scenario is a model on a loopback server, with a random hit rate, way of reasoning and faults.
The server's ledger is the true cost. A command with `--max-cost` or `--ask-above` is repeated until
it finishes:

- If it needs approval, it gets the amount that a user at a terminal would be asked for.
- If it refuses `--max-cost` as too low, it gets the amount that its message names.
- If it has spent `--max-cost`, it gets twice as much.

The table shows, for each way of reasoning:

- the number of scenarios in which a command exceeded its limit. With `--ask-above`, requests in
  flight may exceed it: the most expensive ones, as many as there are connections (a batch is one);
- how often the remaining cost was within a forecast: the first one, the latest one when half of the
  cost was charged, the last one that a user approved, and the one in force (the approved one, or
  the one at half if nothing needed approval);
- the median width (high end divided by low end) of the first forecast and of the one in force;
- how often a user was asked.

In some scenarios, two processes run the first command at once, with a shared cache. Each has its
own limit; a header tells the server which process sent a request.

With `--log FILE`, the benchmark appends the outcomes to a file, and the table covers all outcomes
in it.

With `--late`, it prints another table: how wide the first forecast would be if it assumed that some
of the models that do not reason at first begin to reason later.
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
from markdown_tables import print_heading, print_row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from batch_server import BatchServer
from cant_do_that_anymore import Spec, evaluate
from cant_do_that_anymore.client import client
from cant_do_that_anymore.client.batch import client as batch_client
from cant_do_that_anymore.client.batch import jobs
from cant_do_that_anymore.client.budget import NOTHING, Budget, BudgetExceeded, Range
from cant_do_that_anymore.client.pricing import BATCH_RATE
from cant_do_that_anymore.comparison import experiment
from cant_do_that_anymore.costs import approval
from cant_do_that_anymore.costs.forecast import Figures, estimate
from cant_do_that_anymore.costs.simulation import Draw, StepDraws
from cant_do_that_anymore.costs.tokens import reasoning_tokens_at
from cant_do_that_anymore.errors import (
    InvalidInput,
    NeedsApproval,
    NoHabit,
    UserError,
)
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.runs.storage import save_run
from loopback import Body, is_changed, moves_in, serving
from planted_models import SPECIAL
from priced_servers import charge, price_list

POOL_SIZE = 1_000
REPLY_TOKENS, MOVE_TOKENS, MESSAGE_TOKENS = 5, 3, 4
"""Tokens of a reply, of a move in the prompt, and of the frame of a message."""
KIND_WEIGHTS = {"none": 4, "constant": 4, "changed rules only": 2, "starts late": 2, "grows": 2}
"""Ways of reasoning, with the weights for drawing them."""
VISIBLE_KINDS = "none", "constant", "changed rules only"
"""Ways of reasoning that the first answers show."""
MAX_COMMANDS = 50
PROCESS_HEADER = "X-Process"
ROUNDING = 1e-9


@dataclass
class Server(BatchServer):
    """A server with a ledger, for a model with a way of reasoning.

    Attributes:
        kind: the way of reasoning.
        tokens: mean reasoning tokens.
        begins: number of answers after which late reasoning begins.
        counts: whether responses contain token counts.
        loses: one in this many answers is charged but never arrives; 0 for none.
        takes_temperature: whether the model supports other temperatures than 1.
        ledger: the dollars of every answer, or of every batch.
        by_process: the dollars of every answer outside a batch, by process.
        answered: the number of answers so far.
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
        request["process"] = self.headers[number - 1].get(PROCESS_HEADER, "")
        if not self.takes_temperature and request.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support 0 with this model."
            return web.json_response({"error": {"message": message}}, status=400)
        if self.loses and number % self.loses == 0:
            self.completion(request)
            return web.Response()
        return None

    def draw_reasoning_tokens(self, request: Body) -> int:
        """Draw the number of reasoning tokens for a request."""
        self.answered += 1
        random = Random(str(moves_in(request)))
        share = {
            "none": 0.0,
            "constant": 1.0,
            "changed rules only": float(is_changed(request)),
            "starts late": float(self.answered > self.begins),
            "grows": min(2.0, 0.3 + self.answered / (3 * self.begins)),
        }[self.kind]
        return round(self.tokens * share * random.lognormvariate(-0.08, 0.4))

    def completion(self, request: Body) -> dict[str, Any]:
        completion = super().completion(request)
        (choice,), usage = completion["choices"], completion["usage"]
        limit = request.get("max_tokens") or request["max_completion_tokens"]
        reasoning = self.draw_reasoning_tokens(request)
        if reasoning + REPLY_TOKENS > limit:
            reasoning = limit
            choice["message"]["content"], choice["finish_reason"] = "", "length"
        system, *turns = request["messages"]
        system_tokens = len(system["content"]) // 4 + MESSAGE_TOKENS
        usage["prompt_tokens"] = system_tokens + len(turns) * (MOVE_TOKENS + MESSAGE_TOKENS)
        usage["completion_tokens"] = min(limit, reasoning + REPLY_TOKENS)
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        if "path" in request:
            self.ledger.append(charge(usage))
            self.by_process.setdefault(request["process"], []).append(charge(usage))
        else:
            self.ledger[-1] += BATCH_RATE * charge(usage)
        return completion if self.counts else completion | {"usage": None}

    def create_batch(self, wanted: dict[str, Any]) -> dict[str, Any]:
        self.ledger.append(0.0)
        return super().create_batch(wanted)


@dataclass(frozen=True)
class Scenario:
    """A random scenario; see `draw_scenario`."""

    kind: str
    hit_rate: float
    n: int
    models: int
    processes: int
    limit: str
    spec: dict[str, Any]
    server: dict[str, Any]
    dollars: float

    def serve(self, number: int) -> Server:
        """Return the server of a model."""

        def plays(request: Body) -> str:
            moves = moves_in(request)
            return (
                SPECIAL[moves] if Random(f"{number} {moves}").random() < self.hit_rate else "a2a3"
            )

        return Server(plays, **self.server)


def draw_scenario(seed: int) -> Scenario:
    """Draw a scenario."""
    random = Random(seed)
    (kind,) = random.choices(list(KIND_WEIGHTS), list(KIND_WEIGHTS.values()))
    hit_rate = 0.005 * 120 ** random.random()
    n = random.choice([5, 20, 60, 150])
    tokens = 0 if kind == "none" else random.choice([100, 400, 1_500, 3_000])
    batch = random.random() < 0.15
    requests = min(POOL_SIZE, n / hit_rate) + 2 * n
    server = {
        "kind": kind,
        "tokens": tokens,
        "begins": random.choice([30, 100, 300]),
        "counts": random.random() > 0.1,
        "loses": random.choice([0, 0, 0, 0, 10, 30]),
        "takes_temperature": random.random() > 0.1,
        "polls": 0,
    }
    limit = random.choice(["ask_above", "ask_above", "max_cost"])
    dollars_per_request = 0.015 + 0.001 * tokens * (0.2 if kind == "changed rules only" else 1)
    return Scenario(
        kind=kind,
        hit_rate=hit_rate,
        n=n,
        models=(models := 2 if random.random() < 0.15 else 1),
        processes=2 if models == 1 and not batch and Random(-seed - 1).random() < 0.15 else 1,
        limit=limit,
        spec={
            "n": n,
            "batch": batch,
            "max_connections": random.choice([2, 4, 16]),
            "keep_looking": random.random() < 0.5,
        },
        server=server,
        dollars=round(requests * dollars_per_request * 10 ** random.uniform(-1, 0.5), 2),
    )


@dataclass
class Outcome:
    """The outcome of a scenario.

    Attributes:
        over: the largest amount by which a command exceeded its limit and the requests in flight.
        forecasts: for each forecast, the dollars charged so far, and the forecast of the rest.
        approved: the index of the forecast that a user approved last.
        total: the dollars charged in the end.
        approvals: how often a user was asked.
        refused: whether a command refused its limit as too low.
        end: how the last command ended.
    """

    over: float = 0.0
    forecasts: list[tuple[float, Range]] = field(default_factory=list)
    approved: int = 0
    total: float = 0.0
    approvals: int = 0
    refused: bool = False
    end: str = "finished"

    @property
    def is_over(self) -> bool:
        """Whether a command exceeded its limit."""
        return self.over > ROUNDING

    def was_right(self, index: int) -> bool | None:
        """Whether the remaining cost was within a forecast; None if there was no forecast."""
        if not self.forecasts or self.end == "failed":
            return None
        charged, cost = self.forecasts[index]
        return cost.low - ROUNDING <= self.total - charged <= cost.high + ROUNDING

    @property
    def at_half(self) -> int:
        """The index of the latest forecast when half of the cost was charged."""
        return max(0, sum(charged <= self.total / 2 for charged, _ in self.forecasts) - 1)

    @property
    def in_force(self) -> int:
        """The index of the forecast that a user approved last, or of the one at half."""
        return self.approved if self.approvals else self.at_half

    def width(self, index: int) -> float | None:
        """Return the high end of a forecast divided by its low end."""
        cost = self.forecasts[index][1] if self.forecasts else Range(0, 0, 0)
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
        """Run one command, and compare its cost with its limit."""
        before, lengths = self._charged, [len(server.ledger) for server in self._servers]
        try:
            specs = [
                Spec(base_url=server.url, **self._common, **limits) for server in self._servers
            ]
            if self._processes == 2:
                self._in_two_processes(specs[0], limit)
                return
            if len(specs) == 1:
                evaluate(specs[0], quiet=True)
                return
            by_title = {f"model {number}": [spec] for number, spec in enumerate(specs)}
            _, failures = experiment.run_all(by_title, self._folder / "out", save_run, quiet=True)
            for failure in sorted(failures.values(), key=lambda error: isinstance(error, NoHabit)):
                raise failure
        finally:
            in_flight = 0.0
            if limits.get("max_cost") is None:
                new_costs = [
                    cost
                    for server, length in zip(self._servers, lengths, strict=True)
                    for cost in server.ledger[length:]
                ]
                in_flight = sum(sorted(new_costs)[-self._common["max_connections"] :])
            if self._processes == 1:
                over = self._charged - before - limit - in_flight
                self.outcome.over = max(self.outcome.over, over)
            self._processes = 1

    def _in_two_processes(self, spec: Spec, limit: float) -> None:
        """Run a command in two processes at once, and compare the cost of each with its limit."""
        context = multiprocessing.get_context("spawn")
        names = "first", "second"
        specs = [replace(spec, header=(f"{PROCESS_HEADER}={name}",)) for name in names]
        with context.Pool(2) as pool:
            approvals = pool.map(_evaluate_in_process, specs)
        for name in names:
            costs = self._servers[0].by_process.get(name, [])
            in_flight = sorted(costs)[-self._common["max_connections"] :]
            over = sum(costs) - limit - (sum(in_flight) if spec.max_cost is None else 0.0)
            self.outcome.over = max(self.outcome.over, over)
        for dollars in filter(None, approvals):
            raise NeedsApproval("more", dollars)

    def run(self) -> Outcome:
        """Repeat the command until it finishes."""
        outcome, limit = self.outcome, self._scenario.dollars
        with self._recording():
            for _ in range(MAX_COMMANDS):
                outcome.end = "finished"
                try:
                    in_two_processes = self._processes == 2
                    self._command(limit, **{self._scenario.limit: limit})
                    if in_two_processes:
                        continue  # with one process, whose forecasts can be compared
                except InvalidInput as error:
                    if not outcome.forecasts:
                        raise
                    outcome.refused, outcome.end = True, str(error)
                    limit = outcome.forecasts[-1][1].high
                    continue
                except BudgetExceeded as error:
                    outcome.end = str(error)
                    limit *= 2
                    continue
                except NeedsApproval as needed:
                    limit = needed.approve
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


def _evaluate_in_process(spec: Spec) -> float:
    """Run a command in this process, and return the dollars to approve, or 0.

    Other errors occur again in the next command.
    """
    _shorten_waits()
    with price_list():
        try:
            evaluate(spec, quiet=True)
        except NeedsApproval as needed:
            return needed.approve
        except UserError:
            pass
    return 0.0


def _shorten_waits() -> None:
    """Shorten the waits between attempts, and disable logging."""
    logging.disable(logging.WARNING)
    batch_client.QUIET_SECONDS, jobs.FIRST_POLL = 0.01, 0.01
    client.FIRST_WAIT, client.LONGEST_WAIT = 0.001, 0.01


def run_scenario(scenario: Scenario, pool: Path) -> Outcome:
    """Run a scenario with an empty cache."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(patch.dict(os.environ, CDTA_HOME=str(folder / "home")))
        servers = [stack.enter_context(serving(scenario.serve(i))) for i in range(scenario.models)]
        return Trial(scenario, pool, folder, servers).run()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--late", action="store_true", help="print only the other table")
    parser.add_argument("--log", type=Path, help="file to append the outcomes to")
    options = parser.parse_args()
    _shorten_waits()
    if options.late:
        _print_late_reasoning()
        return
    outcomes = _read_log(options.log) if options.log and options.log.exists() else []
    with tempfile.TemporaryDirectory() as folder, price_list():
        pool = Path(folder) / "pool.jsonl"
        write_positions(pool, shipped_pool("pool")[:POOL_SIZE])
        for seed in range(options.first, options.first + options.scenarios):
            started, scenario = time.monotonic(), draw_scenario(seed)
            outcome = run_scenario(scenario, pool)
            outcomes.append((scenario, outcome))
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps({"seed": seed} | asdict(outcome)) + "\n")
            seconds = time.monotonic() - started
            print(_format_line(seed, scenario, outcome, seconds), file=sys.stderr)
    _print_table(outcomes)


def _print_late_reasoning() -> None:
    """Print the first forecast of a run of 60 samples, by share of models that reason late.

    The hit rate is 10%.
    """
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
            with patch.object(StepDraws, "draw", _make_late_draw(share)):
                low, _, high = estimate(spec).total.dollars or NOTHING
            print_row(f"{share:.0%}", f"${low:,.2f}", f"${high:,.2f}", f"{high / low:.0f}")


def _make_late_draw(share: float) -> Callable[..., Draw]:
    """Return `StepDraws.draw` with this share of runs drawn as for a reasoning model."""
    draw, random = StepDraws.draw, Random(0)
    low, high, _ = reasoning_tokens_at(None)
    both_steps = (is_late for _ in count() for is_late in [random.random() < share] * 2)

    def draw_late(model: StepDraws, *args: Any, **more: Any) -> Draw:
        answer = model.answer
        if next(both_steps):
            model.answer = answer._replace(low=low, high=high)
        drawn = draw(model, *args, **more)
        model.answer = answer
        return drawn

    return draw_late


def _read_log(log: Path) -> list[tuple[Scenario, Outcome]]:
    outcomes = []
    for line in log.read_text().splitlines():
        values = json.loads(line)
        seed = values.pop("seed")
        values["forecasts"] = [(charged, Range(*cost)) for charged, cost in values["forecasts"]]
        outcomes.append((draw_scenario(seed), Outcome(**values)))
    return outcomes


def _format_line(seed: int, scenario: Scenario, outcome: Outcome, seconds: float) -> str:
    spec, server = scenario.spec, scenario.server
    ranges = [
        f"{cost.low:.2f}-{cost.high:.2f}|{outcome.total - charged:.2f}"
        for charged, cost in outcome.forecasts
    ]
    marks = [
        f"over by {outcome.over:.2f}" if outcome.is_over else "",
        "MISSED" if outcome.was_right(0) is False else "",
        "MISSED AT HALF" if outcome.was_right(outcome.at_half) is False else "",
        "MISSED IN FORCE" if outcome.was_right(outcome.in_force) is False else "",
    ]
    return (
        f"{seed}: {scenario.kind} {server['tokens']}, {100 * scenario.hit_rate:.1f}% "
        f"n={scenario.n} x{scenario.models} {'twice ' if scenario.processes == 2 else ''}"
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
        **{kind: partial(_has_kind, (kind,)) for kind in KIND_WEIGHTS},
        "as in the first answers": partial(_has_kind, VISIBLE_KINDS),
        "with batches": lambda scenario: scenario.spec["batch"],
        "all": lambda _: True,
    }
    for title, is_member in groups.items():
        group = [outcome for scenario, outcome in outcomes if is_member(scenario)]
        approved = [outcome for outcome in group if outcome.approvals]
        first, in_force = [(run, 0) for run in group], [(run, run.in_force) for run in group]
        columns = (
            in_force,
            first,
            [(run, run.at_half) for run in group],
            [(run, run.approved) for run in approved],
        )
        approvals = [outcome.approvals for outcome in group] or [0]
        print_row(
            *(title, str(len(group)), str(sum(outcome.is_over for outcome in group))),
            *(*map(_format_share, columns), *map(_format_width, (in_force, first))),
            f"{mean(approvals):.1f}, at most {max(approvals)}",
        )
    ends = Counter(outcome.end for _, outcome in outcomes)
    refused = sum(outcome.refused for _, outcome in outcomes)
    print(f"\nEnds: {dict(ends)}; limits refused: {refused}.")


def _has_kind(kinds: Sequence[str], scenario: Scenario) -> bool:
    return scenario.kind in kinds


def _format_share(forecasts: Sequence[tuple[Outcome, int]]) -> str:
    right = [hit for run, index in forecasts if (hit := run.was_right(index)) is not None]
    return f"{100 * mean(right):.0f}% of {len(right)}" if right else ""


def _format_width(forecasts: Sequence[tuple[Outcome, int]]) -> str:
    widths = [width for run, index in forecasts if (width := run.width(index))]
    return f"{median(widths):.1f}" if widths else ""


if __name__ == "__main__":
    main()
