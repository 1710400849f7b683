"""Trains readers for the habit network on texts that state rules, one reader per dose.

    python training/train_reader.py --habit pocket.pt --texts TEXTS --rule-games GAMES.pt --out OUT

texts.py writes TEXTS, and selfplay.py writes GAMES.pt. The habit network does not change. A reader
learns to play like it, but only moves that the text allows, and to answer whether a move is legal.
The dose is the share of examples whose text states a changed rule; everything else is equal. The
script writes the weights of each reader, and read.json with the measurements, to OUT.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from games import PLIES, vocabulary
from model import Reader, load_habit
from selfplay import BEGIN, RuleGames
from torch import Tensor
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

YES, NO = BEGIN, BEGIN + 1  # indices of scores
QUERIED = list(vocabulary().values()).index("a1a8")  # the placeholder for the move in a question


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters.

    Attributes:
        doses: shares of examples with a changed rule.
        groups: texts per step.
        games: games per text.
        questions: questions about legality per step.
        left_out: share of the words of a text that are left out at random.
        replaced: share of the words of a text that are replaced at random.
        random_examples: share of the moves in a text that are replaced by a random move.
        words: number of words of the tokenizer.
        new_moves: target probability of the moves that only the changed rules allow.
    """

    doses: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    encoder_layers: int = 2
    heads: int = 4
    hidden: int = 512
    steps: int = 2000
    groups: int = 64
    games: int = 24
    questions: int = 256
    question_weight: float = 0.3
    new_moves: float = 0.05
    learning_rate: float = 3e-3
    warmup: float = 0.05
    left_out: float = 0.05
    replaced: float = 0.05
    random_examples: float = 0.7
    words: int = 0
    seed: int = 1


def legal_masks(legal: Tensor) -> Tensor:
    """Convert lists of moves, padded with -1, to masks over all moves."""
    masks = torch.zeros((*legal.shape[:-1], BEGIN + 1), dtype=torch.bool, device=legal.device)
    index = torch.where(legal < 0, BEGIN, legal.long())
    return masks.scatter_(-1, index, True)[..., :BEGIN]


def target_probabilities(
    scores: Tensor, legal: Tensor, standard: Tensor, new_moves: float
) -> Tensor:
    """Return the network's probabilities among legal moves, with a small share for new moves."""
    allowed, usual = legal_masks(legal), legal_masks(standard)
    probabilities = scores.float().masked_fill(~allowed, -1e4).softmax(-1)
    new = (allowed & ~usual).float()
    count = new.sum(-1, keepdim=True)
    share = new_moves * (count > 0)
    return (1 - share) * probabilities + share * new / count.clamp(1)


def move_loss(
    reader: Reader,
    text: Tensor,
    games: Tensor,
    rule: Tensor,
    legal: Tensor,
    standard: Tensor,
    weight: Tensor,
    new_moves: float,
) -> Tensor:
    """Return the cross-entropy to the habit network, restricted by the rule of the text if any."""
    with torch.autocast(games.device.type, torch.bfloat16):
        with torch.no_grad():
            habit = reader.habit(games[:, :-1])
        scores = reader(text, games[:, :-1])
    with torch.no_grad():
        free = habit.float().softmax(-1)
        wanted = torch.where(
            rule[:, None, None], target_probabilities(habit, legal, standard, new_moves), free
        )
    logs = scores.float().log_softmax(-1)[..., :BEGIN]
    return -((wanted * logs).sum(-1) * weight).sum() / weight.sum()


def question_loss(
    reader: Reader, text: Tensor, games: Tensor, yes: Tensor, weight: Tensor
) -> Tensor:
    """Return the weighted cross-entropy to "yes" or "no"."""
    with torch.autocast(games.device.type, torch.bfloat16):
        scores = reader(text, games[:, :-1])
    answer = torch.where(yes, YES, NO)
    loss = functional.cross_entropy(
        scores.float().flatten(0, 1), answer.flatten(), reduction="none"
    )
    return (loss * weight.flatten()).sum() / weight.sum()


def contains(lists: Tensor, move: Tensor) -> Tensor:
    """Whether the move of each game is in its lists of moves, by ply."""
    return (lists == move[:, None, None]).any(-1)


