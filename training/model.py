"""A plain decoder-only transformer over chess moves: one token a move."""

from torch import Tensor, nn
from torch.nn.functional import linear, relu, scaled_dot_product_attention


class Block(nn.Module):
    """Attention to the moves so far, then a feed-forward layer."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)
        # A block starts as the identity, so that depth does no harm early in training.
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.down.weight)

    def forward(self, x: Tensor, only_last: bool = False) -> Tensor:
        """Update every place, or compute the last one alone."""
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
        attended = scaled_dot_product_attention(queries, keys, values, is_causal=not only_last)
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
