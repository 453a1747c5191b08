"""The reproduction of utility supervision in the small: it runs, says what the paper said, and its limit is right."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reticent.engine.rng import Rng
from reticent.engine.table.supervision import make_scorer
from reticent.reproduce.supervision import PAPER, SETTINGS, closeness_limit, draw_test_rows, report, run, synthetic


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETICENT_DATA", str(folder))  # without Adult, even where it is installed
        return run(folder, quick=True) | {"folder": folder}


def test_every_release_of_the_papers_tables_is_scored(found):
    figures = found["data"]["synthetic census"]
    for setting in SETTINGS:
        assert {"global", "global, supervised", "global, supervised, optimal", "local", "local, supervised"} <= set(
            figures[setting]
        )
        for scores in figures[setting].values():
            assert all(
                0 <= scores[name] <= 1
                for name in ("sensitivity", "specificity", "accuracy", "precision", "f_measure", "um", "ncp")
            )


def test_the_report_and_the_plot_are_made(found):
    assert any("gain of supervision" in line for line in report(found))
    assert (found["folder"] / "supervision-synthetic-census.png").stat().st_size > 10_000
    assert json.loads((found["folder"] / "supervision.json").read_text())["data"] == found["data"]


def test_the_papers_accuracy_is_the_mean_of_sensitivity_and_specificity_in_its_first_rows():
    """Which is why the classes are drawn to equal size; the rows of releases are off by up to 1.8 points."""
    off = {
        (name, row): abs(accuracy - (sensitivity + specificity) / 2)
        for name, figures in PAPER.items()
        for row, (sensitivity, specificity, accuracy, _, _) in figures.items()
    }
    assert max(off["adult", "original"], off["ipums", "original"]) < 0.003
    assert max(off, key=off.__getitem__) == ("adult", "t-closeness")
    assert 0.017 < off["adult", "t-closeness"] < 0.018


def test_no_record_is_both_learned_from_and_scored():
    data = synthetic(1500, 1)
    encoded = data.encode_under({"k": 4}, size=400)
    critic = make_scorer(encoded, data.table, Rng.from_seed(1))
    fresh = draw_test_rows(critic, 400, Rng.from_seed(2))
    assert len(fresh) == len(critic.rows) == 400
    assert not set(fresh.tolist()) & set(critic.rows.tolist())
    assert np.bincount(critic.target_codes[fresh]).tolist() == [200, 200]


def test_the_limit_of_t_closeness_holds_for_random_t_close_groups():
    rng = np.random.default_rng(5)
    goal = np.repeat([0, 1], [751, 249])
    limit = closeness_limit(goal, 0.2)
    p = 0.249
    for _ in range(200):
        shares = rng.uniform(p - 0.2, p + 0.2, 6)
        sizes = rng.dirichlet(np.ones(6))
        mean = float(shares @ sizes)
        shares = np.clip(shares + p - mean, p - 0.2, p + 0.2)
        if abs(float(shares @ sizes) - p) > 1e-9:
            continue
        reached = 0.5 + 0.25 * np.abs(sizes * shares / p - sizes * (1 - shares) / (1 - p)).sum()
        assert reached <= limit + 1e-9
