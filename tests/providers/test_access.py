"""How requests get through: headers, proxies, ``.env``, Azure; and what an error says if not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from cant_do_that_anymore.client.session import create_model, model_info
from cant_do_that_anymore.errors import InvalidInput, UserError
from cant_do_that_anymore.providers.base import Answer
from cant_do_that_anymore.providers.catalog import info_by_name, model_named
from cant_do_that_anymore.providers.openai_api import proxy_for
from faults import error
from testing import (
    POOL,
    Body,
    Loopback,
    Serve,
    Spec,
    ask,
    cdta,
    error_when,
    habit,
    moves_in,
    openai_server,
    positions,
    results_in,
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


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (SECRET, "a header must be NAME=VALUE or NAME=env:VARIABLE; one has no ="),
        (f"a b={SECRET}", "'a b' is not a valid header name"),
        (f"X={SECRET}\n", "the header X contains characters"),
        ("X=env:NOT_THERE", "the header X needs NOT_THERE, which is not set"),
    ],
)
def test_the_error_for_a_bad_header_hides_its_value(header: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        create_model(Spec(model="m", base_url="http://localhost/v1", header=(header,)))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(("status", "is_relative"), [(301, True), (308, False)])
def test_redirects_are_not_followed(server: Loopback, status: int, is_relative: bool) -> None:
    async def redirect(request: Body, number: int) -> web.Response:
        url = f"{server.url}/chat/completions?a={SECRET}"
        return web.Response(status=status, headers={"Location": "/v2/?a" if is_relative else url})

    options = {"model": "m", "header": (f"X-Gateway={SECRET}",)}
    with (
        serving(Loopback(lambda _: "e7e5", fault=redirect)) as origin,
        pytest.raises(UserError) as error,
    ):
        answer(base_url=origin.url, **options)
    elsewhere = f"{server.url}/chat/completions"
    target = origin.url.replace("/v1", "/v2/") if is_relative else elsewhere
    assert str(error.value) == (
        f"{origin.url} redirects to {target}; no request was sent there. If you trust it, use it "
        "as --base-url"
    )
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
        answer(model="m", base_url=server.url)
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


class Azure(Loopback):
    """Answers at every address and records the path and query of the last request."""

    path_and_query: str = ""

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/{anything:.*}", self.record_and_answer)

    async def record_and_answer(self, http: web.Request) -> web.StreamResponse:
        self.path_and_query = http.path_qs
        return await self.answer(http)


def test_the_azure_api_version_is_in_requests_and_identity() -> None:
    with serving(Azure(lambda _: "e7e5")) as azure:
        root = azure.url.removesuffix("/v1")
        address = f"{root}/openai/deployments/d/?api-version=2024-10-21"
        answer(model="d", base_url=address, header=(f"api-key={SECRET}",))
    assert azure.path_and_query == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert azure.headers[0]["api-key"] == SECRET
    assert info_by_name("d", address).endpoint == address.replace("d/?", "d?")


def test_some_models_are_reached_through_inspect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("openai/azure/my-deployment", "openai/bedrock/m", "inspect/openai/o1-pro"):
        info = model_info(Spec(model=name, tag="t"))
        assert info.identity["api"] == "inspect"
        assert info.identity["name"] == info.name == name.removeprefix("inspect/")
    with serving(Azure(lambda _: "e7e5")) as azure:
        monkeypatch.setenv("AZUREAI_OPENAI_BASE_URL", azure.url)
        monkeypatch.setenv("AZUREAI_OPENAI_API_KEY", "k")
        result = answer(model="openai/azure/my-deployment", header=(f"X-Gateway={SECRET}",))
    assert result.text == "e7e5"
    assert "my-deployment/chat/completions?api-version=" in azure.path_and_query
    headers = {name.lower(): value for name, value in azure.headers[0].items()}
    assert headers["x-gateway"] == SECRET


def test_the_error_for_an_unknown_model_names_only_a_few_of_many() -> None:
    names = (*(f"vendor-{number}/model-{number}" for number in range(400)), "qwen/qwen3-8b")
    with serving(habit, listed=names, fault=error_when(lambda *_: True, "no", 404)) as server:
        with pytest.raises(UserError, match=r"\(HTTP 404: no\); did you mean 'qwen/qwen3-8b'\?$"):
            answer(model="qwen3-8b", base_url=server.url)
        with pytest.raises(
            InvalidInput, match=r"vendor-11/model-11, \.\.\.; name one with --model$"
        ):
            model_named(None, server.url)


@pytest.mark.usefixtures("no_plots")
def test_an_experiment_gets_header_values_from_variables_only(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    with serving(Loopback(habit)) as server:
        config = f'model = "m@{server.url}"\npool = "common"\nn = 3\nout = "{tmp_path}/out"\n'
        file.write_text(f'{config}header = ["X-Hidden={SECRET}"]\n')
        assert SECRET not in cdta("experiment", file, "--quiet", code=2).stderr
        assert server.requests == []
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


@pytest.mark.parametrize("path", ["/chat/completions", "/completions/", "/responses"])
def test_the_url_of_an_api_call_stands_for_its_server(path: str) -> None:
    server = "http://localhost:8000/v1?api-version=2024-10-21"
    assert info_by_name("m", server.replace("?", f"{path}?")).endpoint == server


@dataclass
class Locked(Loopback):
    """A server that requires a key for every request, like vLLM with ``--api-key``."""

    def add_routes(self, app: web.Application) -> None:
        @web.middleware
        async def check_key(request: web.Request, handler: Handler) -> web.StreamResponse:
            is_valid = request.headers.get("Authorization") == f"Bearer {KEY}"
            return await handler(request) if is_valid else error(401, "Unauthorized")

        app.middlewares.append(check_key)
        super().add_routes(app)


@pytest.mark.parametrize("model", [(), ("--model", "m")])
def test_errors_for_missing_and_wrong_keys_differ(model: tuple[str, ...], serve: Serve) -> None:
    server = serve(Locked(habit))
    command = ("--base-url", server.url, *model)
    assert error_of(*command) == (
        f"{server.url} needs a key (HTTP 401: Unauthorized); set CDTA_API_KEY"
    )
    assert error_of(*command, key="wrong") == (
        f"{server.url} refuses the key (HTTP 401: Unauthorized); set CDTA_API_KEY"
    )
    cdta("run", *command, *DATASET, code=0, CDTA_API_KEY=KEY)


HINT = "name one with --model, or set CDTA_API_KEY if the server needs a key"


def fail_without_key(http: web.Request) -> web.Response | None:
    """Without a key, respond with a server error to the request for models, like LiteLLM."""
    return None if "Authorization" in http.headers else error(500, "Internal Error")


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (Loopback(habit, listed=()), "{url} lists no model"),  # transformers serve
        (
            Loopback(habit, listed=(), model_list=fail_without_key),
            "the server at {url} does not list its models (HTTP 500)",
        ),
    ],
)
def test_an_empty_model_list_gives_a_hint_to_set_key_or_model(
    server: Loopback, reason: str, serve: Serve
) -> None:
    url = serve(server).url
    assert error_of("--base-url", url) == f"{reason.format(url=url)}; {HINT}"
    assert error_of("--base-url", url, key=KEY) == f"{url} lists no model; {HINT}"


@pytest.mark.parametrize(
    ("listed", "is_accepted"),
    [
        (("m:latest",), True),  # Ollama
        (("vendor/*", "*"), True),  # LiteLLM
        ((), True),
        (("mm", "vendor/*"), False),
    ],
)
def test_an_unlisted_model_is_noted_before_the_first_request(
    listed: tuple[str, ...], is_accepted: bool, serve: Serve, tmp_path: Path
) -> None:
    requests_before_list: list[int] = []
    listing: Loopback = serve(
        habit,
        listed=listed,
        model_list=lambda _: requests_before_list.append(len(listing.requests)),
    )
    command = ("--base-url", listing.url, "--model", "m", "--out", tmp_path / "run")
    done = cdta("run", *command, *DATASET, code=0)
    note = (
        f"{listing.url} does not list 'm', so another model may answer in its name; it lists "
        f"{', '.join(listed)}"
    )
    assert requests_before_list[0] == 0
    assert (note in done.stderr) == (note in results_in(tmp_path / "run")["notes"]) != is_accepted
