"""The reproduction of the delay-free paper runs and shows what the paper shows, on a small stream of 4,848 diseases."""

import json

import pytest

from reticent.reproduce.delay_free import EDUCATION, FIGURES, VARIANTS, demographic, run


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder, said = tmp_path_factory.mktemp("study"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETICENT_DATA", str(folder))  # without Adult, even where it is installed
        summary = run(folder, quick=True, progress=said.append)
    assert len(said) == len(FIGURES)
    return folder, summary


@pytest.fixture(scope="module")
def figures(found):
    return found[1]["figures"]


def test_figures_and_plots_are_written(found):
    folder, summary = found
    written = json.loads((folder / "figures.json").read_text())
    assert written["ours"] == summary["ours"]
    assert set(summary["figures"]) == {f"{title} nps" for title in FIGURES}
    plots = {path.stem for path in folder.glob("*.png") if path.stat().st_size > 10_000}
    assert {f"figure-{number}-nps" for number in ("3", "4", "5", "6", "7a", "7b", "8")} <= plots
    assert len([name for name in plots if name.startswith("figure-9-10-M")]) == 3


def test_the_figures_of_the_text_are_listed_with_those_of_the_paper(found):
    ours = found[1]["ours"]
    assert {"time per tuple, NPS, milliseconds", "SAU at the end, NPS", "correlation, NPS"} <= set(ours)
    assert all(0 <= share < 0.2 for share in ours["largest share of records that CASTLE suppressed"].values())
    windows = found[1]["figures"]["9 and 10 nps"]["M1 delay-free"]["x"]
    assert windows == list(range(100))


def test_the_literal_variant_is_plotted_with_ours(figures):
    for title in ("3 and 4", "5 and 6", "7"):
        for part in ("time", "loss"):
            curves = figures[f"{title} nps"][part]
            assert set(VARIANTS) <= set(curves)
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
