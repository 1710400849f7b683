"""``.env``: keys and addresses beside one's work, read as Inspect AI reads them."""

from pathlib import Path

from ..errors import InvalidInput, error_reason


def read_env_file() -> None:
    """Set what the nearest ``.env`` of this folder and those above says, and nobody else does.

    Raises:
        InvalidInput: if it cannot be read.
    """
    here = Path.cwd()
    files = (folder / ".env" for folder in (here, *here.parents))
    if found := next(filter(Path.is_file, files), None):
        from dotenv import load_dotenv  # few have such a file

        try:
            load_dotenv(found)
        except (OSError, ValueError) as problem:
            raise InvalidInput(f"cannot read {str(found)!r} ({error_reason(problem)})") from None
