"""OMOP in a real PostgreSQL: read through ADBC, released, verified, written back as tables."""

import psycopg
import pytest

from reticent.api import anonymize
from reticent.connectors.inputs import read_input
from reticent.connectors.sql.read import read_sql
from reticent.connectors.sql.write import write_release
from reticent.datasets.omop import COURSES, INDEX, TABLES, rows
from reticent.datasets.policies import policy_yaml
from reticent.errors import ConnectorError
from reticent.policy import Policy
from reticent.policy.settings.inputs import SqlSettings
from reticent.release import Release
from reticent.verify import verify


@pytest.fixture
def omop(postgres_url):
    with psycopg.connect(postgres_url) as link, link.cursor() as cursor:
        for table, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE {table} ({columns})")
        for table, values in rows(5000, 2):
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
        cursor.execute(INDEX)
    return postgres_url


def test_database_to_verified_release_to_tables(omop, tmp_path):
    (tmp_path / "policy.yaml").write_text(policy_yaml("omop"))
    policy = Policy.load(tmp_path / "policy.yaml")
    table = read_input(omop, policy)
    assert table.num_rows == 5000
    release = anonymize(table, policy)
    release.to_dir(tmp_path / "release")
    assert verify([Release.from_dir(tmp_path / "release")], policy).holds
    assert write_release(tmp_path / "release", omop, name="out") == ("out_data", "out_manifest")
    assert read_sql(f"{omop}?table=out_data").num_rows == release.records.published > 4900
    with pytest.raises(ConnectorError, match="exists"):
        write_release(tmp_path / "release", omop, name="out")


def test_linked_tables_of_a_schema(postgres_url, tmp_path):
    with psycopg.connect(postgres_url) as link, link.cursor() as cursor:
        cursor.execute("CREATE SCHEMA cdm")
        for table, columns in (TABLES | COURSES).items():
            cursor.execute(f"CREATE TABLE cdm.{table} ({columns})")
        for table, values in rows(600, 2, 3, further=True):
            with cursor.copy(f"COPY cdm.{table} FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
    text = policy_yaml("omop-linked").replace("mapping: omop ", "schema: cdm\n  mapping: omop ")
    policy = Policy.from_yaml(text)
    release = anonymize(postgres_url, policy)
    assert release.tables["person"].num_rows == 200
    assert verify([release], policy).holds
    flat = read_sql(postgres_url, SqlSettings(mapping="omop", schema="cdm").statement)
    assert flat.num_rows > 600


def test_reading_is_read_only_and_errors_tell_no_cell(omop):
    with pytest.raises(ConnectorError) as error:
        read_sql(omop, "INSERT INTO concept VALUES (1, 'secret-cell') RETURNING concept_id")
    assert "secret-cell" not in str(error.value)
    with pytest.raises(ConnectorError) as error:
        read_sql(omop, "SELECT CAST('secret-cell' AS integer)")
    assert "secret-cell" not in str(error.value)
    password = omop.partition("://")[2].partition(":")[2].partition("@")[0]
    with pytest.raises(ConnectorError) as error:
        read_sql(omop.rpartition("/")[0] + "/nowhere?table=x")
    assert password not in str(error.value)


def test_types_that_only_postgresql_knows_become_text(omop):
    found = read_sql(
        omop, "SELECT 1.50::numeric AS n, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, DATE '2025-03-01' AS d"
    )
    assert found.column("n").to_pylist() == ["1.50"]
    assert str(found.column("d")[0].as_py()) == "2025-03-01"
