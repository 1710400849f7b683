"""Prints the size of an environment: packages, MB, the largest ones and what depends on them.

$ python3 -m venv new && new/bin/pip install . && new/bin/python benchmarks/install_size.py
"""

import re
from collections import defaultdict
from importlib.metadata import Distribution, distributions
from pathlib import Path

from markdown_tables import print_heading, print_row

ROWS = 10
PREINSTALLED = {"pip", "setuptools"}


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_bytes(package: Distribution) -> int:
    files = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(path.stat().st_size for path in files if path.is_file())


def dependencies(package: Distribution) -> set[str]:
    """Return the packages that it needs without any extra."""
    required = (line for line in package.requires or () if "extra ==" not in line)
    return {normalize(re.split(r"[^\w.-]", line)[0]) for line in required}


def main() -> None:
    installed = {normalize(package.name): package for package in distributions()}
    sizes = {
        name: installed_bytes(package)
        for name, package in installed.items()
        if name not in PREINSTALLED
    }
    dependents = defaultdict(list)
    for name, package in sorted(installed.items()):
        for dependency in dependencies(package):
            dependents[dependency].append(name)
    print(f"{len(sizes)} packages, {sum(sizes.values()) / 1e6:.0f} MB\n")
    print_heading("package", "MB", "required by")
    for name in sorted(sizes, key=lambda name: -sizes[name])[:ROWS]:
        print_row(name, f"{sizes[name] / 1e6:.1f}", ", ".join(dependents[name]))


if __name__ == "__main__":
    main()
