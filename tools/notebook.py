"""Run examples/notebook.ipynb and write it again with its output, for those who read it.

    pip install -e '.[test]' && python tools/notebook.py

A test runs it, too, and compares the text below each cell.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import nbconvert.preprocessors
import nbformat as untyped_nbformat

ExecutePreprocessor: Any = nbconvert.preprocessors.ExecutePreprocessor
nbformat: Any = untyped_nbformat

NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebook.ipynb"


def executed() -> Any:
    """The notebook with the output of every cell, run in an empty folder with an empty cache."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with TemporaryDirectory() as folder, patch.dict(os.environ, CDTA_HOME=f"{folder}/home"):
        ExecutePreprocessor(timeout=300).preprocess(notebook, {"metadata": {"path": folder}})
    return notebook


if __name__ == "__main__":
    notebook = executed()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each was run
    nbformat.write(notebook, NOTEBOOK)
