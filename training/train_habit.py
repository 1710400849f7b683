"""Trains the habit network, which predicts the next move of human games, on one GPU.

    python training/train_habit.py --games GAMES --out OUT

GAMES contains train.u16.xz and heldout.u16.xz, in the format that games.py reads. The script writes
pocket.pt (the weights, rounded to 8 bits) and record.json (the measurements) to OUT.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import torch
from export import quantize, rounded_weights
from games import PLIES, read_games, vocabulary
from model import Pocket
from torch import Tensor
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

BEGIN = len(vocabulary())


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters."""

    layers: int = 7
    width: int = 256
    heads: int = 4
    dropout: float = 0.1
    epochs: int = 56
    batch: int = 4096
    learning_rate: float = 8e-3
    weight_decay: float = 0.1
    warmup: float = 0.02
    seed: int = 1


def cross_entropy(scores: Tensor, played: Tensor) -> Tensor:
    """Return the mean over the moves played; begin tokens are padding."""
    return functional.cross_entropy(
        scores.flatten(0, 1).float(), played.flatten(), ignore_index=BEGIN
    )


def training_loss(network: Pocket, games: Tensor) -> Tensor:
    """Return the loss of a batch in mixed precision."""
    with torch.autocast(games.device.type, torch.bfloat16):
        scores = network(games[:, :-1])
    return cross_entropy(scores, games[:, 1:])


def train(games: Tensor, recipe: Recipe) -> Pocket:
    """Train a network on all games once per epoch, without the last incomplete batch."""
    torch.manual_seed(recipe.seed)
    torch.set_float32_matmul_precision("high")
    shape = (recipe.layers, recipe.width, recipe.heads, recipe.dropout)
    network = Pocket(BEGIN, PLIES, *shape).to(games.device)
    matrices = [weight for weight in network.blocks.parameters() if weight.ndim == 2]
    others = [weight for weight in network.parameters() if all(weight is not m for m in matrices)]
    optimizers = (
        torch.optim.Muon(
            matrices,
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        ),
        torch.optim.AdamW(others, lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0),
    )
    batches = len(games) // recipe.batch

    def rate(step: int) -> float:
        """Return the learning rate factor: a linear warm-up, then a linear decay to zero."""
        done = step / (recipe.epochs * batches)
        return min(done / recipe.warmup, (1 - done) / (1 - recipe.warmup))

    schedules = [LambdaLR(optimizer, rate) for optimizer in optimizers]
    compiled = torch.compile(training_loss, disable=games.device.type == "cpu")
    for epoch in range(recipe.epochs):
        order = torch.randperm(len(games), device=games.device)
        total = torch.zeros((), device=games.device)
        for batch in order.split(recipe.batch)[:batches]:
            loss = compiled(network, games[batch].long())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            for part in (*optimizers, *schedules):
                part.step()
            network.zero_grad()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / batches:.4f}")
    return network.eval()


@torch.no_grad()
def heldout_figures(network: Pocket, games: Tensor) -> dict[str, object]:
    """Return the loss and the top-1 accuracy, overall and by ply, in full precision."""
    torch.set_float32_matmul_precision("highest")
    loss, hits, count = 0.0, 0, 0
    for part in games.long().split(500):
        scores, played = network(part[:, :-1]), part[:, 1:]
        is_move = played != BEGIN
        loss += float(cross_entropy(scores, played) * is_move.sum())
        hits += (scores.argmax(2) == played).sum(0)
        count += is_move.sum(0)
    return {
        "positions": int(count.sum()),
        "loss": round(loss / int(count.sum()), 4),
        "top1": round(float(hits.sum() / count.sum()), 4),
        "top1_by_ply": [round(share, 4) for share in (hits / count).tolist()],
    }


def main() -> None:
    """Train the network, round its weights, and measure the rounded network."""
    parser = argparse.ArgumentParser(description="Train the habit network.")
    parser.add_argument("--games", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = Recipe()

    started = time.monotonic()
    games, heldout = (
        torch.from_numpy(read_games(options.games / f"{name}.u16.xz")).to(device)
        for name in ("train", "heldout")
    )
    network = train(games, recipe)
    seconds = round(time.monotonic() - started)
    top1_before_rounding = heldout_figures(network, heldout)["top1"]
    parameters = sum(weight.numel() for weight in network.parameters())
    quantize(network)
    torch.save(rounded_weights(network), options.out / "pocket.pt")
    record = {
        "date": date.today().isoformat(),
        "machine": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        "torch": torch.__version__,
        "recipe": asdict(recipe),
        "parameters": parameters,
        "games": len(games),
        "seconds": seconds,
        "heldout": heldout_figures(network, heldout),
        "heldout_top1_before_rounding": top1_before_rounding,
    }
    (options.out / "record.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
