"""How requests get through: headers, proxies, ``.env``, Inspect; and what an error says if not."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore.client.session import create_model
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.providers.base import Answer, RequestRejected, Settings
from cant_do_that_anymore.providers.catalog import parse_name
from cant_do_that_anymore.providers.openai_api import proxy_for
from testing import (
    Body,
    Loopback,
    Serve,
    Spec,
    ask,
    cdta,
    error,
    error_when,
    habit,
    measure,
    openai_server,
    positions,
    serving,
)

SECRET = "s3cret-6f1b2c3d4e5f"


@pytest.fixture
def server(serve: Serve) -> Loopback:
    return serve(lambda _: "e7e5")


def answer(**options: Any) -> Answer:
    return ask(create_model(Spec(**options)), "e2e4")


@pytest.mark.parametrize("header", [SECRET, f"a b={SECRET}", f"X={SECRET}\n", "X=env:NOT_THERE"])
def test_the_error_for_a_bad_header_hides_its_value(header: str) -> None:
    with pytest.raises(InvalidInput, match=r"a header (must be NAME=|needs NOT_THERE)") as error:
        create_model(Spec(model="m", base_url="http://localhost/v1", header=(header,)))
    assert SECRET not in str(error.value)
    assert SECRET not in repr(Spec(header=(f"X={SECRET}",)))


def test_redirects_are_not_followed(server: Loopback) -> None:
    async def redirect(request: Body, number: int) -> web.Response:
        return web.Response(status=308, headers={"Location": f"{server.url}/chat/completions"})

    with (
        serving(Loopback(lambda _: "e7e5", fault=redirect)) as origin,
        pytest.raises(RequestRejected, match=r"refuses 'm' \(HTTP 308\)"),
    ):
        answer(base_url=origin.url, model="m", header=(f"X-Gateway={SECRET}",))
    assert server.requests == [] and len(origin.requests) == 1


def test_the_proxy_variable_is_used_and_netrc_is_not(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server acts as the proxy: it gets requests for an address elsewhere."""
    (tmp_path / "netrc").write_text(f"machine far.example login me password {SECRET}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.delenv("no_proxy", raising=False)
    assert answer(model="m", base_url="http://far.example/v1").text == "e7e5"
    assert server.headers[0]["Host"] == "far.example"
    assert not {"Authorization", "Proxy-Authorization"} & server.headers[0].keys()
    for local_url in ("http://localhost:8000/v1", "http://127.0.0.9/v1", "http://[::1]:1/v1"):
        assert proxy_for(local_url) is None
    monkeypatch.setenv("no_proxy", "far.example")
    assert proxy_for("http://far.example/v1") is None


def test_organization_and_project_go_only_to_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    with openai_server(lambda _: "e7e5") as server:
        answer(model="openai/m")
        answer(model="m", base_url=f"{server.url}/chat/completions")
    openai, other = server.headers
    assert (openai["OpenAI-Organization"], openai["OpenAI-Project"]) == ("org-1", "proj-1")
    assert not [name for name in other if name.startswith("OpenAI-")]


def test_an_env_file_here_or_above_fills_in_missing_variables(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    (tmp_path / ".env").write_text(f'OPENAI_API_KEY="{SECRET}"\nOPENAI_BASE_URL={server.url}\n')
    command = ["run", "--model", "openai/m", "--eval", "all_diagonal", "-n", "1", "--quiet"]
    assert cdta(*command).returncode == 0
    assert cdta(*command, "--seed", 1, OPENAI_API_KEY="of the shell").returncode == 0
    keys = [headers["Authorization"] for headers in server.headers]
    assert keys[0] == f"Bearer {SECRET}"
    assert keys[-1] == "Bearer of the shell"
    (tmp_path / ".env").write_bytes(b"A=\xff")
    assert cdta(*command).stderr.startswith(f"cdta: cannot read '{tmp_path}/.env' (")


KEY = "sk-0123456789abcdef"


def test_errors_for_missing_and_wrong_keys_differ(serve: Serve) -> None:
    """The server requires a key for every request, like vLLM with ``--api-key``."""

    def is_locked(headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") != f"Bearer {KEY}"

    locked: Loopback = serve(
        habit,
        model_list=lambda http: error(401, "Unauthorized") if is_locked(http.headers) else None,
        fault=error_when(lambda *_: is_locked(locked.headers[-1]), "Unauthorized", 401),
    )
    command = ("--base-url", locked.url, "--model", "m")
    problems = {"": "needs a key", "wrong": "refuses the key"}
    for key, problem in problems.items():
        sentence = f"cdta: {locked.url} {problem} (HTTP 401: Unauthorized); set CDTA_API_KEY\n"
        assert cdta("run", *command, code=1, CDTA_API_KEY=key).stderr == sentence
    cdta("run", *command[:2], "--dataset", positions(4), code=0, CDTA_API_KEY=KEY)


MANY = json.dumps({"data": [{"id": f"vendor/model-{number}"} for number in range(400)]})
HINT = "name one with --model, or set CDTA_API_KEY if the server needs a key"


@pytest.mark.parametrize(
    ("status", "listing", "sentence"),
    [
        (200, MANY, r"vendor/model-11, \.\.\.; name one with --model$"),
        (200, '{"data": []}', rf"lists no model \(HTTP 200\); {HINT}$"),
        (200, '{"data": ' + "[" * 100_000, "lists no model"),
        (500, "", rf"lists no model \(HTTP 500\); {HINT}$"),  # LiteLLM without a key
    ],
)
def test_an_unnamed_model_that_the_server_does_not_tell_is_one_sentence(
    status: int, listing: str, sentence: str, serve: Serve
) -> None:
    url = serve(habit, model_list=lambda _: web.Response(status=status, text=listing)).url
    with pytest.raises(UserError, match=sentence) as error:
        parse_name(None, url).load()
    assert url in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("listed", "is_accepted"),
    [
        (("m:latest", "vendor/*"), True),  # Ollama
        (("vendor/*", "*"), True),  # LiteLLM
        (("mm", "vendor/*"), False),
    ],
)
def test_an_unlisted_model_is_noted(
    listed: tuple[str, ...], is_accepted: bool, serve: Serve
) -> None:
    run = measure(serve(habit, listed=listed), dataset=positions(4))
    note = "does not list 'm', so another model may answer in its name; did you mean 'mm'?"
    assert any(each.endswith(note) for each in run.notes) != is_accepted


def test_requests_to_a_chat_model_and_a_base_model(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOP_API_KEY", "test")
    monkeypatch.setenv("LOOP_BASE_URL", server.url)
    monkeypatch.delenv("INSPECT_HTTP_REQUEST_TIMEOUT", raising=False)
    for name in ("openai-api/loop/m", "openai-api-completions/loop/m"):
        model: Any = parse_name(name).load()
        ask(model, "e2e4", "e7e5", settings=Settings(0.0, model.info.max_tokens))
        assert model._model.api.client.timeout.read >= 1800
    chat, base = server.requests
    roles = [message["role"] for message in chat["messages"]]
    assert roles == ["system", "user", "assistant", "user"]  # a user turn was added first
    assert base["prompt"].endswith("Assistant: e2e4\nUser: e7e5\nAssistant:")
    assert base["max_tokens"] == 4
    assert "User:" in base["stop"]


def test_an_unknown_provider_or_missing_key_gives_a_one_sentence_error() -> None:
    with pytest.raises(InvalidInput, match="cannot use 'nobody/m': Model API nobody"):
        parse_name("nobody/m").load()
    with pytest.raises(InvalidInput) as error:
        parse_name("anthropic/m").load()
    message = str(error.value)
    assert message.startswith("cannot use 'anthropic/m': ")
    assert "ANTHROPIC_API_KEY" in message or "pip install anthropic" in message
    assert all(mark not in message for mark in ("\n", "ERROR", "[bold"))


@pytest.mark.parametrize("name", ["completions/openai/azure/m", "inspect/completions/openai/m"])
def test_a_base_model_through_inspect_is_refused(name: str) -> None:
    with pytest.raises(
        InvalidInput, match="completions/ works only with openai, together and --base-url, not with"
    ):
        parse_name(name)


def test_missing_inspect_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cant_do_that_anymore.providers.inspect_api", raising=False)
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    extras = {"anthropic": "anthropic", "openai/azure": "openai", "mistral": "inspect"}
    for provider, extra in extras.items():
        with pytest.raises(InvalidInput) as error:
            parse_name(f"{provider}/m").load()
        pip = f"pip install 'cant-do-that-anymore[{extra}]'"
        assert str(error.value) == f"{provider}/m needs Inspect AI: {pip}"
