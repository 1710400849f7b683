"""Teach the habit network to read: train its reader on texts that state rules, in several doses.

    python training/read.py --habit pocket.pt --texts TEXTS --rule-games GAMES.pt --out OUT

TEXTS is what texts.py wrote, GAMES.pt what selfplay.py wrote. The habit network stays as it is. A
reader learns to play as it does, restricted to the moves that the text allows, and to answer
whether a move is legal. OUT receives the weights of one reader per dose, and read.json with what
was measured. The dose is the share of examples whose text states a changed rule; all else is equal.
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

YES, NO = BEGIN, BEGIN + 1  # among the scores
QUERIED = list(vocabulary().values()).index("a1a8")  # stands for the move in a question


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a reader learns, besides the texts and games.

    Attributes:
        doses: the shares of examples with a changed rule.
        groups, games: texts per step, and games per text.
        questions: questions of legality per step.
        left_out, replaced: shares of the words of a text, by chance.
        random_examples: the share of the moves in a text that become any other move.
        words: the words of the tokenizer.
        new_moves: the share of the target that moves have which only the changed rules allow.
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


def masks(legal: Tensor) -> Tensor:
    """Lists of moves, filled up with -1, as masks over all moves."""
    found = torch.zeros((*legal.shape[:-1], BEGIN + 1), dtype=torch.bool, device=legal.device)
    index = torch.where(legal < 0, BEGIN, legal.long())
    return found.scatter_(-1, index, True)[..., :BEGIN]


def targets(scores: Tensor, legal: Tensor, standard: Tensor, new_moves: float) -> Tensor:
    """The network's own probabilities among the legal moves, and a little of each new move."""
    allowed, usual = masks(legal), masks(standard)
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
    """Cross-entropy to the habit network's moves, restricted where the text states a rule."""
    with torch.autocast(games.device.type, torch.bfloat16):
        with torch.no_grad():
            habit = reader.habit(games[:, :-1])
        scores = reader(text, games[:, :-1])
    with torch.no_grad():
        free = habit.float().softmax(-1)
        wanted = torch.where(rule[:, None, None], targets(habit, legal, standard, new_moves), free)
    logs = scores.float().log_softmax(-1)[..., :BEGIN]
    return -((wanted * logs).sum(-1) * weight).sum() / weight.sum()


def question_loss(
    reader: Reader, text: Tensor, games: Tensor, yes: Tensor, weight: Tensor
) -> Tensor:
    """Cross-entropy to "yes" or "no" at the places that count."""
    with torch.autocast(games.device.type, torch.bfloat16):
        scores = reader(text, games[:, :-1])
    answer = torch.where(yes, YES, NO)
    loss = functional.cross_entropy(
        scores.float().flatten(0, 1), answer.flatten(), reduction="none"
    )
    return (loss * weight.flatten()).sum() / weight.sum()


def contains(lists: Tensor, move: Tensor) -> Tensor:
    """Whether a move per game is in its lists of moves, by ply."""
    return (lists == move[:, None, None]).any(-1)


