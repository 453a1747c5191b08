"""DuckDB files: rows of one SELECT, and no way out."""

import duckdb
import pytest

from reticent.connectors.inputs import read_input
from reticent.connectors.sql.url import is_sql
from reticent.errors import ConnectorError, PolicyError


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "t.db"
    with duckdb.connect(path) as link:
        link.execute("create table visits as select 31 as age, 'f' as sex union all select 40, 'm'")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return path


def test_tables_and_queries_are_read(database):
    assert is_sql(f"duckdb:///{database}")
    assert read_input(f"duckdb:///{database}?table=visits").num_rows == 2
    query = "SELECT sex FROM visits WHERE age > 35"
    assert read_input(f"duckdb:///{database}?query={query}").to_pydict() == {"sex": ["m"]}


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE more AS SELECT 1",
        "DELETE FROM visits",
        "COPY visits TO '{folder}/out.csv'",
        "SELECT * FROM '{folder}/secret.csv'",
        "SELECT * FROM read_text('{folder}/secret.csv')",
        "ATTACH '{folder}/new.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT 1; DELETE FROM visits",
        "EXPLAIN SELECT 1",
    ],
)
def test_only_a_select_of_this_database_passes(database, query):
    before = {file.name for file in database.parent.iterdir()}
    with pytest.raises((ConnectorError, PolicyError)) as caught:
        read_input(f"duckdb:///{database}?query={query.format(folder=database.parent)}")
    assert caught.value.hint
    assert {file.name for file in database.parent.iterdir()} == before


def test_a_missing_database_and_a_release_into_it_are_refused(tmp_path, database):
    with pytest.raises(ConnectorError, match="no such database"):
        read_input(f"duckdb:///{tmp_path}/none.db?table=t")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(PolicyError, match="three slashes"):
        read_input("duckdb://none.db?table=t")
