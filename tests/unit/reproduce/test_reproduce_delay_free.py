"""The reproduction of the delay-free paper on a small stream of 4,848 diseases."""

import pytest

from reticent.reproduce.delay_free import EDUCATION, FIGURES, GENERATIONS, Study, demographic, medical
from reticent.reproduce.delay_free_plots import draw


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    study, stream = Study(tmp_path_factory.mktemp("study"), 1, quick=True), medical(800, 1)
    return {f"{title} nps": make(study, stream) for title, make in FIGURES.items()}


def test_the_literal_generation_stands_beside_ours(figures):
    for title in ("3 and 4", "5 and 6", "7"):
        for part in ("time", "loss"):
            curves = figures[f"{title} nps"][part]
            assert set(GENERATIONS) <= set(curves)
            assert all(len(curve) == len(curves["x"]) for curve in curves.values())


def test_loss_is_that_of_the_equation(figures):
    losses = figures["3 and 4 nps"]["loss"]
    assert losses["delay-free"] == pytest.approx([0.9 / (n + 1) for n in range(1, 6)])
    assert min(losses["literal, uniform pool"]) >= min(losses["delay-free"])


def test_late_validation_lowers_the_uncertainty(figures):
    curves = figures["8 nps"]["sau"]
    for l in (5, 10):
        assert curves[f"without late validation, matched, l = {l}"][-1] == pytest.approx(1 - 1 / l)
        assert curves[f"matched, l = {l}"][-1] < 1 - 1 / l
        assert curves[f"literal, empirical pool, l = {l}"][-1] < curves[f"literal, uniform pool, l = {l}"][-1]
    assert curves["matched, l = 5"][-1] < curves["matched, l = 5"][0]


def test_a_plot_is_drawn(figures, tmp_path):
    draw({"8 nps": figures["8 nps"]}, tmp_path)
    assert (tmp_path / "figure-8-nps.png").stat().st_size > 10_000


LINE = "39, {workclass}, 77516, {education}, {number}, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba, <=50K\n"


def test_adult_is_read_as_table_1_says(tmp_path):
    """Education is continuous, by Adult's own numbers; categories have a tree where its file is there, and `?` a node of its own."""
    lines = [
        LINE.format(workclass=work, education=name, number=number)
        for number, name in enumerate(EDUCATION, 1)
        for work in ("Private", "?")
    ]
    (tmp_path / "adult.data").write_text("".join(lines))
    (tmp_path / "adult_hierarchy_workclass.csv").write_text("Private;Non-Government;*\nState-gov;Government;*\n")
    stream = demographic(tmp_path, len(lines))
    numbers = [int(line.split(", ")[4]) for line in lines]
    assert stream.table.column("education").to_pylist() == numbers
    assert set(stream.trees) == {"workclass"}
    columns = stream.policy(tmp_path, k=2, method="castle", l=2).columns
    assert columns["workclass"].hierarchy.tree == {
        "unknown": ["?"],
        "Non-Government": ["Private"],
        "Government": ["State-gov"],
    }
    assert columns["native-country"].hierarchy is None
