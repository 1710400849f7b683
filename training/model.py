"""The networks: a decoder-only transformer over chess moves (one token per move), and its reader.

`Pocket` plays from habit: it is trained on games and sees only moves. `Reader` adds an encoder of
the prompt's text and, between the layers of `Pocket`, adapters that attend to that text. Without a
text, the adapters add nothing, and a reader plays exactly like its `Pocket`.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu, scaled_dot_product_attention

HEADS = 4


def apply_rotary(x: Tensor) -> Tensor:
    """Apply rotary position embedding: dot products depend only on the distance of positions."""
    half = x.shape[3] // 2
    speeds = 0.5 ** torch.linspace(0, 10, half, device=x.device)
    angles = torch.arange(x.shape[2], device=x.device)[:, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


class Block(nn.Module):
    """Attention (causal, or to all tokens) and a feed-forward layer."""

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
        """Update every position, or compute only the last one; a mask hides positions."""
        normed = self.norm_1(x)
        sources = (normed, normed, normed)
        if only_last:
            x, sources = x[:, -1:], (normed[:, -1:], normed, normed)
        # Three small products are faster on few cores than one large product that is then split.
        queries, keys, values = (
            linear(source, weight).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for source, weight in zip(
                sources, self.queries_keys_values.weight.chunk(3), strict=True
            )
        )
        if not self.causal:
            queries, keys = apply_rotary(queries), apply_rotary(keys)
        causal = self.causal and not only_last
        attended = scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal)
        x = x + self.dropout(self.mix(attended.transpose(1, 2).flatten(2)))
        hidden = relu(self.up(self.norm_2(x)))
        return x + self.dropout(self.down(hidden * hidden))


class Pocket(nn.Module):
    """Scores the next move, given the moves so far; token ``moves`` begins a game."""

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
        """Return scores of shape (games, positions, moves), or (games, moves) if ``only_last``."""
        *blocks, last = self.blocks
        x = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        for block in blocks:
            x = block(x)
        x = self.norm(last(x, only_last))
        # The embedding is also the output layer; the begin token is never played.
        return linear(x[:, -1] if only_last else x, self.embed.weight[:-1])


class Adapter(nn.Module):
    """Adds a text to every position of a game: attention to its words and a small layer."""

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
        """Return the update of ``x``; equal groups of its games share a row of ``words``."""
        queries = self.queries(self.norm_1(x)).reshape(len(words), -1, x.shape[2])
        queries, keys, values = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in (queries, self.keys(words), self.values(words))
        )
        attended = scaled_dot_product_attention(queries, keys, values, mask)
        update = self.mix(attended.transpose(1, 2).flatten(2).reshape(x.shape))
        hidden = relu(self.up(self.norm_2(x + update)))
        return update + self.down(hidden * hidden)


class Reader(nn.Module):
    """Scores the reply to a text, given the moves so far: a move, "yes" or "no"."""

    def __init__(self, habit: Pocket, words: int, layers: int, heads: int, hidden: int) -> None:
        super().__init__()
        width = habit.embed.weight.shape[1]
        self.habit = habit
        self.words = nn.Embedding(words, width)
        self.encoder = nn.ModuleList(Block(width, heads, 0, causal=False) for _ in range(layers))
        self.text_norm = nn.LayerNorm(width)
        self.adapters = nn.ModuleDict(
            {str(layer): Adapter(width, heads, hidden) for layer in range(0, len(habit.blocks), 2)}
        )
        self.yes_no = nn.Linear(width, 2, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.yes_no.weight, std=0.02)

    def encode(self, text: Tensor, is_padded: bool) -> tuple[Tensor, Tensor | None]:
        """Return the encoded words after a start token, and a mask of padding (tokens of -1)."""
        start = torch.zeros_like(text[:, :1]) + (len(self.habit.embed.weight) - 1)
        text = torch.cat((start, text), 1)
        mask = (text >= 0)[:, None, None] if is_padded else None
        table = torch.cat((self.habit.embed.weight, self.words.weight))
        x = table[text.clamp(0)]
        for block in self.encoder:
            x = block(x, mask=mask)
        return self.text_norm(x), mask

    def forward(self, text: Tensor, tokens: Tensor, only_last: bool = False) -> Tensor:
        """Return scores of shape (games, positions, moves + 2).

        With ``only_last``, the shape is (games, moves + 2), and texts have no padding; a single
        token of -1 means no text.
        """
        words, mask = self.encode(text, is_padded=not only_last)
        has_text = (text >= 0).any().to(words.dtype)
        x = self.habit.embed(tokens) + self.habit.place.weight[: tokens.shape[1]]
        for layer, block in enumerate(self.habit.blocks):
            x = block(x, only_last and block is self.habit.blocks[-1])
            if str(layer) in self.adapters:
                x = x + has_text * self.adapters[str(layer)](x, words, mask)
        x = self.habit.norm(x[:, -1] if only_last else x)
        return torch.cat((linear(x, self.habit.embed.weight[:-1]), self.yes_no(x)), -1)


def load_habit(path: Path) -> Pocket:
    """Load the habit network that train_habit.py wrote."""
    state = torch.load(path, weights_only=True)
    layers = len({name.split(".")[1] for name in state if name.startswith("blocks.")})
    moves, width = state["embed.weight"].shape
    habit = Pocket(moves - 1, len(state["place.weight"]), layers, width, HEADS)
    habit.load_state_dict(state)
    return habit.eval()


def load_reader(habit: Path, path: Path) -> Reader:
    """Load a reader that train_reader.py wrote, with the habit network that it was trained on."""
    weights = torch.load(path, weights_only=True)
    layers = len({name.split(".")[1] for name in weights if name.startswith("encoder.")})
    hidden = len(weights["adapters.0.up.weight"])
    reader = Reader(load_habit(habit), len(weights["words.weight"]), layers, HEADS, hidden)
    missing, _ = reader.load_state_dict(
        {name: weight.float() for name, weight in weights.items()}, strict=False
    )
    assert all(name.startswith("habit.") for name in missing)
    return reader.eval()
