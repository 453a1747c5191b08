"""A table released by a driver in a process of its own, to be killed: `spark_table_driver.py FOLDER METHOD`."""

import sys
from dataclasses import replace
from pathlib import Path

import counted_cases
import stream_feed

import services
from reticent import Policy
from reticent.connectors.spark import release
from reticent.store import Store

PARTS = 60
"""Files of a release: so many that a driver can die between the first and the last that gets its name."""


def policy(folder: Path, method: str) -> Policy:
    """Persons with one record each."""
    if method != "veil":
        return counted_cases.policy({"k": 5, "l": 3, "suppression": 0.1}, method=method)
    rules = stream_feed.policy(folder).to_dict()
    return Policy.from_dict(rules | {"table": {"method": "veil"}}, base=folder)


def run(spark, folder: Path, method: str) -> None:
    """Releases what lies in `FOLDER/in` to `FOLDER/out`."""
    (folder / "begun").touch()
    with Store.open(folder / "store.db") as store:
        made = release(spark.read.parquet(str(folder / "in")), policy(folder, method), store=store)
        (folder / "verified").touch()
        # As many files as a large table has, each of neighboring rows.
        replace(made, frame=made.frame.repartition(PARTS, *made.frame.columns)).to_parquet(str(folder / "out"))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    session = services.spark_session(folder)
    run(session, folder, sys.argv[2])
    session.stop()
