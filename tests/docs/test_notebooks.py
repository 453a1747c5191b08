"""The code cells of every notebook run, one after the other, in an empty folder; no outputs are kept in the files."""

import json
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent.parent / "docs" / "notebooks"


def cells(notebook):
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, cell in enumerate(cells(notebook)):
        assert not cell["outputs"], "clear the outputs before committing"
        exec(compile("".join(cell["source"]), f"{notebook.stem} cell {number}", "exec"), names)  # noqa: S102
    assert np.all(np.abs(names["pooled"].estimate - names["original"]) < 4 * names["pooled"].error)
    assert all(row["low"] <= names["true_counts"][row["sex"]] <= row["high"] for row in names["answer"].to_list())
