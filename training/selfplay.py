"""Games under changed rules: human moves, then moves of the network that the rules allow.

There are no human games under these rules. A game starts as a human one does; from a random move on
the network chooses among the moves that its rules allow. The legal moves of every position, under
its rules and under the standard rules, come with it.
"""

import argparse
import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import chess
import numpy as np
import torch
from games import PLIES, read_games, vocabulary
from model import Pocket, load_habit
from numpy.typing import NDArray
from torch import Tensor

from cant_do_that_anymore.game.rules import CATALOG, STANDARD

TOKENS = {move: token for token, move in enumerate(vocabulary().values())}
MOVES = list(TOKENS)
BEGIN = len(MOVES)
DATA = Path(__file__).resolve().parents[1] / "src" / "cant_do_that_anymore" / "data"
HELD_OUT_RULES = ("bishops-as-rooks", "knights-as-queens", "rooks-as-bishops", "pawns-one-step")
TRAINED_RULES = tuple(key for key in CATALOG if key not in ("standard", *HELD_OUT_RULES))
FORBIDDING_RULES = tuple(key for key, rules in CATALOG.items() if rules.forbids_something)
MAX_LEGAL = 96
"""More legal moves than this are left out: few positions have them."""


@dataclass(frozen=True)
class RuleGames:
    """Games with the rules of each.

    Attributes:
        rules: the index of the rules of each game.
        games: the begin token and the moves, begin tokens after the end: (games, plies + 1).
        legal: the moves that the rules allow before every ply, filled up with -1.
        standard: those that the standard rules allow.
        held_out: whether a position is in a pool: (games, plies).
    """

    rules: Tensor
    games: Tensor
    legal: Tensor
    standard: Tensor
    held_out: Tensor


def _legal(board: chess.Board, rules_key: str) -> NDArray[np.int16]:
    tokens = [TOKENS[move.uci()] for move in CATALOG[rules_key].legal_moves(board)][:MAX_LEGAL]
    return np.array(tokens + [-1] * (MAX_LEGAL - len(tokens)), dtype=np.int16)


def _referee(pipe: Connection, keys: Sequence[str], pools: frozenset[tuple[str, ...]]) -> None:
    """Keep the boards of some games: take a move for each, and send what is legal next."""
    boards = [chess.Board() for _ in keys]
    while True:
        legal = np.stack([_legal(board, key) for board, key in zip(boards, keys, strict=True)])
        standard = np.stack([_legal(board, STANDARD.key) for board in boards])
        seen = [tuple(move.uci() for move in board.move_stack) in pools for board in boards]
        pipe.send((legal, standard, np.array(seen)))
        moves = pipe.recv()
        if moves is None:
            return
        for board, token in zip(boards, moves, strict=True):
            if token < BEGIN:
                board.push(chess.Move.from_uci(MOVES[token]))


@torch.no_grad()
def play(
    habit: Pocket,
    human: Tensor,
    rules: Sequence[str],
    keys: Sequence[str],
    pools: frozenset[tuple[str, ...]],
    generator: torch.Generator,
) -> RuleGames:
    """Play one game from each human one under the rules of ``keys[i]``."""
    device = human.device
    count, workers = len(human), os.cpu_count() or 1
    parts = np.array_split(np.arange(count), workers)
    context = get_context("fork")
    pipes = []
    for part in parts:
        ours, theirs = context.Pipe()
        own = [keys[index] for index in part]
        context.Process(target=_referee, args=(theirs, own, pools), daemon=True).start()
        pipes.append(ours)
    # Half of the games stay human to the end: positions of standard games under changed rules.
    switch = torch.randint(2, 24, (count,), generator=generator, device=device)
    switch[torch.rand(count, generator=generator, device=device) < 0.5] = PLIES
    games = torch.full((count, PLIES + 1), BEGIN, device=device)
    shape = (count, PLIES, MAX_LEGAL)
    legal, standard = (torch.empty(shape, dtype=torch.int16, device=device) for _ in range(2))
    held_out = torch.empty((count, PLIES), dtype=torch.bool, device=device)
    over = torch.zeros(count, dtype=torch.bool, device=device)
    for ply in range(PLIES):
        found = zip(*(pipe.recv() for pipe in pipes), strict=True)
        allowed, usual, seen = (torch.from_numpy(np.concatenate(each)).to(device) for each in found)
        legal[:, ply], standard[:, ply], held_out[:, ply] = allowed, usual, seen
        chosen = _choose(habit, games[:, : ply + 1], allowed.long(), generator)
        move = torch.where(ply < switch, human[:, ply + 1].long(), chosen)
        over |= (move == BEGIN) | (allowed[:, 0] < 0)
        games[:, ply + 1] = torch.where(over, BEGIN, move)
        moves = games[:, ply + 1].cpu().numpy()
        last = ply == PLIES - 1
        for part, pipe in zip(parts, pipes, strict=True):
            pipe.send(None if last else moves[part])
    index = torch.tensor([rules.index(key) for key in keys], device=device)
    return RuleGames(index, games, legal, standard, held_out)


def _choose(habit: Pocket, games: Tensor, allowed: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a move among those allowed, by the network's probabilities."""
    chosen = []
    for part, legal in zip(games.split(4096), allowed.split(4096), strict=True):
        scores = habit(part, True).float().gather(1, legal.clamp(0))
        scores[legal < 0] = -30
        # A little of every legal move, so that the new moves occur as well.
        odds = scores.softmax(1) + 0.004 * (legal >= 0)
        picked = torch.multinomial(odds + 1e-9, 1, generator=generator)
        chosen.append(legal.clamp(0).gather(1, picked)[:, 0])
    return torch.cat(chosen)


def pools() -> frozenset[tuple[str, ...]]:
    """The positions of the shipped pools, which no example may contain."""
    found = set()
    for name in ("pool", "diagonal"):
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
            found |= {tuple(json.loads(line)["previous_moves"]) for line in lines}
    return frozenset(found)


def main() -> None:
    """Write games under the trained rules, and held-out games under all rules."""
    parser = argparse.ArgumentParser(description="Write games under changed rules.")
    for name in ("games", "habit", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--per-rule", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    habit = load_habit(asked.habit).to(device)
    generator = torch.Generator(device).manual_seed(asked.seed)
    written = []
    for name, rules, per_rule, held_out in (
        ("train", TRAINED_RULES, asked.per_rule, pools()),
        ("heldout", FORBIDDING_RULES, max(2, asked.per_rule // 20), frozenset()),
    ):
        human = torch.from_numpy(read_games(asked.games / f"{name}.u16.xz"))
        count = per_rule * len(rules)
        order = torch.randperm(len(human), generator=torch.Generator().manual_seed(asked.seed))
        keys = [rules[game % len(rules)] for game in range(count)]
        human = human[order[:count]].to(device)
        written.append(play(habit, human, rules, keys, held_out, generator))
    share = float(written[0].held_out.float().mean())
    print(f"{len(written[0].games):,} games; {share:.4f} of the positions are in pools")
    torch.save(written, asked.out)


if __name__ == "__main__":
    main()
