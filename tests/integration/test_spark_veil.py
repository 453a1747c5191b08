"""The veil on Spark: what one machine with the same store shows, without state; the auditor's checks run on Spark."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest
import stream_feed
from counted_cases import as_sorted

import services
from reticent import Policy, anonymize
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.store import Store

KILLS = int(os.environ.get("RETICENT_KILLS", "2"))


def table(n: int = 3000) -> pa.Table:
    records = [dict(record, person=f"q{at}") for at, record in enumerate(stream_feed.records(n))]
    records[5]["illness"] = "a value that the prior does not have"
    return pa.Table.from_pylist(records)


def policy(folder, **more) -> Policy:
    rules = stream_feed.policy(folder).to_dict()
    columns = rules["columns"] | {"age": {"role": "quasi", "level": 1, "hierarchy": {"intervals": [10, 30]}}}
    return Policy.from_dict(
        rules | {"columns": columns, "table": {"method": "veil"}, "person": "person"} | more, base=folder
    )


def text(data: pa.Table) -> pa.Table:
    return pa.table({name: data.column(name).cast(pa.string()) for name in data.column_names})


def test_spark_shows_what_one_machine_shows(spark, tmp_path):
    from reticent.connectors import spark as on_spark

    rows, wanted = table(), policy(tmp_path)
    local = anonymize(rows, wanted, store=tmp_path / "store.db")
    with Store.open(tmp_path / "store.db") as store:
        made = on_spark.release(spark.createDataFrame(rows).repartition(3), wanted, store=store)
    shown = made.frame.toArrow()
    assert as_sorted(text(shown)) == as_sorted(text(local.tables["data"]))
    assert made.records == local.records
    assert made.metadata["veil"] == local.metadata["veil"], "the noise of the omission rate, too"
    assert made.guarantee.claims == local.guarantee.claims
    assert any("ledger" in word for word in made.guarantee.not_covered)
    assert on_spark.verify(made, wanted).holds


def test_somebody_who_is_written_in_two_ways_has_two_records(spark, tmp_path):
    """Two sets over one person, each as a first event."""
    from reticent.connectors import spark as on_spark

    rows = table(40)
    names = rows.column("person").to_pylist()
    names[7] = names[3] + "\u200b "
    rows = rows.set_column(rows.column_names.index("person"), "person", pa.array(names))
    with Store.open(tmp_path / "store.db") as store, pytest.raises(DataError, match="several records"):
        on_spark.release(spark.createDataFrame(rows), policy(tmp_path), store=store)


def test_kill_python_workers_at_random_moments(spark, tmp_path):
    """What is computed again is the same: a veil has no state that a worker could take with it."""
    from reticent.connectors import spark as on_spark

    seed = int(os.environ.get("RETICENT_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice, killed, wanted, rows = random.Random(seed), 0, policy(tmp_path), table()
    shown = as_sorted(text(anonymize(rows, wanted, store=tmp_path / "store.db").tables["data"]))
    with Store.open(tmp_path / "store.db") as store, ThreadPoolExecutor(1) as pool:
        frame = spark.createDataFrame(rows).repartition(8)
        while killed < KILLS:
            made = pool.submit(lambda: on_spark.anonymize(frame, wanted, store=store).toArrow())
            strikes = 2  # a task may fail three times
            while not made.done():
                time.sleep(dice.random() / 4)
                if strikes and (workers := services.python_workers()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(dice.choice(workers), signal.SIGKILL)
                        killed, strikes = killed + 1, strikes - 1
            assert as_sorted(text(made.result())) == shown
    print(f"{killed} Python workers killed")  # noqa: T201 - for make stress


def test_the_verifier_on_spark_refutes_sets_that_no_stratum_gives_and_strange_columns(spark, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    from reticent.connectors import spark as on_spark

    wanted = policy(tmp_path)
    with Store.open(tmp_path / "store.db") as store:
        made = on_spark.release(spark.createDataFrame(table(500)), wanted, store=store)
    first = made.frame.columns.index("illness_1")
    names = made.frame.columns[first:]
    same = made.frame.select(*made.frame.columns[:first], *[F.lit("flu").alias(name) for name in names])
    told = on_spark.verify(replace(made, frame=same), wanted)
    assert {finding.claim for finding in told.refuted} == {"the set of every first event is possible in its stratum"}
    named = on_spark.verify(replace(made, frame=made.frame.withColumn("person", F.lit("p"))), wanted)
    assert {finding.claim for finding in named.refuted} == {"only columns that the policy releases are published"}
    assert not on_spark.verify(replace(made, frame=made.frame.limit(499)), wanted).holds
    later = on_spark.verify(replace(made, frame=made.frame.withColumn("event", F.lit(1))), wanted)
    assert {finding.claim for finding in later.refuted} == {"every record is its person's only event"}


def test_what_needs_memory_or_a_key_is_refused(spark, tmp_path):
    from reticent.connectors import spark as on_spark

    rows, wanted = table(300), policy(tmp_path)
    frame = spark.createDataFrame(rows)
    with pytest.raises(PolicyError, match="store"):
        on_spark.release(frame, wanted)
    with Store.open(tmp_path / "store.db") as store:
        with pytest.raises(DataError, match="several records"):
            on_spark.release(frame.unionByName(frame.limit(1)), wanted, store=store)
        with pytest.raises(PolicyError, match="does not support k"):
            on_spark.release(frame, policy(tmp_path, privacy={"l": 4, "k": 3}), store=store)
        odd = rows.set_column(rows.column_names.index("illness"), "illness", pa.array(["unheard of"] * 300))
        with pytest.raises(GuaranteeError, match="not be among their candidates"):
            on_spark.release(spark.createDataFrame(odd), wanted, store=store)
