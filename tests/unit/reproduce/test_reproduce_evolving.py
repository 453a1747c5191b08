"""The reproduction of the evolving paper runs and writes what it says."""

import json

from reticent.reproduce.evolving import FIGURES, run


def test_a_quick_run_writes_figures_and_plots(tmp_path):
    found = run(tmp_path, quick=True)
    assert json.loads((tmp_path / "figures.json").read_text())["ours"] == found["ours"]
    assert set(found["figures"]) == set(FIGURES)
    assert len(list(tmp_path.glob("*.png"))) == len(FIGURES)
    assert all(curve for curves in found["figures"].values() for curve in curves.values())
