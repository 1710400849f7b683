"""How fast a run asks, beside the original, against a server on the same machine.

    python benchmarks/throughput.py --original ENV/bin/python      (see original.py)

1,000 samples of the shipped dataset of gpt-3.5-turbo-0125: 2,000 requests, and one to learn the
model's version.
"""

import argparse
import tempfile
from pathlib import Path

from instant import instant
from measuring import CDTA, Cost, measured, print_heading, print_row

CONNECTIONS = 64
SLOW = 0.3
MODEL, VERSION = "gpt-3.5-turbo", "gpt-3.5-turbo-0125"


def ours(url: str) -> Cost:
    with tempfile.TemporaryDirectory() as home:
        command = [*CDTA, "run", "--model", f"openai/{MODEL}", "--quiet"]
        limit = ["--max-connections", CONNECTIONS]
        return measured([*command, *limit], url, {"CDTA_HOME": home, **openai_at(url)})


def openai_at(url: str) -> dict[str, str]:
    """The shipped dataset is for OpenAI's models, wherever these are."""
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}


def original(python: str, url: str) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        launcher = Path(__file__).with_name("original.py")
        record = ["--record_path", f"{folder}/record.jsonl"]
        command = [python, launcher, f"generation/direct/{MODEL}", "cant_do_that_anymore.all"]
        return measured([*command, *record], url, openai_at(url))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--original", metavar="PYTHON", help="of the original's environment")
    options = parser.parse_args()
    print_heading(
        *("who", "latency", "requests/s asking", "requests/s in all", "CPU ms a request"),
        *("peak MB", "most in flight", "first request after", "in all"),
    )
    found: dict[tuple[str, float], Cost] = {}
    for delay in (0.0, SLOW):
        for who in ("cdta", "original") if options.original else ("cdta",):
            with instant(name=VERSION, delay=delay) as url:
                cost = ours(url) if who == "cdta" else original(options.original, url)
            found[who, delay] = cost
            print_row(
                *(who, f"{delay * 1000:.0f} ms", f"{cost.rate:.0f}"),
                f"{cost.requests / cost.seconds:.0f}",
                f"{cost.processor / cost.requests * 1000:.2f}",
                *(f"{cost.memory:.0f}", cost.in_flight, f"{cost.first:.1f} s"),
                f"{cost.seconds:.1f} s",
            )
    ideal = CONNECTIONS / SLOW
    print(f"\nat {SLOW * 1000:.0f} ms: {found['cdta', SLOW].rate / ideal:.0%} of {ideal:.0f}/s")
    if options.original:
        for delay in (0.0, SLOW):
            ratio = found["cdta", delay].rate / found["original", delay].rate
            saved = found["original", delay].seconds / found["cdta", delay].seconds
            print(f"at {delay * 1000:.0f} ms: {ratio:.1f} times the requests/s, {saved:.1f} in all")


if __name__ == "__main__":
    main()
