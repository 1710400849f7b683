"""Defines a rule and a wording: castling is legal only on the queen's side.

python examples/own_rule.py [MODEL]
"""

import sys

import chess

from cant_do_that_anymore import Rules, Spec, Wording, evaluate, question


class OnlyLongCastling(Rules):
    key = "only-long-castling"
    title = "Only castling on the queen's side is allowed"
    statement = "Kings castle only on the queen's side now. Castling on the king's side is illegal."

    def view(self, board):
        view = board.copy(stack=False)
        view.castling_rights &= chess.BB_FILE_A
        return view

    def affects(self, board, move):  # optional; it makes mining faster
        return board.is_kingside_castling(move)


WORDING = Wording(
    name="own",
    standard="{position}. Reply with your move in UCI notation.",
    changed="One rule is new: {change}\n\n{position}. Reply with your move in UCI notation.",
)

model = sys.argv[1] if len(sys.argv) > 1 else "cdta/pocket-rules"
run = evaluate(Spec(model=model, rules=OnlyLongCastling(), wording=WORDING, n=30))
prompt = question(run.samples[0].item, OnlyLongCastling(), "changed", WORDING)
print(*(message.content for message in prompt.messages), sep="\n\n")
print(f"\n{run.summary()}")
