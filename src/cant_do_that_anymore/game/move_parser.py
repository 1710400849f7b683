"""Parse the move in a model's reply, and the moves of a game or in a text."""

import re
from collections.abc import Sequence

import chess

from ..errors import InvalidInput
from .mentions import Resolver, as_castling, bare_move, mentions_in
from .move_extraction import EXTRACTORS, Reply, first_match, may_promote
from .reply_text import plain_text
from .rules import STANDARD, Rules, board_after, resolve_rules


def move_in(
    text: str,
    board: chess.Board,
    rules: Rules,
    *,
    cut_off: bool = False,
    previous: str | None = None,
) -> chess.Move | None:
    """Return the move that a reply plays, or None.

    Args:
        text: the reply.
        board: the position.
        rules: the rules in force.
        cut_off: whether the token limit cut off the reply.
        previous: the last move of the game in UCI, if known.

    >>> move_in("Instead of 1. Nf3, I play d4.", chess.Board(), STANDARD)
    Move.from_uci('d2d4')
    """
    bare = bare_move(text.strip())
    if bare and not (cut_off and may_promote(bare, board)):
        return as_castling(bare, board)
    return first_match(Reply(plain_text(text), board, rules, cut_off, previous), EXTRACTORS)


def read_move(
    reply: str,
    *,
    moves: Sequence[str] | str = (),
    fen: str | None = None,
    rules: Rules | str = "standard",
) -> str | None:
    """Parse the move that a reply plays.

    Args:
        reply: the text of the reply.
        moves: the moves played so far, in UCI, as a sequence or as one string with spaces.
        fen: the position, if it is not the one after ``moves`` from the initial position; of
            ``moves``, only the last one matters then.
        rules: the rules in force, by key or as a value.

    Returns:
        The move in UCI, legal or not, or None if the reply plays none, or more than one.

    Raises:
        InvalidInput: if the moves, the FEN or the rules are invalid.

    >>> read_move("Instead of 4. Bb5, I play d4.", moves="e2e4 e7e6 g1f3 c7c5 c2c3 b7b6")
    'd2d4'
    """
    played = moves.split() if isinstance(moves, str) else list(moves)
    current_rules = resolve_rules(rules)
    if fen is None:
        board = board_after(played, STANDARD, current_rules)
    else:
        try:
            board = chess.Board(fen)
        except ValueError:
            raise InvalidInput(f"not a position in FEN: {fen!r}") from None
    if played and not bare_move(played[-1]):
        raise InvalidInput(f"not a move in UCI such as 'e2e4': {played[-1]!r}")
    move = move_in(reply, board, current_rules, previous=played[-1] if played else None)
    return move.uci() if move else None


def moves_in(game: str, rules: Rules) -> list[str]:
    """Parse a game from the initial position to moves in UCI, ignoring move numbers.

    Raises:
        InvalidInput: if a word is not a move, or comes after a move that is illegal under both the
            standard rules and ``rules``.

    >>> moves_in("1. e4 e5 2. Nf3 b8c6", STANDARD)
    ['e2e4', 'e7e5', 'g1f3', 'b8c6']
    """
    moves: list[str] = []
    for word in game.split():
        if re.fullmatch(r"\d{1,3}\s*(?:\.+|\u2026)\s*", word):
            continue
        move = bare_move(word) or move_in(word, board_after(moves, STANDARD, rules), rules)
        if not move:
            problem = f"move {len(moves) + 1} is not a move there"
            raise InvalidInput(f"{problem}: {word!r}; write it as e2e4 or Nf3")
        moves.append(move.uci())
    return moves


def named_moves(text: str, board: chess.Board, rules: Rules) -> dict[str, chess.Move | None]:
    """Find everything in a text that looks like a move, with the move it denotes, if any.

    Bare squares and moves in words do not count.

    >>> named_moves("Bb5? No, f1b5 is illegal.", chess.Board(), STANDARD)
    {'Bb5': None, 'f1b5': Move.from_uci('f1b5')}
    """
    resolver = Resolver(board, rules)
    words = dict.fromkeys(text.split())  # long texts repeat themselves
    mentions = (m for word in words for m in mentions_in(word, resolver) if not m.weak)
    return {mention.text: mention.move for mention in mentions}
