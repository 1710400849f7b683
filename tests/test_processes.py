"""A command in the test process behaves as in its own process."""

import pytest

from processes import cdta, start_cdta


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["rules", "e2e4"],
        ["run", "--model", "cdta/rnadom"],
    ],
    ids=" ".join,
)
def test_output_and_exit_code_are_the_same(arguments: list[str]) -> None:
    process = start_cdta(*arguments, COLUMNS="80")
    stdout, stderr = process.communicate(timeout=60)
    result = cdta(*arguments)
    assert (result.stdout, result.stderr, result.returncode) == (stdout, stderr, process.returncode)
