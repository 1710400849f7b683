"""Entry points of the commands ``cdta`` (also ``python -m``) and ``oaieval``.

They import inside ``try``, so that Ctrl-C during the imports ends in one sentence as well.
"""

import gc
import sys
from importlib import import_module

# There are few reference cycles: collecting them at the default rate takes 10% of the time.
gc.set_threshold(50_000)


def main() -> None:
    """Run ``cdta``."""
    _run("cdta", ".cli.main")


def oaieval() -> None:
    """Run ``oaieval``."""
    _run("oaieval", ".oaieval.command")


def _run(name: str, module: str) -> None:
    try:
        import_module(module, __package__).main()
    except KeyboardInterrupt:
        sys.exit(f"{name}: stopped")


if __name__ == "__main__":
    main()
