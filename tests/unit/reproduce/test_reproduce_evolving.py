"""The reproduction of the evolving paper runs and writes what it says."""

import json

import numpy as np

from reticent.reproduce.evolving import FIGURES, Census, run


def test_a_quick_run_writes_figures_and_plots(tmp_path):
    found = run(tmp_path, quick=True)
    assert json.loads((tmp_path / "figures.json").read_text())["ours"] == found["ours"]
    assert set(found["figures"]) == set(FIGURES)
    assert len(list(tmp_path.glob("*.png"))) == len(FIGURES)
    assert all(curve for curves in found["figures"].values() for curve in curves.values())


def test_no_two_tuples_of_the_census_have_the_same_quasi_identifiers():
    data = Census(20_000, 1)
    assert data.table.num_rows == len(data.values) == 20_000
    assert len(np.unique(data.quasi, axis=0)) == 20_000