class Examples:
    """Draws examples at a dose: texts with games, and what is right there."""

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
        self.there = (data.games[:, 1:] != BEGIN) & ~data.held_out
        self.lengths = (data.games[:, 1:] != BEGIN).sum(1).clamp(1)

    def below(self, limit: int | Tensor, *shape: int) -> Tensor:
        """Random integers below a limit."""
        return (torch.rand(shape, device=self.device) * limit).long()

    def rules_drawn(self, count: int, dose: float) -> tuple[Tensor, Tensor]:
        """Rules of games, and whether the text states them: the share of the dose, on average."""
        stated = int(dose * count + float(np.random.random()))
        return self.below(len(self.rules), count), torch.arange(count, device=self.device) < stated

    def text(self, rules: Tensor, stated: Tensor) -> Tensor:
        """A text per entry that states its rules, or none."""
        changed = self.texts[rules, self.below(self.texts.shape[1], len(rules))]
        standard = self.standard[self.below(len(self.standard), len(rules))]
        text = torch.where(stated[:, None], changed, standard).long()
        # Moves in a text are examples of the notation: any move will do.
        drawn = torch.rand(text.shape, device=self.device) < self.recipe.random_examples
        is_example = (text >= 0) & (text < BEGIN) & drawn
        return torch.where(is_example, self.below(BEGIN, *text.shape), text)

    def noisy(self, text: Tensor) -> Tensor:
        """The text with words left out and replaced, and nothing between its words."""
        noise = torch.rand(text.shape, device=self.device)
        other = BEGIN + 1 + self.below(self.recipe.words, *text.shape)
        words = text > BEGIN
        text = torch.where(words & (noise < self.recipe.replaced), other, text)
        text = torch.where(words & (noise > 1 - self.recipe.left_out), -1, text)
        return text.gather(1, (text < 0).byte().sort(dim=1, stable=True).indices)

    def games(self, rules: Tensor, count: int) -> Tensor:
        """Games under each of the rules; they alternate."""
        number = self.below(len(self.data.games) // len(self.rules), len(rules), count)
        return (rules[:, None] + len(self.rules) * number).flatten()

    def moves(self, dose: float) -> tuple[Tensor, ...]:
        """Arguments of `move_loss`."""
        data, recipe = self.data, self.recipe
        rules, stated = self.rules_drawn(recipe.groups, dose)
        index = self.games(rules, recipe.games)
        text = self.noisy(self.text(rules, stated))
        return (
            text,
            data.games[index],
            stated.repeat_interleave(recipe.games),
            data.legal[index],
            data.standard[index],
            self.there[index].float(),
        )

    def asked(self, dose: float) -> tuple[Tensor, ...]:
        """Arguments of `question_loss`."""
        data = self.data
        rules, stated = self.rules_drawn(self.recipe.questions, dose)
        index = self.games(rules, 1)
        ply = self.below(self.lengths[index], len(index))
        legal, standard = data.legal[index], data.standard[index]
        move = self.queried(legal, standard, ply)
        question = self.questions[self.below(len(self.questions), len(index))].long()
        text = self.noisy(torch.cat((self.text(rules, stated), question), 1))
        text = torch.where(text == QUERIED, move[:, None], text)
        allowed, usual = contains(legal, move), contains(standard, move)
        here = torch.arange(PLIES, device=self.device) == ply[:, None]
        weight = self.there[index] & (allowed | usual | here)
        return text, data.games[index], torch.where(stated[:, None], allowed, usual), weight.float()

    def queried(self, legal: Tensor, standard: Tensor, ply: Tensor) -> Tensor:
        """A move to ask about: one that only one set of rules allows, that both do, or any."""
        rows = torch.arange(len(ply), device=ply.device)
        allowed, usual = masks(legal[rows, ply]), masks(standard[rows, ply])
        kinds = torch.stack((usual & ~allowed, allowed & ~usual, allowed & usual))
        odds = kinds / kinds.sum(-1, keepdim=True).clamp(1)
        share = torch.tensor([0.35, 0.35, 0.15], device=ply.device)[:, None, None]
        anything = torch.full_like(odds[0], 0.15 / BEGIN)
        return torch.multinomial((share * odds).sum(0) + anything, 1)[:, 0]


def optimizers(
    reader: Reader, recipe: Recipe
) -> tuple[list[torch.optim.Optimizer], list[LambdaLR]]:
    learned = [weight for weight in reader.parameters() if weight.requires_grad]
    inner = [
        w for part in (reader.encoder, reader.adapters) for w in part.parameters() if w.ndim == 2
    ]
    others = [weight for weight in learned if all(weight is not w for w in inner)]
    both: list[torch.optim.Optimizer] = [
        torch.optim.Muon(
            inner, lr=recipe.learning_rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(others, lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0),
    ]

    def rate(step: int) -> float:
        done = (step + 1) / (recipe.steps + 1)
        return min(done / recipe.warmup, (1 - done) / (1 - recipe.warmup))

    return both, [LambdaLR(optimizer, rate) for optimizer in both]


def teach(reader: Reader, examples: Examples, recipe: Recipe, dose: float) -> None:
    """Train a new reader at a dose."""
    torch.manual_seed(recipe.seed)
    np.random.seed(recipe.seed)
    device = examples.data.games.device
    both, schedules = optimizers(reader, recipe)
    off = device.type == "cpu"
    of_moves, of_questions = (torch.compile(f, disable=off) for f in (move_loss, question_loss))
    total = torch.zeros(2, device=device)
    every = max(1, recipe.steps // 6)
    for step in range(recipe.steps):
        first = of_moves(reader, *examples.moves(dose), recipe.new_moves)
        second = of_questions(reader, *examples.asked(dose))
        (first + recipe.question_weight * second).backward()
        torch.nn.utils.clip_grad_norm_([w for w in reader.parameters() if w.requires_grad], 1.0)
        for part in (*both, *schedules):
            part.step()
        reader.zero_grad()
        total += torch.stack((first.detach(), second.detach()))
        if (step + 1) % every == 0:
            means = [round(loss / every, 4) for loss in total.tolist()]
            print(f"dose {dose}, step {step + 1}: loss {means}", flush=True)
            total.zero_()


def learned_weights(reader: Reader) -> dict[str, Tensor]:
    """All weights but those of the habit network, in half precision."""
    state = reader.state_dict()
    return {name: w.half().cpu() for name, w in state.items() if not name.startswith("habit.")}


def illegal_share(scores: Tensor, allowed: Tensor, where: Tensor) -> Tensor:
    """The mean probability of replies that are not allowed."""
    return 1 - (scores.softmax(-1)[..., :BEGIN] * allowed).sum(-1)[where].mean()


@torch.no_grad()
def quick_figures(
    reader: Reader, data: RuleGames, rules: tuple[str, ...], texts: dict[str, np.ndarray]
) -> dict[str, float]:
    """Share of the illegal probability that a text takes away where the habit is forbidden."""
    device = data.games.device

    def scores(text: np.ndarray, part: Tensor) -> Tensor:
        row = torch.from_numpy(text).to(device).long()[None]
        with torch.autocast(device.type, torch.bfloat16):
            return reader(row, data.games[part][:, :-1]).float()

    found: dict[str, float] = {}
    for rule, key in enumerate(rules):
        part = torch.nonzero(data.rules == rule)[:, 0]
        if not len(part):
            continue
        allowed, usual = masks(data.legal[part]), masks(data.standard[part])
        there = data.games[part][:, 1:] != BEGIN
        base = scores(texts["standard default"], part)
        best = base[..., :BEGIN].argmax(-1, keepdim=True)
        habit = there & usual.gather(-1, best)[..., 0] & ~allowed.gather(-1, best)[..., 0]
        if not habit.any():
            continue

        before = illegal_share(base, allowed, habit)
        for name, text in texts.items():
            kind, _, about = name.partition(" ")
            if about == key:
                after = scores(text, part)
                found[f"{key} {kind}"] = round(
                    float(1 - illegal_share(after, allowed, habit) / before), 3
                )
                if kind == "default":
                    found[f"{key} n"] = int(habit.sum())
        if f"asked {key}" in texts:
            found |= asked_figures(
                reader, data, key, part, habit, texts[f"asked {key}"], (allowed, usual), best
            )
    return found


def asked_figures(
    reader: Reader,
    data: RuleGames,
    key: str,
    part: Tensor,
    habit: Tensor,
    text: np.ndarray,
    legal: tuple[Tensor, Tensor],
    best: Tensor,
) -> dict[str, float]:
    """How often yes or no is right about the habit, and about a move that is new or legal."""
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


def summary(figures: dict[str, float], trained: tuple[str, ...]) -> str:
    """The means over trained and held-out rules, and the default rule."""
    found: dict[str, list[float]] = {}
    for name, value in figures.items():
        key, kind = name.split()
        group = "trained rules" if key in trained else "held-out rules"
        for each in (group, *([key] if key == "bishops-as-knights" else [])):
            found.setdefault(f"{each}: {kind.rstrip('012')}", []).append(value)
    return "\n  ".join(["", *(f"{name} {sum(v) / len(v):.3f}" for name, v in found.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description="Train readers in several doses.")
    for name in ("habit", "texts", "rule-games", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="readers to go on with, one per dose")
    parser.add_argument("--set", default="{}", help="changes of the recipe, as JSON")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    recipe = replace(Recipe(), **json.loads(asked.set))
    begun = time.monotonic()

    def passed() -> str:
        return f"{time.monotonic() - begun:.0f} s:"

    with np.load(asked.texts / "heldout.npz") as arrays:
        heldout = {name: arrays[name] for name in arrays.files}
    words = len(json.loads((asked.texts / "words.json").read_text())) + 40
    recipe = replace(recipe, words=words)
    habit = load_habit(asked.habit).to(device)
    data, tests = torch.load(asked.rule_games, weights_only=False, map_location=device)
    examples = Examples(data, asked.texts / "texts.npz", recipe)
    rules = examples.rules
    all_rules = tuple(
        dict.fromkeys(name.split()[1] for name in heldout if name.startswith("default"))
    )
    record = {"recipe": asdict(recipe), "doses": {}}
    torch.manual_seed(recipe.seed)
    shape = (recipe.encoder_layers, recipe.heads, recipe.hidden)
    reader = Reader(habit.requires_grad_(False), words, *shape).to(device)
    untrained = {name: weight.clone() for name, weight in reader.state_dict().items()}
    for dose in recipe.doses:
        reader.load_state_dict(untrained)
        if asked.start:
            start = torch.load(asked.start / f"dose-{dose}.pt", weights_only=True)
            reader.load_state_dict({n: w.float() for n, w in start.items()}, strict=False)
        teach(reader, examples, recipe, dose)
        figures = quick_figures(reader, tests, all_rules, heldout)
        print(passed(), dose, summary(figures, rules), flush=True)
        record["doses"][str(dose)] = figures
        torch.save(learned_weights(reader), asked.out / f"dose-{dose}.pt")
    record["parameters"] = sum(w.numel() for w in reader.parameters())
    (asked.out / "read.json").write_text(json.dumps(record, indent=1) + "\n")
    print(passed(), record["parameters"], "parameters")


if __name__ == "__main__":
    main()
