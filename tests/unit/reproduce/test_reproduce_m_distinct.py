"""The reproduction runs end to end on a small scale and shows what the paper shows."""

import json

from reticent.reproduce.m_distinct import FIGURES, PAPER, run


def test_quick_reproduction(tmp_path):
    said = []
    found = run(tmp_path, quick=True, say=said.append)
    assert set(found["figures"]) == set(FIGURES)
    assert set(found["ours"]) == set(PAPER)
    assert len(said) == len(FIGURES)
    assert all((tmp_path / f"figure-{name}.png").stat().st_size > 1000 for name in FIGURES)
    assert json.loads((tmp_path / "figures.json").read_text()).keys() == FIGURES.keys()
    figures = found["figures"]
    assert figures["3a"]["l = 2"][-1] > figures["3a"]["l = 2"][0]
    assert figures["3a"]["l = 2"][-1] > figures["3a"]["l = 4"][-1]
    assert figures["4b"]["m = 4"][0] == 0 < figures["4b"]["m = 4"][-1]
    assert figures["5b"]["m-distinct"][0] > figures["5b"]["m-distinct"][-1]
    assert max(figures["8b"]["worst release"]) < 2
