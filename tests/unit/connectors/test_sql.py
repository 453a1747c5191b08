"""SQLite in and out: read-only, typed by content, and quiet about cells and passwords."""

import sqlite3
from contextlib import closing

import pytest

from reticent.api import anonymize
from reticent.connectors.inputs import read_input_head
from reticent.connectors.sql.read import read_sql, read_sql_batches
from reticent.connectors.sql.url import is_sql, parse_url
from reticent.connectors.sql.write import write_release
from reticent.datasets.omop import write_omop
from reticent.errors import ConnectorError, DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.settings.inputs import SqlSettings


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "some.db"
    with sqlite3.connect(path) as link:
        link.execute("CREATE TABLE t (a INTEGER, b REAL, c TEXT)")
        link.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, 0.5, "x"), (2, None, "07"), (None, 1.5, None)])
    link.close()
    return f"sqlite:///{path}"


def test_rows_keep_their_types_and_nulls(base):
    assert read_sql(f"{base}?table=t").to_pydict() == {"a": [1, 2, None], "b": [0.5, None, 1.5], "c": ["x", "07", None]}
    assert read_sql(base, "SELECT c FROM t WHERE a = 2").to_pydict() == {"c": ["07"]}
    assert read_sql(base + "?query=SELECT a FROM t").num_rows == 3  # noqa: S608
    assert sum(batch.num_rows for batch in read_sql_batches(base, "SELECT * FROM t", batch_rows=2)) == 3


def test_reading_cannot_write(base):
    with pytest.raises(ConnectorError, match="refused"):
        read_sql(base, "DELETE FROM t RETURNING a")
    assert read_sql(f"{base}?table=t").num_rows == 3


@pytest.mark.parametrize("query", ["VACUUM INTO '{}'", "ATTACH '{}' AS other", "PRAGMA journal_mode = WAL"])
def test_only_reading_is_let_through(base, tmp_path, query):
    copy = tmp_path / "copy.db"
    with pytest.raises(ConnectorError, match="refused"):
        read_sql(base, query.format(copy))
    assert not copy.exists()


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT nothing FROM t", ConnectorError),
        ("SELECT a FROM t WHERE a > 99", DataError),
        ("SELECT x'00ff' AS b", DataError),
        ("SELECT a, a FROM t", DataError),
        (None, PolicyError),
    ],
)
def test_refusals(base, query, error):
    with pytest.raises(error):
        read_sql(base, query)


def test_urls():
    assert is_sql("postgresql://u:secret@h/db")
    assert not is_sql("patients.csv")
    source = parse_url("postgresql://u:secret@h/db?query=SELECT%201&sslmode=require")
    assert source.query == "SELECT 1"
    assert source.url == "postgresql://u:secret@h/db?sslmode=require"
    assert "secret" not in repr(source)
    for wrong in ("sqlite://file.db", "sqlite:///", "sqlite:///x.db?table=a;b", "sqlite:///x.db?table=a&query=b"):
        with pytest.raises(PolicyError):
            parse_url(wrong)


def test_a_database_that_is_not_omop_needs_a_table(base):
    with pytest.raises(ConnectorError, match=r"\?table=NAME"):
        read_input_head(base, 10)
    assert read_input_head(f"{base}?table=t", 2).num_rows == 2


def test_the_ready_query_asks_no_table_visit_by_visit(tmp_path):
    file, _ = write_omop(tmp_path / "omop.db", 100, 5)
    with closing(sqlite3.connect(file)) as link:
        for diagnoses in ("all", "first"):
            query = SqlSettings(mapping="omop", diagnoses=diagnoses).statement
            plan = [row[3] for row in link.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert plan
            assert not [step for step in plan if "CORRELATED" in step]


def test_omop_by_concept_from_a_schema_with_every_diagnosis(tmp_path):
    file, _ = write_omop(tmp_path / "omop.db", 50, 5)
    with closing(sqlite3.connect(file)) as link, link:
        link.execute("INSERT INTO condition_occurrence VALUES (999, 1, 1, 317009, '2024-01-01', 'J45')")
        link.execute("INSERT INTO condition_occurrence VALUES (998, 1, 1, 317009, '2024-01-01', 'J45')")
    url = f"sqlite:///{file}"
    rows = read_sql(url, SqlSettings(mapping="omop", codes="concept", schema="main").statement).to_pylist()
    assert [row["diagnosis"] for row in rows if row["visit_id"] == 1] == [0, 317009]
    assert {row["sex"] for row in rows} == {8507, 8532}
    assert read_sql(url, SqlSettings(mapping="omop", diagnoses="first").statement).num_rows == 50
    assert read_sql(url, SqlSettings(mapping="omop").statement).num_rows == 51
    with pytest.raises(PolicyError, match="plain name"):
        Policy.from_dict({"columns": {"a": "quasi"}, "version": 1, "sql": {"mapping": "omop", "schema": "x; DROP"}})


def test_omop_database_to_release_to_tables(tmp_path):
    file, policy_file = write_omop(tmp_path / "omop.db", 2000, 5)
    policy = Policy.load(policy_file)
    table = read_sql(f"sqlite:///{file}", policy.sql.statement)
    assert table.num_rows == 2000
    folder = tmp_path / "release"
    release = anonymize(table, policy, method="anatomy")
    release.to_dir(folder, format="parquet")
    out = f"sqlite:///{tmp_path / 'out.db'}"
    assert write_release(folder, out, name="year") == ("year_qit", "year_st", "year_manifest")
    assert read_sql(f"{out}?table=year_qit").num_rows == release.tables["qit"].num_rows
    assert read_sql(out + "?query=SELECT SUM(count) AS n FROM year_st").to_pydict() == {"n": [2000]}  # noqa: S608
    with pytest.raises(ConnectorError, match="exists"):
        write_release(folder, out, name="year")
    with pytest.raises(PolicyError):
        write_release(folder, out, name="a b")
