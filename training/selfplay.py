"""Writes games under changed rules: human moves, then moves of the network.

There are no human games under these rules. A game starts like a human one. From a random move on,
the network chooses among the moves that the rules allow. The file also has the legal moves of every
position, under these rules and under the standard rules.
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
from games import HELD_OUT_RULES, PLIES, read_games, vocabulary
from model import Pocket, load_habit
from numpy.typing import NDArray
from torch import Tensor

from cant_do_that_anymore.habits.chess.rules import CATALOG, STANDARD

TOKENS = {move: token for token, move in enumerate(vocabulary().values())}
MOVES = list(TOKENS)
BEGIN = len(MOVES)
DATA = Path(__file__).resolve().parents[1] / "src" / "cant_do_that_anymore" / "data"
TRAINED_RULES = tuple(key for key in CATALOG if key not in ("standard", *HELD_OUT_RULES))
FORBIDDING_RULES = tuple(key for key, rules in CATALOG.items() if rules.forbids_something)
MAX_LEGAL_MOVES = 96
"""Further legal moves of a position are left out; few positions have more."""


@dataclass(frozen=True)
class RuleGames:
    """Games under changed rules.

    Attributes:
        rules: the index of the rules of each game.
        games: the begin token, the moves, and begin tokens as padding: (games, plies + 1).
        legal: the legal moves before every ply, padded with -1.
        standard: the same under the standard rules.
        held_out: whether a position is in a pool: (games, plies).
    """

    rules: Tensor
    games: Tensor
    legal: Tensor
    standard: Tensor
    held_out: Tensor


def _legal_moves(board: chess.Board, rules_key: str) -> NDArray[np.int16]:
    tokens = [TOKENS[move.uci()] for move in CATALOG[rules_key].legal_moves(board)][
        :MAX_LEGAL_MOVES
    ]
    return np.array(tokens + [-1] * (MAX_LEGAL_MOVES - len(tokens)), dtype=np.int16)


def _referee(pipe: Connection, keys: Sequence[str], pools: frozenset[tuple[str, ...]]) -> None:
    """Keep the boards of some games: send their legal moves, and receive a move for each."""
    boards = [chess.Board() for _ in keys]
    while True:
        legal = np.stack(
            [_legal_moves(board, key) for board, key in zip(boards, keys, strict=True)]
        )
        standard = np.stack([_legal_moves(board, STANDARD.key) for board in boards])
        in_pool = [tuple(move.uci() for move in board.move_stack) in pools for board in boards]
        pipe.send((legal, standard, np.array(in_pool)))
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
    """Play one game from each human game; game i is under the rules ``keys[i]``."""
    device = human.device
    count, workers = len(human), os.cpu_count() or 1
    parts = np.array_split(np.arange(count), workers)
    context = get_context("fork")
    pipes = []
    for part in parts:
        parent, child = context.Pipe()
        part_keys = [keys[index] for index in part]
        context.Process(target=_referee, args=(child, part_keys, pools), daemon=True).start()
        pipes.append(parent)
    # Half of the games are human to the end: positions of standard games under changed rules.
    switch = torch.randint(2, 24, (count,), generator=generator, device=device)
    switch[torch.rand(count, generator=generator, device=device) < 0.5] = PLIES
    games = torch.full((count, PLIES + 1), BEGIN, device=device)
    shape = (count, PLIES, MAX_LEGAL_MOVES)
    legal, standard = (torch.empty(shape, dtype=torch.int16, device=device) for _ in range(2))
    held_out = torch.empty((count, PLIES), dtype=torch.bool, device=device)
    is_over = torch.zeros(count, dtype=torch.bool, device=device)
    for ply in range(PLIES):
        received = zip(*(pipe.recv() for pipe in pipes), strict=True)
        allowed, usual, in_pool = (
            torch.from_numpy(np.concatenate(arrays)).to(device) for arrays in received
        )
        legal[:, ply], standard[:, ply], held_out[:, ply] = allowed, usual, in_pool
        sampled = _sample_moves(habit, games[:, : ply + 1], allowed.long(), generator)
        move = torch.where(ply < switch, human[:, ply + 1].long(), sampled)
        is_over |= (move == BEGIN) | (allowed[:, 0] < 0)
        games[:, ply + 1] = torch.where(is_over, BEGIN, move)
        moves = games[:, ply + 1].cpu().numpy()
        is_last = ply == PLIES - 1
        for part, pipe in zip(parts, pipes, strict=True):
            pipe.send(None if is_last else moves[part])
    index = torch.tensor([rules.index(key) for key in keys], device=device)
    return RuleGames(index, games, legal, standard, held_out)


def _sample_moves(
    habit: Pocket, games: Tensor, allowed: Tensor, generator: torch.Generator
) -> Tensor:
    """Sample a legal move for each game, by the network's probabilities."""
    moves = []
    for part, legal in zip(games.split(4096), allowed.split(4096), strict=True):
        scores = habit(part, True).float().gather(1, legal.clamp(0))
        scores[legal < 0] = -30
        # Every legal move gets a small probability, so that new moves occur.
        odds = scores.softmax(1) + 0.004 * (legal >= 0)
        index = torch.multinomial(odds + 1e-9, 1, generator=generator)
        moves.append(legal.clamp(0).gather(1, index)[:, 0])
    return torch.cat(moves)


def read_pools() -> frozenset[tuple[str, ...]]:
    """Return the positions of the shipped pools, which no example may contain."""
    positions = set()
    for name in ("pool", "diagonal"):
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
            positions |= {tuple(json.loads(line)["previous_moves"]) for line in lines}
    return frozenset(positions)


def main() -> None:
    """Write games under the trained rules, and held-out games under all rules."""
    parser = argparse.ArgumentParser(description="Write games under changed rules.")
    for name in ("games", "habit", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--per-rule", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    habit = load_habit(options.habit).to(device)
    generator = torch.Generator(device).manual_seed(options.seed)
    parts = []
    for name, rules, per_rule, held_out in (
        ("train", TRAINED_RULES, options.per_rule, read_pools()),
        ("heldout", FORBIDDING_RULES, max(2, options.per_rule // 20), frozenset()),
    ):
        human = torch.from_numpy(read_games(options.games / f"{name}.u16.xz"))
        count = per_rule * len(rules)
        order = torch.randperm(len(human), generator=torch.Generator().manual_seed(options.seed))
        keys = [rules[game % len(rules)] for game in range(count)]
        human = human[order[:count]].to(device)
        parts.append(play(habit, human, rules, keys, held_out, generator))
    share = float(parts[0].held_out.float().mean())
    print(f"{len(parts[0].games):,} games; {share:.4f} of the positions are in pools")
    torch.save(parts, options.out)


if __name__ == "__main__":
    main()
