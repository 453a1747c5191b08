"""The same table as pandas, polars, DuckDB, Arrow or a path gives the same release."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import reticent
from reticent.connectors.frames import table_of

POLICY = {
    "version": 1,
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "sex": "quasi", "ill": "sensitive"},
    "privacy": {"k": 3, "l": 2, "suppression": 0.2},
}
TABLE = pa.table(
    {"age": [20 + n % 17 for n in range(60)], "sex": ["f", "m"] * 30, "ill": [f"ill {n % 5}" for n in range(60)]}
)


def as_path(folder):
    pc.write_csv(TABLE, folder / "t.csv")
    return folder / "t.csv"


FORMS = {
    "arrow": lambda _: TABLE,
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "path": as_path,
    "batch": lambda _: TABLE.combine_chunks().to_batches()[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_release(tmp_path, form):
    policy = reticent.Policy.from_dict(POLICY)
    wanted = reticent.anonymize(TABLE, policy, seed=1)
    release = reticent.anonymize(FORMS[form](tmp_path), policy, seed=1)
    assert release.to_arrow().equals(wanted.to_arrow())
    assert reticent.verify(release.to_pandas(), policy).holds
    assert release.to_polars().height == wanted.to_arrow().num_rows
    assert reticent.risk(FORMS[form](tmp_path), quasi=["age"], sensitive=["ill"]).records == 60


def test_categories_and_views_become_text():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None])})
    assert table_of(frame).to_pydict() == {"a": ["x", "y", None]}
    assert table_of(pl.DataFrame({"a": ["x"]})).schema.field("a").type == pa.string()


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": [1]}, index=["Secret"]), "index"),
        (pd.DataFrame({"a": ["Secret", 1]}), "cannot be read"),
        (pl.DataFrame({"a": [["Secret"]]}), "'a' holds cells"),
    ],
)
def test_what_a_table_cannot_say_is_refused_without_a_cell(frame, words):
    with pytest.raises(reticent.DataError, match=words) as refusal:
        table_of(frame)
    assert "Secret" not in f"{refusal.value}"
