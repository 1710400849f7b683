"""Runs examples/notebook.ipynb and stores its output in it.

    pip install -e '.[test]' && python tools/rerun_notebook.py

A test also runs the notebook and compares the text output of each cell.
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
    """Run the notebook in an empty folder with an empty cache, and return it with its output."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with TemporaryDirectory() as folder, patch.dict(os.environ, CDTA_HOME=f"{folder}/home"):
        ExecutePreprocessor(timeout=300).preprocess(notebook, {"metadata": {"path": folder}})
    return notebook


if __name__ == "__main__":
    notebook = executed()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # execution times
    nbformat.write(notebook, NOTEBOOK)
