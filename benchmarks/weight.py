"""What an environment weighs: packages, MB, the heaviest, and which packages want each.

$ python3 -m venv new && new/bin/pip install . && new/bin/python benchmarks/weight.py
"""

import re
from collections import defaultdict
from importlib.metadata import Distribution, distributions
from pathlib import Path

HEAVIEST = 10
OF_EVERY_ENVIRONMENT = {"pip", "setuptools"}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def bytes_of(package: Distribution) -> int:
    files = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(path.stat().st_size for path in files if path.is_file())


def wanted_by(package: Distribution) -> set[str]:
    """The packages that it needs without any extra."""
    needed = (need for need in package.requires or () if "extra ==" not in need)
    return {plain(re.split(r"[^\w.-]", need)[0]) for need in needed}


def main() -> None:
    here = {plain(package.name): package for package in distributions()}
    sizes = {name: bytes_of(package) for name, package in here.items()}
    sizes = {name: size for name, size in sizes.items() if name not in OF_EVERY_ENVIRONMENT}
    wanters = defaultdict(list)
    for name, package in sorted(here.items()):
        for needed in wanted_by(package):
            wanters[needed].append(name)
    print(f"{len(sizes)} packages, {sum(sizes.values()) / 1e6:.0f} MB\n")
    print("| package | MB | wanted by |\n| --- | --- | --- |")
    for name in sorted(sizes, key=lambda name: -sizes[name])[:HEAVIEST]:
        print(f"| {name} | {sizes[name] / 1e6:.1f} | {', '.join(wanters[name])} |")


if __name__ == "__main__":
    main()
