"""How requests get through: headers, proxies, ``.env``, Azure; and what an error says if not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cant_do_that_anymore.client.session import create_model, model_info
from cant_do_that_anymore.errors import InvalidInput
from cant_do_that_anymore.providers.base import Answer, RequestRejected
from cant_do_that_anymore.providers.catalog import parse_name
from cant_do_that_anymore.providers.openai_api import proxy_for
from faults import error, error_when
from testing import (
    POOL,
    Body,
    Loopback,
    Serve,
    Spec,
    ask,
    cdta,
    habit,
    measure,
    moves_in,
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


def test_headers_stay_secret(server: Loopback, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse_one(request: Body, _: int) -> web.Response | None:
        message = f"I heard {server.headers[0]['X-Gateway']}"
        is_refused = moves_in(request) == POOL[3].moves
        return web.json_response({"error": message}, status=400) if is_refused else None

    monkeypatch.setenv("GATEWAY_KEY", SECRET)
    server.respond, server.fault = habit, refuse_one
    done = cdta(
        *("run", "--base-url", server.url, "--model", "m", "--dataset", positions(24)),
        *("--header", "X-Gateway=env:GATEWAY_KEY", "--header", f"X-Other={SECRET}=="),
        *("--max-connections", 1),
        code=0,
    )
    for headers in server.headers:
        assert (headers["X-Gateway"], headers["X-Other"]) == (SECRET, f"{SECRET}==")
    contents = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert any(b"I heard ***" in content for content in contents)
    for content in (done.stdout.encode(), done.stderr.encode(), *contents):
        assert SECRET.encode() not in content
    assert SECRET not in repr(Spec(header=(f"X={SECRET}",)))


@pytest.mark.parametrize("header", [SECRET, f"a b={SECRET}", f"X={SECRET}\n", "X=env:NOT_THERE"])
def test_the_error_for_a_bad_header_hides_its_value(header: str) -> None:
    with pytest.raises(InvalidInput, match=r"a header (must be NAME=|needs NOT_THERE)") as error:
        create_model(Spec(model="m", base_url="http://localhost/v1", header=(header,)))
    assert SECRET not in str(error.value)


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


def test_some_models_are_reached_through_inspect() -> None:
    for name in ("openai/azure/my-deployment", "openai/bedrock/m", "inspect/openai/o1-pro"):
        info = model_info(Spec(model=name, tag="t"))
        assert info.identity["api"] == "inspect"
        assert info.identity["name"] == info.name == name.removeprefix("inspect/")


def test_the_error_for_an_unnamed_model_names_only_a_few_of_many() -> None:
    names = tuple(f"vendor-{number}/model-{number}" for number in range(400))
    sentence = r"vendor-11/model-11, \.\.\.; name one with --model$"
    with serving(habit, listed=names) as server, pytest.raises(InvalidInput, match=sentence):
        parse_name(None, server.url).load()


@pytest.mark.usefixtures("no_plots")
def test_an_experiment_saves_no_header(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    with serving(Loopback(habit)) as server:
        config = f'model = "m@{server.url}"\npool = "common"\nn = 3\nout = "{tmp_path}/out"\n'
        file.write_text(f'{config}header = ["X-Hidden=env:HIDDEN"]\n')
        cdta("experiment", file, "--quiet", code=0, HIDDEN=SECRET)
        assert {headers.get("X-Hidden") for headers in server.headers} == {SECRET}
    contents = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert contents and not any(SECRET.encode() in content for content in contents)


DATASET = ("--dataset", positions(4), "--quiet")
KEY = "sk-0123456789abcdef"


def error_of(*command: object, key: str = "") -> str:
    """Return the one-sentence error that ends the run."""
    done = cdta("run", *command, *DATASET, CDTA_API_KEY=key)
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("cdta: ").strip()


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
        assert error_of(*command, key=key) == (
            f"{locked.url} {problem} (HTTP 401: Unauthorized); set CDTA_API_KEY"
        )
    cdta("run", "--base-url", locked.url, *DATASET, code=0, CDTA_API_KEY=KEY)


def fail_without_key(http: web.Request) -> web.Response | None:
    """Without a key, respond with a server error to the request for models, like LiteLLM."""
    return None if "Authorization" in http.headers else error(500, "Internal Error")


def test_an_empty_model_list_gives_a_hint_to_set_key_or_model(serve: Serve) -> None:
    hint = "name one with --model, or set CDTA_API_KEY if the server needs a key"
    url = serve(habit, listed=(), model_list=fail_without_key).url
    unlisted = f"the server at {url} does not list its models (HTTP 500); {hint}"
    assert error_of("--base-url", url) == unlisted
    assert error_of("--base-url", url, key=KEY) == f"{url} lists no model; {hint}"


@pytest.mark.parametrize(
    ("listed", "is_accepted"),
    [
        (("m:latest", "vendor/*"), True),  # Ollama
        (("vendor/*", "*"), True),  # LiteLLM
        (("mm", "vendor/*"), False),
    ],
)
def test_an_unlisted_model_is_noted_before_the_first_request(
    listed: tuple[str, ...], is_accepted: bool, serve: Serve
) -> None:
    requests_before_list: list[int] = []
    listing: Loopback = serve(
        habit,
        listed=listed,
        model_list=lambda _: requests_before_list.append(len(listing.requests)),
    )
    note = (
        f"{listing.url} does not list 'm', so another model may answer in its name; did you mean "
        "'mm'?"
    )
    assert (note in measure(listing, dataset=positions(4)).notes) != is_accepted
    assert requests_before_list[0] == 0
