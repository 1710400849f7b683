"""How many tokens a question takes, before it is asked."""

import os
from collections.abc import Callable

from ..models.model import Question

TURN_TOKENS = 4
"""What a chat layout adds to each message: two marks, the role, a line end."""
REPLY_TOKENS = 3
"""What it adds to begin the reply."""
LETTERS_A_TOKEN = 4
"""In English prose, by the rule of thumb of the providers."""
MOVE_ANSWER_TOKENS = 5
"""A move in UCI and the mark that ends the reply."""

Counter = Callable[[Question], int]
_Encode = Callable[[str], int]


def counter_for(model: str) -> tuple[Counter, bool]:
    """A function that counts the tokens of a question, and whether it has the model's tokenizer.

    OpenAI's tokenizers need files that ``tiktoken`` downloads. They are used where the user has
    given them a place by setting ``TIKTOKEN_CACHE_DIR``, and nothing is downloaded otherwise.
    """
    encode = _openai_tokenizer(model) if os.environ.get("TIKTOKEN_CACHE_DIR") else None
    if encode:
        exact = encode
        return lambda question: _chat(question, exact, exact), True
    # A tokenizer parts letters from digits, so that every character of a move is a token.
    return lambda question: _chat(question, _of_prose, len), False


def _chat(question: Question, prose: _Encode, move: _Encode) -> int:
    system, *turns = question.messages
    content = prose(system.content) + sum(move(turn.content) for turn in turns)
    return content + TURN_TOKENS * len(question.messages) + REPLY_TOKENS


def _of_prose(text: str) -> int:
    return round(len(text) / LETTERS_A_TOKEN)


def _openai_tokenizer(model: str) -> _Encode | None:
    try:
        import tiktoken

        encoding = tiktoken.encoding_for_model(model)
    except (ImportError, KeyError, OSError, ValueError):  # not there, not OpenAI's, or no file
        return None
    return lambda text: len(encoding.encode_ordinary(text))
