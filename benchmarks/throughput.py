"""Measures requests per second of a run and of the original, with a server on the same machine.

    python benchmarks/throughput.py --original ENV/bin/python      (see run_original.py)

Both programs evaluate 1,000 samples of the shipped dataset of gpt-3.5-turbo-0125: 2,000 requests,
and one for the model's version. The number of connections finds itself.
"""

import argparse
import tempfile
from pathlib import Path

from instant_server import instant_server
from markdown_tables import print_heading, print_row
from resource_usage import CDTA, ResourceUsage, measure_command

LATENCY = 0.3
MODEL, VERSION = "gpt-3.5-turbo", "gpt-3.5-turbo-0125"


def measure_cdta(url: str) -> ResourceUsage:
    with tempfile.TemporaryDirectory() as home:
        command = [*CDTA, "run", "--model", f"openai/{MODEL}", "--quiet"]
        return measure_command(command, url, {"CDTA_HOME": home, **openai_environment(url)})


def openai_environment(url: str) -> dict[str, str]:
    """Return variables that redirect OpenAI's models, which the shipped dataset is for."""
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}


def measure_original(python: str, url: str) -> ResourceUsage:
    with tempfile.TemporaryDirectory() as folder:
        launcher = Path(__file__).with_name("run_original.py")
        command = [python, launcher, f"generation/direct/{MODEL}", "cant_do_that_anymore.all"]
        command += ["--record_path", f"{folder}/record.jsonl"]
        return measure_command(command, url, openai_environment(url))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--original", metavar="PYTHON", help="Python of the environment with the original"
    )
    options = parser.parse_args()
    print_heading(
        *("program", "latency", "requests/s while sending", "requests/s overall"),
        *("CPU ms per request", "peak MB", "most in flight", "first request after", "total"),
    )
    usages: dict[tuple[str, float], ResourceUsage] = {}
    for latency in (0.0, LATENCY):
        for program in ("cdta", "original") if options.original else ("cdta",):
            with instant_server(name=VERSION, delay=latency) as url:
                is_ours = program == "cdta"
                usage = measure_cdta(url) if is_ours else measure_original(options.original, url)
            usages[program, latency] = usage
            print_row(
                *(program, f"{latency * 1000:.0f} ms", f"{usage.request_rate:.0f}"),
                f"{usage.requests / usage.seconds:.0f}",
                f"{usage.cpu_ms_per_request:.2f}",
                *(f"{usage.peak_mb:.0f}", usage.max_in_flight),
                *(f"{usage.first_request_after:.1f} s", f"{usage.seconds:.1f} s"),
            )
    if options.original:
        print()
        for latency in (0.0, LATENCY):
            ours, original = usages["cdta", latency], usages["original", latency]
            print(
                f"{latency * 1000:.0f} ms latency: "
                f"{ours.request_rate / original.request_rate:.1f} times the original's requests/s, "
                f"{original.seconds / ours.seconds:.1f} times as fast in total"
            )


if __name__ == "__main__":
    main()
