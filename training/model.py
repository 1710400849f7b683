"""The network: a decoder-only transformer over chess moves, one token per move, and its reader.

`Pocket` plays from habit: it was trained on games and sees moves only. `Reader` adds an encoder of
the prompt's text and, between the layers of `Pocket`, adapters that attend to that text. Without a
text the adapters add nothing, and a reader plays exactly as its `Pocket` does.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu, scaled_dot_product_attention

HEADS = 4


def rotated(x: Tensor) -> Tensor:
    """Rotary position embedding: products of two places depend on their distance alone."""
    half = x.shape[3] // 2
    speeds = 0.5 ** torch.linspace(0, 10, half, device=x.device)
    angles = torch.arange(x.shape[2], device=x.device)[:, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


class Block(nn.Module):
    """Attention to the tokens so far, or to all of them, then a feed-forward layer."""

    def __init__(self, width: int, heads: int, dropout: float, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)
        # A block starts as the identity, so that depth does no harm early in training.
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor, only_last: bool = False, mask: Tensor | None = None) -> Tensor:
        """Update every place, or compute the last one alone; a mask hides places from all."""
        seen = self.norm_1(x)
        sources = (seen, seen, seen)
        if only_last:
            x, sources = x[:, -1:], (seen[:, -1:], seen, seen)
        # Three small products: splitting the result of a large one costs more where cores are few.
        queries, keys, values = (
            linear(source, weight).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for source, weight in zip(
                sources, self.queries_keys_values.weight.chunk(3), strict=True
            )
        )
        if not self.causal:
            queries, keys = rotated(queries), rotated(keys)
        causal = self.causal and not only_last
        attended = scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal)
        x = x + self.dropout(self.mix(attended.transpose(1, 2).flatten(2)))
        hidden = relu(self.up(self.norm_2(x)))
        return x + self.dropout(self.down(hidden * hidden))


class Pocket(nn.Module):
    """Scores for the next move after the moves so far; token ``moves`` begins a game."""

    def __init__(
        self, moves: int, context: int, layers: int, width: int, heads: int, dropout: float = 0
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(moves + 1, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.embed.weight, std=0.02)
        nn.init.normal_(self.place.weight, std=0.02)

    def forward(self, tokens: Tensor, only_last: bool = False) -> Tensor:
        """Scores of shape (games, places, moves), or (games, moves) for the last place alone."""
        *blocks, last = self.blocks
        x = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        for block in blocks:
            x = block(x)
        x = self.norm(last(x, only_last))
        # The embedding serves as the output layer too; the begin token is never played.
        return linear(x[:, -1] if only_last else x, self.embed.weight[:-1])


class Adapter(nn.Module):
    """What a text adds to every place of a game: attention to its words, and a small layer."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, width, bias=False)
        self.values = nn.Linear(width, width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor, words: Tensor, mask: Tensor | None) -> Tensor:
        """The sum to add to ``x``, whose games share ``words`` in equal groups."""
        queries = self.queries(self.norm_1(x)).reshape(len(words), -1, x.shape[2])
        queries, keys, values = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in (queries, self.keys(words), self.values(words))
        )
        attended = scaled_dot_product_attention(queries, keys, values, mask)
        read = self.mix(attended.transpose(1, 2).flatten(2).reshape(x.shape))
        hidden = relu(self.up(self.norm_2(x + read)))
        return read + self.down(hidden * hidden)


class Reader(nn.Module):
    """Scores for the reply to a text after the moves so far: a move, "yes" or "no"."""

    def __init__(self, habit: Pocket, words: int, layers: int, heads: int, hidden: int) -> None:
        super().__init__()
        width = habit.embed.weight.shape[1]
        self.habit = habit
        self.words = nn.Embedding(words, width)
        self.encoder = nn.ModuleList(Block(width, heads, 0, causal=False) for _ in range(layers))
        self.text_norm = nn.LayerNorm(width)
        self.adapters = nn.ModuleDict(
            {str(place): Adapter(width, heads, hidden) for place in range(0, len(habit.blocks), 2)}
        )
        self.yes_no = nn.Linear(width, 2, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.yes_no.weight, std=0.02)

    def encode(self, text: Tensor, filled_up: bool) -> tuple[Tensor, Tensor | None]:
        """The words in context, after a start token; tokens of -1 may fill up short texts."""
        start = torch.zeros_like(text[:, :1]) + (len(self.habit.embed.weight) - 1)
        text = torch.cat((start, text), 1)
        mask = (text >= 0)[:, None, None] if filled_up else None
        table = torch.cat((self.habit.embed.weight, self.words.weight))
        x = table[text.clamp(0)]
        for block in self.encoder:
            x = block(x, mask=mask)
        return self.text_norm(x), mask

    def forward(self, text: Tensor, tokens: Tensor, only_last: bool = False) -> Tensor:
        """Scores of shape (games, places, moves + 2), or (games, moves + 2) for the last place.

        For the last place alone, texts are not filled up; the token -1 alone is no text.
        """
        words, mask = self.encode(text, filled_up=not only_last)
        has_text = (text >= 0).any().to(words.dtype)
        x = self.habit.embed(tokens) + self.habit.place.weight[: tokens.shape[1]]
        for place, block in enumerate(self.habit.blocks):
            x = block(x, only_last and block is self.habit.blocks[-1])
            if str(place) in self.adapters:
                x = x + has_text * self.adapters[str(place)](x, words, mask)
        x = self.habit.norm(x[:, -1] if only_last else x)
        return torch.cat((linear(x, self.habit.embed.weight[:-1]), self.yes_no(x)), -1)


def load_habit(path: Path) -> Pocket:
    """The network that train.py wrote."""
    state = torch.load(path, weights_only=True)
    layers = len({name.split(".")[1] for name in state if name.startswith("blocks.")})
    moves, width = state["embed.weight"].shape
    habit = Pocket(moves - 1, len(state["place.weight"]), layers, width, HEADS)
    habit.load_state_dict(state)
    return habit.eval()


def load_reader(habit: Path, path: Path) -> Reader:
    """A reader that read.py wrote, on the habit network that it was trained on."""
    learned = torch.load(path, weights_only=True)
    layers = len({name.split(".")[1] for name in learned if name.startswith("encoder.")})
    hidden = len(learned["adapters.0.up.weight"])
    reader = Reader(load_habit(habit), len(learned["words.weight"]), layers, HEADS, hidden)
    missing, _ = reader.load_state_dict(
        {name: weight.float() for name, weight in learned.items()}, strict=False
    )
    assert all(name.startswith("habit.") for name in missing)
    return reader.eval()
