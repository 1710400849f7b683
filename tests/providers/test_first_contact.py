"""Errors at the first contact with a server: one sentence says why and what would work."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from cant_do_that_anymore.providers.catalog import info_by_name
from faults import error
from testing import Loopback, Serve, cdta, habit, positions, results_in

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
    server: Loopback = serve(
        habit, listed=listed, model_list=lambda _: requests_before_list.append(len(server.requests))
    )
    command = ("--base-url", server.url, "--model", "m", "--out", tmp_path / "run")
    done = cdta("run", *command, *DATASET, code=0)
    note = (
        f"{server.url} does not list 'm', so another model may answer in its name; it lists "
        f"{', '.join(listed)}"
    )
    assert requests_before_list[0] == 0
    assert (note in done.stderr) == (note in results_in(tmp_path / "run")["notes"]) != is_accepted
