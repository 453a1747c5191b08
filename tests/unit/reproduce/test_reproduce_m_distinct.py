"""The reproduction runs end to end on a small scale and shows what the paper shows."""

import json

import pytest

from reticent.cli import main
from reticent.reproduce.m_distinct import FIGURES, PAPER


def test_quick_reproduction(tmp_path, capsys):
    """By the command, which does the same for all four papers."""
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "m-distinct", "-o", str(tmp_path), "--quick", "--json"])
    assert end.value.code == 0
    out, err = capsys.readouterr()
    assert set(json.loads(out)["ours"]) == set(PAPER)
    assert len(err.splitlines()) == len(FIGURES) + 1
    assert all((tmp_path / f"figure-{name}.png").stat().st_size > 1000 for name in FIGURES)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures.keys() == FIGURES.keys()
    assert figures["3a"]["l = 2"][-1] > figures["3a"]["l = 2"][0]
    assert figures["3a"]["l = 2"][-1] > figures["3a"]["l = 4"][-1]
    assert figures["4b"]["m = 4"][0] == 0 < figures["4b"]["m = 4"][-1]
    assert figures["5b"]["m-distinct"][0] > figures["5b"]["m-distinct"][-1]
    assert max(figures["8b"]["worst release"]) < 2
