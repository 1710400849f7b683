"""Prints rows of Markdown tables."""


def print_row(*cells: object) -> None:
    """Print one row of a table."""
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def print_heading(*cells: str) -> None:
    """Print the first two rows of a table."""
    print_row(*cells)
    print_row(*["---"] * len(cells))
