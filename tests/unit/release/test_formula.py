"""Formula cells: escaped in the CSV files of a release, whole again when a release is read or verified."""

import csv

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent
from reticent.release.folder import escape_formulas, unescape_formulas
from reticent.verify.published import read_release


@given(st.lists(st.none() | st.text(st.sampled_from("=+-@'\t\r\n15.eE,a\"")), min_size=1))
def test_every_cell_comes_back(cells):
    table = pa.table({"=note": pa.array(cells, pa.string()), "n": range(len(cells))})
    assert unescape_formulas(escape_formulas(table)).equals(table)


@given(st.text(st.sampled_from("=+-@'\t\r15.eE,a"), min_size=2))
def test_no_cell_of_text_begins_with_a_sign(cell):
    written = escape_formulas(pa.table({"note": [cell]}))["note"][0].as_py()
    if written[0] in "=@\t\r":
        pytest.fail("a spreadsheet would run it")
    if written[0] in "+-":
        float(written.replace(",", "."))


@pytest.mark.parametrize("cell", ["=1+1", '=HYPERLINK("x")', "@SUM(A1)", "+1+1", "-1+1|' /C calc'!A0", "'=1"])
def test_a_release_is_safe_to_open_and_still_verifies(tmp_path, cell):
    rows = [(str(20 + at % 2), cell if at % 2 else "flu", "asthma" if at % 3 else cell) for at in range(24)]
    table = pa.table(
        {name: list(cells) for name, cells in zip(("age", "job", "ill"), zip(*rows, strict=True), strict=True)}
    )
    policy = reticent.Policy.from_dict(
        {"version": 1, "columns": {"age": "quasi", "job": "quasi", "ill": "sensitive"}, "privacy": {"k": 2, "l": 2}}
    )
    release = reticent.anonymize(table, policy, seed=1)
    folder = release.to_dir(tmp_path / "out")
    for file in folder.glob("*.csv"):
        for row in csv.reader(file.read_text().splitlines()):
            assert not any(text[:1] in tuple("=@+-") for text in row)
    assert reticent.verify(folder, policy).holds
    from_folder, ours = read_release(folder, "out").tables, read_release(release, "out").tables
    assert from_folder.keys() == ours.keys()
    assert all(from_folder[name].equals(ours[name]) for name in ours)
    again = reticent.Release.from_dir(folder)
    for name, part in release.tables.items():
        for column in part.column_names:
            assert list(map(str, again.tables[name][column].to_pylist())) == list(map(str, part[column].to_pylist()))