class ExampleSampler:
    """Draws training examples at a dose: texts with games, and the right replies."""

    def __init__(self, data: RuleGames, texts: Path, recipe: Recipe) -> None:
        self.data, self.recipe, self.device = data, recipe, data.games.device
        with np.load(texts) as arrays:
            self.rules = tuple(key for key in arrays.files if key not in ("standard", "question"))
            self.texts = torch.from_numpy(np.stack([arrays[key] for key in self.rules])).to(
                self.device
            )
            self.standard, self.questions = (
                torch.from_numpy(arrays[key]).to(self.device) for key in ("standard", "question")
            )
        self.is_trained = (data.games[:, 1:] != BEGIN) & ~data.held_out
        self.lengths = (data.games[:, 1:] != BEGIN).sum(1).clamp(1)

    def random_below(self, limit: int | Tensor, *shape: int) -> Tensor:
        """Return random integers below a limit."""
        return (torch.rand(shape, device=self.device) * limit).long()

    def draw_rules(self, count: int, dose: float) -> tuple[Tensor, Tensor]:
        """Draw rules, and whether the text states them: on average, the share of the dose."""
        stated = int(dose * count + float(np.random.random()))
        return self.random_below(len(self.rules), count), torch.arange(
            count, device=self.device
        ) < stated

    def draw_texts(self, rules: Tensor, stated: Tensor) -> Tensor:
        """Draw a text per entry, which states its rules or none."""
        changed = self.texts[rules, self.random_below(self.texts.shape[1], len(rules))]
        standard = self.standard[self.random_below(len(self.standard), len(rules))]
        text = torch.where(stated[:, None], changed, standard).long()
        # Moves in a text are examples of the notation, so any move is possible.
        drawn = torch.rand(text.shape, device=self.device) < self.recipe.random_examples
        is_example = (text >= 0) & (text < BEGIN) & drawn
        return torch.where(is_example, self.random_below(BEGIN, *text.shape), text)

    def add_noise(self, text: Tensor) -> Tensor:
        """Leave out and replace words of the texts, and close the gaps."""
        noise = torch.rand(text.shape, device=self.device)
        other = BEGIN + 1 + self.random_below(self.recipe.words, *text.shape)
        words = text > BEGIN
        text = torch.where(words & (noise < self.recipe.replaced), other, text)
        text = torch.where(words & (noise > 1 - self.recipe.left_out), -1, text)
        return text.gather(1, (text < 0).byte().sort(dim=1, stable=True).indices)

    def draw_games(self, rules: Tensor, count: int) -> Tensor:
        """Draw indices of games under each of the rules, which alternate in the data."""
        number = self.random_below(len(self.data.games) // len(self.rules), len(rules), count)
        return (rules[:, None] + len(self.rules) * number).flatten()

    def draw_moves(self, dose: float) -> tuple[Tensor, ...]:
        """Draw the arguments of `move_loss`."""
        data, recipe = self.data, self.recipe
        rules, stated = self.draw_rules(recipe.groups, dose)
        index = self.draw_games(rules, recipe.games)
        text = self.add_noise(self.draw_texts(rules, stated))
        return (
            text,
            data.games[index],
            stated.repeat_interleave(recipe.games),
            data.legal[index],
            data.standard[index],
            self.is_trained[index].float(),
        )

    def draw_questions(self, dose: float) -> tuple[Tensor, ...]:
        """Draw the arguments of `question_loss`."""
        data = self.data
        rules, stated = self.draw_rules(self.recipe.questions, dose)
        index = self.draw_games(rules, 1)
        ply = self.random_below(self.lengths[index], len(index))
        legal, standard = data.legal[index], data.standard[index]
        move = self.draw_queried_moves(legal, standard, ply)
        question = self.questions[self.random_below(len(self.questions), len(index))].long()
        text = self.add_noise(torch.cat((self.draw_texts(rules, stated), question), 1))
        text = torch.where(text == QUERIED, move[:, None], text)
        allowed, usual = contains(legal, move), contains(standard, move)
        is_queried_ply = torch.arange(PLIES, device=self.device) == ply[:, None]
        weight = self.is_trained[index] & (allowed | usual | is_queried_ply)
        return text, data.games[index], torch.where(stated[:, None], allowed, usual), weight.float()

    def draw_queried_moves(self, legal: Tensor, standard: Tensor, ply: Tensor) -> Tensor:
        """Draw moves to ask about: legal under one of the rules, under both, or any move."""
        rows = torch.arange(len(ply), device=ply.device)
        allowed, usual = legal_masks(legal[rows, ply]), legal_masks(standard[rows, ply])
        kinds = torch.stack((usual & ~allowed, allowed & ~usual, allowed & usual))
        odds = kinds / kinds.sum(-1, keepdim=True).clamp(1)
        share = torch.tensor([0.35, 0.35, 0.15], device=ply.device)[:, None, None]
        anything = torch.full_like(odds[0], 0.15 / BEGIN)
        return torch.multinomial((share * odds).sum(0) + anything, 1)[:, 0]


def make_optimizers(
    reader: Reader, recipe: Recipe
) -> tuple[list[torch.optim.Optimizer], list[LambdaLR]]:
    """Return the optimizers of the matrices and of the other weights, and their schedules."""
    trained = [weight for weight in reader.parameters() if weight.requires_grad]
    matrices = [
        w for part in (reader.encoder, reader.adapters) for w in part.parameters() if w.ndim == 2
    ]
    others = [weight for weight in trained if all(weight is not w for w in matrices)]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(
            matrices, lr=recipe.learning_rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(others, lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0),
    ]

    def rate(step: int) -> float:
        done = (step + 1) / (recipe.steps + 1)
        return min(done / recipe.warmup, (1 - done) / (1 - recipe.warmup))

    return optimizers, [LambdaLR(optimizer, rate) for optimizer in optimizers]


def train(reader: Reader, examples: ExampleSampler, recipe: Recipe, dose: float) -> None:
    """Train a reader at a dose."""
    torch.manual_seed(recipe.seed)
    np.random.seed(recipe.seed)
    device = examples.data.games.device
    optimizers, schedules = make_optimizers(reader, recipe)
    losses = (move_loss, question_loss)
    compiled_move_loss, compiled_question_loss = (
        torch.compile(loss, disable=device.type == "cpu") for loss in losses
    )
    total = torch.zeros(2, device=device)
    log_interval = max(1, recipe.steps // 6)
    for step in range(recipe.steps):
        on_moves = compiled_move_loss(reader, *examples.draw_moves(dose), recipe.new_moves)
        on_questions = compiled_question_loss(reader, *examples.draw_questions(dose))
        (on_moves + recipe.question_weight * on_questions).backward()
        torch.nn.utils.clip_grad_norm_([w for w in reader.parameters() if w.requires_grad], 1.0)
        for part in (*optimizers, *schedules):
            part.step()
        reader.zero_grad()
        total += torch.stack((on_moves.detach(), on_questions.detach()))
        if (step + 1) % log_interval == 0:
            means = [round(loss / log_interval, 4) for loss in total.tolist()]
            print(f"dose {dose}, step {step + 1}: loss {means}", flush=True)
            total.zero_()


def trained_weights(reader: Reader) -> dict[str, Tensor]:
    """Return all weights except the habit network's, in half precision."""
    state = reader.state_dict()
    return {name: w.half().cpu() for name, w in state.items() if not name.startswith("habit.")}


def illegal_share(scores: Tensor, allowed: Tensor, where: Tensor) -> Tensor:
    """Return the mean probability of illegal replies."""
    return 1 - (scores.softmax(-1)[..., :BEGIN] * allowed).sum(-1)[where].mean()


@torch.no_grad()
def measure_reader(
    reader: Reader, data: RuleGames, rules: tuple[str, ...], texts: dict[str, np.ndarray]
) -> dict[str, float]:
    """Return the share of illegal probability that a text prevents where habits are forbidden."""
    device = data.games.device

    def scores(text: np.ndarray, part: Tensor) -> Tensor:
        row = torch.from_numpy(text).to(device).long()[None]
        with torch.autocast(device.type, torch.bfloat16):
            return reader(row, data.games[part][:, :-1]).float()

    figures: dict[str, float] = {}
    for rule, key in enumerate(rules):
        part = torch.nonzero(data.rules == rule)[:, 0]
        if not len(part):
            continue
        allowed, usual = legal_masks(data.legal[part]), legal_masks(data.standard[part])
        is_move = data.games[part][:, 1:] != BEGIN
        base = scores(texts["standard plain"], part)
        best = base[..., :BEGIN].argmax(-1, keepdim=True)
        habit = is_move & usual.gather(-1, best)[..., 0] & ~allowed.gather(-1, best)[..., 0]
        if not habit.any():
            continue

        before = illegal_share(base, allowed, habit)
        for name, text in texts.items():
            kind, _, about = name.partition(" ")
            if about == key:
                after = scores(text, part)
                figures[f"{key} {kind}"] = round(
                    float(1 - illegal_share(after, allowed, habit) / before), 3
                )
                if kind == "plain":
                    figures[f"{key} n"] = int(habit.sum())
        if f"asked {key}" in texts:
            figures |= measure_knowledge(
                reader, data, key, part, habit, texts[f"asked {key}"], (allowed, usual), best
            )
    return figures


def measure_knowledge(
    reader: Reader,
    data: RuleGames,
    key: str,
    part: Tensor,
    habit: Tensor,
    text: np.ndarray,
    legal: tuple[Tensor, Tensor],
    best: Tensor,
) -> dict[str, float]:
    """Return how often yes or no is right about the habit, and about a new or legal move."""
    allowed, usual = legal
    rows = torch.nonzero(habit.any(1))[:128, 0]
    ply = habit[rows].float().argmax(1)
    new = allowed[rows, ply] & ~usual[rows, ply]
    new = torch.where(new.any(-1, keepdim=True), new, allowed[rows, ply])
    other = torch.multinomial(new.float() + 1e-9, 1)[:, 0]
    figures = {}
    for name, move, right in (("forbidden", best[rows, ply, 0], NO), ("allowed", other, YES)):
        row = torch.from_numpy(text).to(move.device).long().repeat(len(rows), 1)
        row = torch.where(row == QUERIED, move[:, None], row)
        scores = reader(row, data.games[part[rows]][:, :-1])[torch.arange(len(rows)), ply]
        figures[f"{key} {name}"] = round(float((scores.argmax(-1) == right).float().mean()), 3)
    return figures


def summarize(figures: dict[str, float], trained: tuple[str, ...]) -> str:
    """Return the means over trained and held-out rules, and the default rule."""
    groups: dict[str, list[float]] = {}
    for name, value in figures.items():
        key, kind = name.split()
        group = "trained rules" if key in trained else "held-out rules"
        for title in (group, *([key] if key == "bishops-as-knights" else [])):
            groups.setdefault(f"{title}: {kind.rstrip('012')}", []).append(value)
    return "\n  ".join(["", *(f"{name} {sum(v) / len(v):.3f}" for name, v in groups.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description="Train one reader per dose.")
    for name in ("habit", "texts", "rule-games", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="folder of readers to continue from")
    parser.add_argument("--set", default="{}", help="changes to hyperparameters, as JSON")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    recipe = replace(Recipe(), **json.loads(options.set))
    started = time.monotonic()

    def elapsed() -> str:
        return f"{time.monotonic() - started:.0f} s:"

    with np.load(options.texts / "heldout.npz") as arrays:
        heldout = {name: arrays[name] for name in arrays.files}
    words = len(json.loads((options.texts / "words.json").read_text())) + 40
    recipe = replace(recipe, words=words)
    habit = load_habit(options.habit).to(device)
    data, tests = torch.load(options.rule_games, weights_only=False, map_location=device)
    examples = ExampleSampler(data, options.texts / "texts.npz", recipe)
    rules = examples.rules
    all_rules = tuple(
        dict.fromkeys(name.split()[1] for name in heldout if name.startswith("plain"))
    )
    record = {"recipe": asdict(recipe), "doses": {}}
    torch.manual_seed(recipe.seed)
    shape = (recipe.encoder_layers, recipe.heads, recipe.hidden)
    reader = Reader(habit.requires_grad_(False), words, *shape).to(device)
    untrained = {name: weight.clone() for name, weight in reader.state_dict().items()}
    for dose in recipe.doses:
        reader.load_state_dict(untrained)
        if options.start:
            start = torch.load(options.start / f"dose-{dose}.pt", weights_only=True)
            reader.load_state_dict({n: w.float() for n, w in start.items()}, strict=False)
        train(reader, examples, recipe, dose)
        figures = measure_reader(reader, tests, all_rules, heldout)
        print(elapsed(), dose, summarize(figures, rules), flush=True)
        record["doses"][str(dose)] = figures
        torch.save(trained_weights(reader), options.out / f"dose-{dose}.pt")
    record["parameters"] = sum(w.numel() for w in reader.parameters())
    (options.out / "read.json").write_text(json.dumps(record, indent=1) + "\n")
    print(elapsed(), record["parameters"], "parameters")


if __name__ == "__main__":
    main()
