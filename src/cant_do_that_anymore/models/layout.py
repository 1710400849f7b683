"""Other layouts of a conversation, for models that do not take it turn by turn as it is."""

from .model import Message

OPENING_TURN = Message("user", "The game begins. You play White.")

STOP_SEQUENCES = ("System:", "User:", "Assistant:", "-----")
"""Where a base model starts to write the next turn itself."""


def user_first(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same conversation for providers that insist on a user turn first.

    White's first move is the assistant's when White is to move, and only then is a turn added.
    """
    system, *turns = messages
    if turns and turns[0].role == "user":
        return messages
    return (system, OPENING_TURN, *turns)


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same conversation for models that take no system message: the user states the task."""
    system, *turns = messages
    if turns and turns[0].role == "user":
        first, *rest = turns
        return (Message("user", f"{system.content}\n\n{first.content}"), *rest)
    return (Message("user", system.content), *turns)


def with_user_turn(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Add to the user's last turn, or add a turn: many models insist that turns alternate."""
    *before, last = messages
    if last.role == "user":
        return (*before, Message("user", f"{last.content}\n\n{text}"))
    return (*messages, Message("user", text))


def as_text(messages: tuple[Message, ...]) -> str:
    """The conversation as a single text for base models, ready for the assistant's next turn."""
    turns = [f"{message.role.capitalize()}: {message.content}" for message in messages]
    return "\n".join([*turns, "Assistant:"])
