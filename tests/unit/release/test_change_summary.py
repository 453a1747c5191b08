"""What happened to a table, in words: they follow from the published cells, and name no value."""

import pyarrow as pa
import pytest

import reticent
from reticent.policy import Policy
from reticent.release.change_summary import column_changes, describe_changes

ROWS = 60
TABLE = pa.table(
    {
        "sex": ["F", "M"] * (ROWS // 2),
        "age": [str(20 + i % 40) for i in range(ROWS)],
        "town": [f"CANARY{i}" for i in range(ROWS)],
        "lab": ["1", "2", "3"] * (ROWS // 3),
        "ill": ["flu", "cold", "gout", "asthma"] * (ROWS // 4),
    }
)


def policy(method="local", **privacy):
    columns = {"sex": "quasi", "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}}, "town": "quasi"}
    return Policy(
        columns=columns | {"lab": "plain", "ill": "sensitive"}, privacy=privacy or {"k": 5}, table={"method": method}
    )


def summarize(method="local", table=TABLE, **privacy):
    rules = policy(method, **privacy)
    release = reticent.anonymize(table, rules, seed=1)
    columns = column_changes(release, table, rules)
    return {one.column: one for one in columns}, describe_changes(release, columns, rules)


@pytest.mark.parametrize("method", ["local", "optimal", "mondrian"])
def test_every_cell_is_exact_coarser_or_hidden(method):
    columns, words = summarize(method)
    for one in columns.values():
        assert one.exact + one.coarser + one.hidden == pytest.approx(1)
    assert "CANARY" not in " ".join(words)


def test_the_states_of_columns():
    columns, words = summarize()
    assert (columns["sex"].state, columns["age"].state, columns["town"].state) == ("kept", "coarser", "suppressed")
    text = "\n".join(words)
    assert "Suppressed in all records (*): town." in text
    assert "Unchanged: sex and 1 plain." in text
    assert "No record was suppressed." in text
    assert "'town' has the highest loss" in text
    assert "coarser" in next(line for line in words if line.strip().startswith("age"))


def test_missing_cells_are_exact_and_a_star_is_not():
    table = TABLE.set_column(1, "age", pa.array([None, "30"] * (ROWS // 2)))
    columns, _ = summarize("local", table)
    assert columns["age"].exact == 1


def test_suppressed_records_are_counted_with_the_reason():
    odd = pa.concat_tables([TABLE.slice(0, ROWS - 1), TABLE.slice(ROWS - 1).set_column(0, "sex", pa.array(["X"]))])
    rules = policy("optimal", k=5, suppression=0.05)
    release = reticent.anonymize(odd, rules, seed=1)
    words = describe_changes(release, column_changes(release, odd, rules), rules)
    assert any("1 of 60 records were suppressed (1.7%): 1 fit in no class" in line for line in words)


def test_releases_that_keep_quasi_identifiers_have_no_changes():
    assert summarize("anatomy", l=2)[0] == {}
