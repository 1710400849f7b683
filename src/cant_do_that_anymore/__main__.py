"""``python -m cant_do_that_anymore`` is the command ``cdta``."""

from .interfaces.cli import main

main()
