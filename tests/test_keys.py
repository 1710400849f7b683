"""A planted key is found nowhere after a run full of errors."""

import os
from pathlib import Path

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import BadInput
from cant_do_that_anymore.game.position import shipped_pool, write_positions
from cant_do_that_anymore.models.names import model_named
from loopback import Loopback, Request, serving
from players import habit
from processes import process_of

KEY = "sk-planted-3fa85f64-5717-4562-b3fc-2c963f66afa6"
PIECES = (KEY, KEY[:20], KEY[-20:])
POOL = shipped_pool("pool")[:6]


def echoing(status: int) -> Loopback:
    """A server that repeats the key in its errors, so late that it is cut off in the middle."""

    async def fault(request: Request, number: int) -> web.StreamResponse | None:
        heard = server.headers[number - 1]["Authorization"]
        if 2 <= number <= 9:
            text = f"{'.' * (250 + number)} I heard {heard} and again {heard}"
            return web.json_response({"error": {"message": text}}, status=status)
        return None

    server = Loopback(habit, fault=fault)
    return server


@pytest.mark.parametrize(
    "address",
    [f"http://user:{KEY}@localhost/v1", f"http://localhost/v1?key={KEY}", f"http://h/#{KEY}"],
)
def test_a_key_in_the_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(BadInput, match="a key goes into an environment variable") as problem:
        model_named("m", address)
    assert KEY not in str(problem.value)


@pytest.mark.parametrize("key", [f"{KEY}\n{KEY}", f"{KEY}\x00", f"{KEY}\u20ac"])
def test_a_key_that_cannot_be_sent_is_not_repeated(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"CDTA_API_KEY": key})
    with pytest.raises(BadInput, match="CDTA_API_KEY holds characters") as problem:
        model_named("m", "http://localhost/v1")
    assert KEY not in str(problem.value)


@pytest.mark.parametrize(
    ("variable", "status"),
    [
        *(("CDTA_API_KEY", status) for status in (200, 400, 401, 429, 500)),
        *(("OPENAI_API_KEY", status) for status in (401, 500)),
    ],
)
def test_a_planted_key_is_nowhere(variable: str, status: int, home: Path, tmp_path: Path) -> None:
    positions = tmp_path / "positions.jsonl"
    write_positions(positions, POOL)
    with serving(echoing(status)) as server:
        if variable == "CDTA_API_KEY":
            whom = ["--base-url", server.url, "--model", "m"]
        else:
            whom = ["--model", "openai/m"]
        environment = {variable: KEY, "OPENAI_BASE_URL": server.url}
        limits = ["--max-error-rate", 1, "--max-connections", 8]
        process = process_of("run", *whom, "--dataset", positions, *limits, **environment)
        title = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        out, errors = process.communicate(timeout=120)
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    places = {"output": out.encode(), "errors": errors.encode(), "title": title}
    places |= {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert len(places) >= 4
    for place, content in places.items():
        for piece in PIECES:
            assert piece.encode() not in content, place
