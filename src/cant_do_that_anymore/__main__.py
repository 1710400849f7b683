"""Entry points of the commands ``cdta`` (also ``python -m``) and ``oaieval``.

They import inside ``try``, so that Ctrl-C during the imports ends in one sentence as well.
"""

import gc
import sys

gc.set_threshold(
    50_000
)  # few reference cycles: collecting them at the default rate takes 10% of the time


def main() -> None:
    """Run ``cdta``."""
    try:
        from .cli.main import main as cdta

        cdta()
    except KeyboardInterrupt:
        sys.exit("cdta: stopped")


def oaieval() -> None:
    """Run ``oaieval``."""
    try:
        from .oaieval.command import main

        main()
    except KeyboardInterrupt:
        sys.exit("oaieval: stopped")


if __name__ == "__main__":
    main()
