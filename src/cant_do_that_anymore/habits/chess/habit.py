"""Chess as a habit: positions are its items, and changed rules forbid usual moves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..base import Form, Habit, Pool
from ..words import Words
from .forms import FORMS
from .move_names import named_moves
from .notation import draw_board, notate, notate_game
from .picture import RulePicture, pieces, rule_picture
from .pools import COMMON, GAMES, RATES_ON_ALL, RATES_ON_COMMON, pool_named
from .position import Position, parse_position, parse_positions
from .rule_pool import example_of
from .rules import Rules, board_after, rules_named


class Chess(Habit):
    """Positions of games, with moves that changed rules forbid."""

    name = "chess"
    folder = "chess"
    forms: Mapping[str, Form] = FORMS
    pools: Sequence[str] = (COMMON, GAMES)
    words: Words = Words(
        item="position",
        answer="move",
        verb="plays",
        past="played",
        place="in",
        allowed="legal",
        disallowed="illegal",
        group="game",
        cannot="of its moves are legal",
        hopeless="this model can't play chess; try --rules base-9",
    )
    script = "board.js"

    def pool(self, change: Rules, name: str = "", *, quiet: bool = True) -> Pool:
        """Return the original's positions, or those of the bundled games or of datasets."""
        return pool_named(change, name, quiet=quiet)

    def usual_rates(self, pool: str) -> Sequence[float]:
        """Return how often the models of the shipped datasets play the usual move."""
        return RATES_ON_COMMON if pool == COMMON else RATES_ON_ALL

    def items_in(self, path: Path) -> list[Position]:
        """Read a file of positions without checking the moves."""
        return parse_positions(path)

    def item(self, line: Any) -> Position:
        """Return a position from its JSON object, if its moves are possible."""
        position = parse_position(line)
        board_after(position.moves)
        return position

    def as_control(self, item: Position, answer: str) -> Position | None:
        """Return the position with the model's own move as the usual one."""
        return None if answer in item.usual else replace(item, usual=(answer,))

    def examples(self, change: Rules) -> list[Position]:
        """Return a position of a famous game."""
        example = example_of(change)
        return [example] if example else []

    def worked_example(self, change: Rules) -> str:
        """Return an example from another game, whose changed rule is the placebo."""
        others = (change.placebo_change, rules_named("no-castling"))  # one's own may forbid nothing
        rules, position = next((other, game) for other in others if (game := example_of(other)))
        fen, usual, right = position.board().fen(), position.usual[0], rules.examples(position)
        by_the_same_piece = [move for move in right if move[:2] == usual[:2]]
        reply = min(by_the_same_piece or right)
        return (
            "Here is a worked example from another game, in which another rule was changed: "
            f'"{rules.statement}" In one position of that game, {fen} in FEN, the usual move '
            f"{usual} would have broken its rule. A correct reply was {reply}."
        )

    def show(self, item: Position) -> str:
        """Return the game so far and the board."""
        board = item.board()
        side = "White" if board.turn else "Black"
        game = notate_game(item.moves) or "The first move."
        return f"{game}\n\n{draw_board(board)}\n\n{side} to move."

    def label(self, item: Position, answer: str) -> str:
        """Return a move in algebraic notation."""
        return notate(item.board(), answer)

    def details(self, item: Position) -> dict[str, Any]:
        """Return the board and the game so far."""
        return {
            "game": item.game,
            "fen": item.board().fen(),
            "last_move": item.moves[-1] if item.moves else "",
            "moves": notate_game(item.moves),
        }

    def named_answers(self, text: str, item: Position, change: Rules) -> dict[str, str]:
        """Return the moves that a text names."""
        return named_moves(text, item.board(), change)

    def picture(self, change: Rules) -> RulePicture | None:
        """Return a board diagram of a piece whose moves the change affects."""
        return rule_picture(change)

    def definitions(self) -> Markup:
        """Return the pieces."""
        return pieces()


CHESS = Chess()
