"""A planted key appears nowhere after a run full of errors."""

from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.access import Redactor
from cant_do_that_anymore.providers.catalog import parse_name
from testing import Body, Loopback, cdta, habit, positions, serving

KEY = "sk-planted-3fa85f64-5717-4562-b3fc-2c963f66afa6"
SECRET = "s3cret-6f1b2c3d4e5f"
SENT = {"Authorization": f"Bearer {KEY}", "X-Gateway": SECRET, "X-Other": f"{SECRET}=="}
PIECES = (KEY, KEY[:20], KEY[-20:])


def echo_server(status: int) -> Loopback:
    """A server that repeats the key in its errors, so late that truncation splits the key."""

    async def fault(request: Body, number: int) -> web.StreamResponse | None:
        if 2 <= number <= 9:
            heard = " and ".join(server.headers[number - 1][name] for name in SENT)
            text = f"{'.' * (250 + number)} I heard {heard} and again {heard}"
            return web.json_response({"error": {"message": text}}, status=status)
        return None

    def respond(request: Body) -> str:
        return f"<think>{KEY}</think>{habit(request)} {KEY}"

    server = Loopback(respond, model=f"m {KEY}", fault=fault)
    return server


NO_HOSTS = ("", "[bad", "h:99999", "h:port", "a b")
NO_ADDRESSES = (
    *(f"http://user:{KEY}@localhost/v1", f"http://localhost/v1?key={KEY}", f"http://h/#{KEY}"),
    *(f"http://{host}/v1" for host in NO_HOSTS),
    *(f"http://user:{KEY}@{host}/v1" for host in NO_HOSTS),
)


@pytest.mark.parametrize(
    ("address", "key", "message"),
    [
        *((address, "", "put the key into an environment variable") for address in NO_ADDRESSES),
        ("http://localhost/v1", f"{KEY}\n{KEY}", "CDTA_API_KEY contains characters"),
        ("http://localhost/v1", f"{KEY}\u20ac", "CDTA_API_KEY contains characters"),
    ],
)
def test_an_unusable_address_or_key_is_refused_and_not_printed(
    address: str, key: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDTA_API_KEY", key)
    with pytest.raises(InvalidInput, match=message) as error:
        parse_name("m", address).load()
    assert not any(piece in str(error.value) for piece in PIECES)


ODD_KEY = 'sk-pl"a&n<t>ed/3fa8+5f64=5717\\4562'
"""A key that every encoding changes."""


def test_a_key_is_hidden_literally_quoted_and_in_base64_and_nothing_else_is() -> None:
    redact = Redactor(f"Bearer {ODD_KEY}", "EMPTY", "long-name-7b", shown="long-name-7b")
    for encoded in (ODD_KEY, quote(ODD_KEY, safe=""), b64encode(ODD_KEY.encode()).decode()):
        assert redact(f"e2e4 {encoded}.").replace("=", "") == "e2e4 ***."
    for text in ("e2e4", "a key is no habit", "sk-pl", "The board is EMPTY", "long-name-7b"):
        assert redact(text) == text


@pytest.mark.usefixtures("no_retry_delay", "no_plots")
@pytest.mark.parametrize(
    ("command", "variable", "status"),
    [
        ("run", "CDTA_API_KEY", 200),
        ("experiment", "CDTA_API_KEY", 401),
        ("run", "OPENAI_API_KEY", 500),
    ],
)
def test_planted_secrets_appear_nowhere(
    command: str, variable: str, status: int, home: Path, tmp_path: Path
) -> None:
    headers = ("--header", "X-Gateway=env:GATEWAY_KEY", "--header", f"X-Other={SECRET}==")
    with serving(echo_server(status)) as server:
        by_url = ["--base-url", server.url, "--model", "m"]
        model = by_url if variable == "CDTA_API_KEY" else ["--model", "openai/m"]
        environment: dict[str, Any] = {variable: KEY, "OPENAI_BASE_URL": server.url}
        options = ("--dataset", positions(6), "--max-connections", 8, "--out", tmp_path / "out")
        result = cdta(command, *model, *headers, *options, GATEWAY_KEY=SECRET, **environment)
        for name, value in SENT.items():
            assert {sent[name] for sent in server.headers} == {value}
    places = {"output": result.stdout.encode(), "errors": result.stderr.encode()}
    folders = (home, tmp_path / "out")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    places |= {str(path): path.read_bytes() for path in files}
    assert any(b"***" in content for content in places.values())
    for place, content in places.items():
        for piece in (*PIECES, SECRET):
            assert piece.encode() not in content, place
