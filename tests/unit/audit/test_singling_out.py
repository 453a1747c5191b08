"""`reticent risk`: who could be singled out, against a count by hand."""

import itertools
import json
from collections import Counter

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import reticent
from reticent.audit.risk import singling_out as module
from reticent.cli import app

CELLS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.sampled_from("xy")), min_size=1, max_size=30)


def table_of(rows):
    names = ("who", "a", "b")
    return pa.table({name: [str(row[at]) for row in rows] for at, name in enumerate(names)})


@given(CELLS)
def test_persons_are_counted_and_not_their_records(rows):
    measured = module.singling_out(table_of(rows), ["a", "b"], person="who")
    classes = Counter((a, b) for _, a, b in set(rows))
    alone = {who for who, a, b in rows if classes[a, b] == 1}
    assert measured.persons == len({who for who, _, _ in rows})
    assert measured.unique == pytest.approx(len(alone) / measured.persons)


@given(CELLS)
def test_each_step_takes_the_most_identifying_column(rows):
    table = table_of(rows)
    first = module.singling_out(table, ["a", "b"]).steps[0]
    assert first.unique == max(module.singling_out(table, [name]).unique for name in ("a", "b"))


def test_a_value_that_a_class_shares_is_disclosed():
    table = pa.table({"age": ["1", "1", "2", "2"], "ill": ["flu", "flu", "flu", "cold"]})
    assert module.singling_out(table, ["age"], sensitive=["ill"]).disclosed == {"ill": 0.5}


def test_large_tables_are_measured_whole_though_chosen_on_a_part(monkeypatch):
    rows = list(itertools.product(range(200), "ab", "x"))
    whole = module.singling_out(table_of(rows), ["a", "b"], person="who")
    monkeypatch.setattr(module, "SAMPLE_SIZE", 50)
    assert module.singling_out(table_of(rows), ["a", "b"], person="who") == whole


def test_one_screen_one_plot_and_json(tmp_path):
    path, plot = tmp_path / "visits.csv", tmp_path / "risk.svg"
    rows = [f"P{person:07},{1930 + person},{visit % 3},ill{visit % 3}" for person in range(40) for visit in range(4)]
    path.write_text("patient_id,birth_year,unit,diagnosis\n" + "\n".join(rows) + "\n")
    outcome = CliRunner().invoke(app, ["risk", str(path), "--plot", str(plot), "--json"])
    assert outcome.exit_code == 0, outcome.stderr
    answer = json.loads(outcome.stdout.splitlines()[-1])
    assert (answer["persons"], answer["records"], answer["unique"]) == (40, 160, 1.0)
    assert answer["steps"][0]["column"] == "birth_year"
    assert len(outcome.stderr.splitlines()) <= 24
    assert "P0000001" not in outcome.stderr + plot.read_text()
    assert "birth_year" in plot.read_text()


def test_an_unknown_column_is_named_with_the_nearest():
    with pytest.raises(reticent.PolicyError, match="birth_year"):
        reticent.risk(pa.table({"birth_year": ["1"]}), quasi=["birth_yaer"])
