"""The commands as they are started: ``cdta``, which is this package as a program, and ``oaieval``.

Everything is imported here, so that Ctrl-C ends even the first moments in a sentence.
"""

import gc
import sys

gc.set_threshold(50_000)  # little goes in circles: to look for it as often as usual costs a tenth


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
