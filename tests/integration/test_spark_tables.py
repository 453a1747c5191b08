"""The release of Spark equals the release of one machine, row for row."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counted_cases import COLUMNS, REQUIREMENTS, as_sorted, in_their_place, noted, policy, rows, written_in_two_ways

from reticent import Policy, anonymize
from reticent.datasets import adult
from reticent.errors import DataError, GuaranteeError, PolicyError, StateError

CASES = [("optimal", privacy) for privacy in REQUIREMENTS]
CASES += [(method, REQUIREMENTS[at]) for method in ("mondrian", "local") for at in (1, 3, 6)]


@pytest.mark.parametrize(("method", "privacy"), CASES, ids=str)
def test_spark_equals_one_machine(spark, method, privacy):
    from reticent.connectors import spark as on_spark

    table, wanted = rows(), policy(privacy, method=method)
    local = anonymize(table, wanted, seed=1)
    made = on_spark.release(spark.createDataFrame(table).repartition(3), wanted)
    released = made.frame.toArrow()
    assert as_sorted(released) == as_sorted(local.tables["data"])
    assert made.records == local.records
    assert made.guarantee == local.guarantee
    assert made.metrics == pytest.approx(dict(local.metrics))
    told = {name: {k: v for k, v in each.items() if k != "loss"} for name, each in local.explain["attributes"].items()}
    assert made.explain["attributes"] == told
    assert made.method == method
    assert "reference" not in made.explain
    assert on_spark.verify(made, wanted).holds


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        ("optimal", {"k": 5, "l": 3, "suppression": 0.1}),
        ("optimal", {"k": 3, "l": {"frequency": 3}, "suppression": 0.2}),
        ("mondrian", {"k": 5, "l": 3, "suppression": 0.1}),
        ("local", {"k": 5, "l": 3, "suppression": 0.1}),
    ],
)
def test_spark_counts_persons_as_one_machine_does(spark, method, privacy):
    from reticent.connectors.spark import tables

    table = rows(3000)
    people = pa.array([f"p{i // 2}" for i in range(table.num_rows)])
    table = table.set_column(table.column_names.index("person_id"), "person_id", people)
    rules = policy(privacy, method=method)
    local = anonymize(table, rules, seed=1)
    made = tables.release(spark.createDataFrame(table), rules)
    assert as_sorted(made.frame.toArrow()) == as_sorted(local.tables["data"])
    assert made.guarantee == local.guarantee
    assert made.records == local.records
    assert made.records.suppressed
    assert "persons" in made.guarantee.claims["l"]


@pytest.mark.parametrize("method", ["optimal", "local"])
def test_somebody_who_is_written_in_two_ways_is_counted_once(spark, method):
    from reticent.connectors import spark as on_spark

    whole, parted = written_in_two_ways()
    wanted = policy({"k": 5, "l": 3, "suppression": 0.1}, method=method)
    local = anonymize(whole, wanted, seed=1)
    made = on_spark.release(spark.createDataFrame(parted).repartition(3), wanted)
    assert as_sorted(made.frame.toArrow()) == as_sorted(local.tables["data"])
    assert made.guarantee == local.guarantee
    assert made.records == local.records


def test_equal_rows_that_are_parted_keep_their_plain_cells_in_an_order_that_nobody_knows(spark):
    from reticent.connectors import spark as on_spark

    table, wanted = noted()
    local, frame = anonymize(table, wanted, seed=1).tables["data"], spark.createDataFrame(table).repartition(3)
    made = on_spark.release(frame, wanted).frame
    released, again, other = made.toArrow(), made.toArrow(), on_spark.anonymize(frame, wanted).toArrow()
    assert as_sorted(released.drop_columns(["note"])) == as_sorted(local.drop_columns(["note"]))
    assert sorted(released.column("note").to_pylist()) == sorted(table.column("note").to_pylist())
    assert in_their_place(released)
    assert as_sorted(released) == as_sorted(again)
    assert as_sorted(released) != as_sorted(other)


@pytest.mark.parametrize("method", ["optimal", "mondrian"])
def test_persons_that_the_policy_does_not_name_are_told_of_as_on_one_machine(spark, method):
    from reticent.connectors import spark as on_spark

    table = rows(600)
    people = pa.array([None if i % 50 == 0 else f"p{i // 2}" for i in range(table.num_rows)])
    table = table.set_column(table.column_names.index("person_id"), "person_id", people)
    rules = {"version": 1, "columns": COLUMNS, "privacy": {"k": 5, "suppression": 0.1}, "table": {"method": method}}
    local = anonymize(table, Policy.from_dict(rules), seed=1)
    made = on_spark.release(spark.createDataFrame(table), Policy.from_dict(rules))
    assert made.guarantee.not_covered[0].startswith("PERSONS WITH SEVERAL RECORDS")
    assert made.guarantee == local.guarantee


def test_a_frame_that_is_kept_in_memory_stays_there_and_no_name_is_left_in_the_session(spark):
    from reticent.connectors import spark as on_spark

    frame = spark.createDataFrame(rows(500)).cache()
    on_spark.anonymize(frame, policy({"k": 5, "suppression": 0.1})).toArrow()
    assert frame.storageLevel.useMemory
    assert not [table for table in spark.catalog.listTables() if table.isTemporary]
    frame.unpersist()


def test_markers_and_labels_are_texts_whatever_signs_they_have(spark):
    from reticent.connectors import spark as on_spark

    table, markers = rows(600), ["it's", "a\\b", "`", '"']
    cells = [markers[i // 40 % 4] if i % 40 == 0 else v for i, v in enumerate(table.column("gender").to_pylist())]
    table = table.set_column(table.column_names.index("gender"), "gender", pa.array(cells))
    words = sorted({v for v in cells if v not in markers})
    columns = COLUMNS | {"gender": {"role": "quasi", "hierarchy": {"tree": {"it's a \\ `sex`": words}}}}
    rules = Policy.from_dict(
        {
            "version": 1,
            "person": "person_id",
            "missing": markers,
            "columns": columns,
            "privacy": {"k": 40, "suppression": 0.1},
            "table": {"method": "optimal"},
        }
    )
    local = anonymize(table, rules, seed=1)
    released = on_spark.anonymize(spark.createDataFrame(table), rules).toArrow()
    assert as_sorted(released) == as_sorted(local.tables["data"])


def test_rows_come_sorted_by_what_is_published(spark):
    from reticent.connectors import spark as on_spark

    shown = on_spark.anonymize(spark.createDataFrame(rows(500)), policy({"k": 5, "suppression": 0.1})).toArrow()
    assert "person_id" not in shown.column_names
    order = [tuple((value is not None, value) for value in row.values()) for row in shown.to_pylist()]
    assert order == sorted(order)


def test_a_release_is_written_once_and_says_that_it_is_whole(spark, tmp_path):
    from reticent.connectors import spark as on_spark

    made, folder = (
        on_spark.release(spark.createDataFrame(rows(500)), policy({"k": 5, "suppression": 0.1})),
        tmp_path / "o",
    )
    settings, marks = spark._jsc.hadoopConfiguration(), "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    settings.set(marks, "false")  # as a cluster may have it
    try:
        made.to_parquet(str(folder))
    finally:
        settings.unset(marks)
    assert (folder / "_SUCCESS").exists()
    assert as_sorted(pq.read_table(folder)) == as_sorted(made.frame.toArrow())
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(StateError, match="already contains a release"):
        made.to_parquet(folder.as_uri())
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_verifier_on_spark_refutes_a_release_with_a_small_class(spark):
    from reticent.connectors import spark as on_spark

    wanted = policy({"k": 5, "l": 3, "suppression": 0.1})
    made = on_spark.release(spark.createDataFrame(rows(1000)), wanted)
    first = made.frame.limit(1)
    odd = first.withColumn("marital_status", first["marital_status"].substr(1, 0))
    result = on_spark.verify(replace(made, frame=made.frame.unionByName(odd)), wanted)
    assert {finding.claim for finding in result.refuted} >= {"k = 5", "l = 3 (distinct)"}
    told = on_spark.verify(replace(made, frame=made.frame.withColumn("person_id", made.frame["age"])), wanted)
    assert {finding.claim for finding in told.refuted} == {"only columns that the policy releases are published"}
    short = on_spark.verify(replace(made, frame=made.frame.limit(made.records.published - 1)), wanted)
    assert not short.holds


def test_what_cannot_be_met_is_refused(spark):
    from reticent.connectors import spark as on_spark

    frame = spark.createDataFrame(rows(200))
    with pytest.raises(GuaranteeError):
        on_spark.anonymize(frame, policy({"k": 201}))
    with pytest.raises(PolicyError):
        on_spark.anonymize(frame, policy({"k": 5}, method="supervised"))
    with pytest.raises(PolicyError, match="veil does not run on Spark") as refused:
        on_spark.anonymize(frame, policy({"l": 3}, method="veil"))
    assert "--store" in refused.value.hint
    with pytest.raises(PolicyError, match="strict"):
        on_spark.anonymize(frame, policy({"k": 5}, method="mondrian", cuts="relaxed"))
    with pytest.raises(PolicyError):
        on_spark.anonymize(frame.withColumnRenamed("gender", "sex"), policy({"k": 5}))
    columns = COLUMNS | {"person_id": {"role": "plain", "transform": {"pseudonym": "study.key"}}}
    with pytest.raises(PolicyError, match="cannot pseudonymize"):  # they would be published as they are
        on_spark.anonymize(frame, Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 5}}))
    with pytest.raises(DataError):
        on_spark.anonymize(frame.limit(0), policy({"k": 5}))


def test_adult(spark):
    """The public Adult set, where the user has it."""
    from reticent.connectors import spark as on_spark

    shared = Path(__file__).parents[3] / "shared" / "data" / "adult"
    folder = Path(os.environ.get("RETICENT_ADULT", shared))
    if not (folder / "adult_30162.csv").is_file():
        pytest.skip("the Adult set cannot be shipped; set RETICENT_ADULT to its folder")
    table = adult.load(folder)
    roles = dict.fromkeys(table.column_names, "quasi") | {"salary-class": "plain", "occupation": "sensitive"}
    roles["age"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
    wanted = Policy.from_dict(
        {"version": 1, "columns": roles, "privacy": {"k": 5, "l": 3, "t": 0.4, "suppression": 0.04}}
    )
    local, made = (
        anonymize(table, wanted, method="optimal", seed=1),
        on_spark.release(spark.createDataFrame(table), wanted),
    )
    assert as_sorted(made.frame.toArrow()) == as_sorted(local.tables["data"])
    assert made.metrics == pytest.approx(dict(local.metrics))
