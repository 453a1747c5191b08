"""Identifiers that differ only in case or leading zeros: nobody is merged, and the custodian learns how many there are, without a name."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent import EvolvingTable, Series, anonymize
from reticent.policy import Policy
from reticent.publication.identifier_variants import warn_of_variants

VALUES = [f"v{v:02d}" for v in range(20)]
N = 60


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"{value},5\n" for value in VALUES))
    columns = {"id": "identifier", "line": "plain", "ill": "sensitive"}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": 4}, "prior": {"file": "prior.csv"}}
    (tmp_path / "policy.json").write_text(json.dumps(rules | {"table": {"method": "veil"}}))
    return Policy.load(tmp_path / "policy.json")


def people(ids) -> pa.Table:
    lines = range(len(ids))
    return pa.table({"id": ids, "line": list(lines), "ill": [VALUES[i * 7 % 20] for i in lines]})


def words(caplog) -> str:
    told = " ".join(record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    caplog.clear()
    return told


PLAIN = [f"p{i}" for i in range(1, N + 1)]
ZEROS = [f"{i:05d}" for i in range(1, N + 1)]
ODD = ["P7", "p07", *PLAIN]


def test_within_a_table_an_evolving_table_and_a_series(policy, tmp_path, caplog):
    release = anonymize(people(ODD), policy, store=tmp_path / "a.db")
    assert release.tables["data"].num_rows == len(ODD), "nobody is merged"
    assert words(caplog).startswith("2 person identifiers differ from another one only in case or leading zeros")
    table = EvolvingTable(tmp_path / "b.db", policy)
    table.insert(people(PLAIN))
    table.publish()
    assert not words(caplog)
    table.insert(people(["P7"]))
    table.publish()
    assert words(caplog).startswith("1 person identifiers differ from another")
    Series(tmp_path / "c.db", policy).publish(people(ODD))
    told = words(caplog)
    assert told.startswith("2 person identifiers")
    assert not any(name in told for name in ("P7", "p07", "p7"))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (ZEROS, list(range(1, N + 1))),
        ([str(i) for i in range(1, N + 1)], ZEROS),
        (PLAIN, [name.upper() for name in PLAIN]),
        ([name.upper() for name in PLAIN], PLAIN),
        (PLAIN, [f"p{i:03d}" for i in range(1, N + 1)]),
    ],
)
def test_of_another_release_of_the_store(policy, tmp_path, caplog, first, then):
    """A file with 007 and then a spreadsheet with 7: as new persons they would be veiled a second time."""
    series = Series(tmp_path / "h.db", policy)
    series.publish(people(first))
    assert not words(caplog)
    series.publish(people(first))
    assert not words(caplog)
    series.publish(people(then))
    assert words(caplog).startswith(f"{N} of {N} new person identifiers")
    anonymize(people(first), policy, store=tmp_path / "other.db")
    assert not words(caplog)
    anonymize(people(then), policy, store=tmp_path / "other.db")
    assert words(caplog).startswith(f"{N} of {N} new person identifiers")


def test_other_identifiers_are_no_variants(policy, tmp_path, caplog):
    series = Series(tmp_path / "h.db", policy)
    series.publish(people([str(i) for i in range(1, N)]))
    series.publish(people([str(i) for i in range(1, 2 * N)]))
    assert not words(caplog)


def test_the_command_line_says_it(policy, tmp_path):
    (tmp_path / "in.csv").write_text("id,line,ill\n" + "".join(f"{n},{i},v01\n" for i, n in enumerate(ODD)))
    words = [
        tmp_path / "in.csv",
        "-p",
        policy.base / "policy.json",
        "-o",
        tmp_path / "out",
        "--store",
        tmp_path / "s.db",
    ]
    command = [sys.executable, "-m", "reticent", "anonymize", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "2 person identifiers differ from another" in done.stderr


@pytest.mark.parametrize(
    ("names", "number"),
    [
        (["a", "b", None, "A"], 1),
        (["007", "7", "07", "70", "700"], 2),
        (["0", "00", "10"], 1),
        (["x-01", "x-1"], 1),
        (["\u00c9a", "\u00e9a"], 1),
        (["100", "10", "1"], 0),
        (["p1", "p10", "p100"], 0),
        (["p01", "p02", "p1"], 1),
        (["p01", "p02", "p10"], 0),
        (["a01b1", "a1b01"], 1),
        ([None, None], 0),
        ([], 0),
    ],
)
def test_which_names_meet(names, number):
    assert (
        warn_of_variants(pa.chunked_array([pa.array(names[:2], pa.string()), pa.array(names[2:], pa.string())]))
        == number
    )


COUNTED = {
    "version": 1,
    "person": "id",
    "columns": {"id": "identifier", "line": {"role": "quasi", "hierarchy": {"intervals": [20]}}, "ill": "plain"},
    "privacy": {"k": 2, "suppression": 0.2},
    "table": {"method": "optimal"},
}
FAR = ["P7", "p07", "x-012", "x-12", *PLAIN]


def test_rows_that_duckdb_counts(tmp_path, caplog):
    from reticent.connectors.duck import anonymize as on_disk

    for names, number in ((FAR, 3), (PLAIN, 0), (list(range(N)), 0)):
        pq.write_table(people(names), tmp_path / "data.parquet")
        on_disk(
            tmp_path / "data.parquet",
            Policy.from_dict(COUNTED),
            tmp_path / f"release-{len(names)}-{number}-{type(names[0])}",
        )
        told = words(caplog)
        assert told.startswith(f"{number} person identifiers differ from another") if number else not told


def test_rows_that_spark_counts(spark, caplog):
    from reticent.connectors import spark as on_spark

    on_spark.release(spark.createDataFrame(people(FAR)), Policy.from_dict(COUNTED))
    assert words(caplog).startswith("3 person identifiers differ from another")
    on_spark.release(spark.createDataFrame(people(PLAIN)), Policy.from_dict(COUNTED))
    assert "person identifiers differ" not in words(caplog)
