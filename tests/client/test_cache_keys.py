"""Which options make a run ask again, and which share the cached answers."""

from typing import Any

import pytest

from testing import Serve, measure, positions

# Requests that a second run sends which differs in one option: of 4 positions, each under the
# standard and under the changed rules.
ASKED_AGAIN: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    # What the model gets, which sample of its answers, or who answers.
    ({"temperature": 0.5}, 8),
    ({"max_tokens": 17}, 8),
    ({"reasoning_effort": "low"}, 8),
    ({"extra_body": '{"top_p": 0.5}'}, 8),
    ({"wording": "terse"}, 8),
    ({"form": "fen"}, 8),
    ({"seed": 1}, 8),
    ({"tag": "week-46"}, 8),
    ({"fresh": True}, 8),
    # A prompt under the standard rules does not depend on the change.
    ({"rules": "bishops-as-rooks"}, 4),
    ({"interventions": "repeated"}, 4),
    # How many answers, and how they are read, paid for and transported.
    ({"n": 2}, 0),
    ({"reading": "exact"}, 0),
    ({"price": "1,1"}, 0),
    ({"max_cost": 1.0, "price": "1,1"}, 0),
    ({"max_connections": 1}, 0),
    ({"header": ("X-Trace=1",)}, 0),
]


@pytest.mark.parametrize(("option", "n_requests"), ASKED_AGAIN, ids=str)
def test_options_that_ask_again(serve: Serve, option: dict[str, Any], n_requests: int) -> None:
    server, dataset = serve(lambda _: "a2a3"), positions(4)
    measure(server, dataset=dataset)
    assert len(server.requests) == 8
    measure(server, dataset=dataset, **option)
    identity_checks = len(server.requests) - 8 - n_requests
    assert identity_checks in (0, 1)
