"""A streaming query in a process of its own, to be killed: `spark_driver.py FOLDER SHARDS [BROKER TOPIC]`.

Works on what is there (`availableNow`), in micro-batches of two files, and ends.
"""

import json
import sys
from pathlib import Path

import stream_feed
from pyspark.errors import StreamingQueryException

import services
from reticent.connectors.spark import Stream, lines_to
from reticent.store import Store


def run(spark, folder: Path, shards: int, kafka: tuple[str, str] | None = None, *, text: bool = False) -> list[dict]:
    """Works until everything is published; what Spark tells of its micro-batches. As `text`, records go through Spark unread."""
    with Store.open(folder / "store.db") as store:
        stream = Stream(stream_feed.policy(folder), store, shards=shards)
    if text:
        frame = spark.readStream.option("maxFilesPerTrigger", 2).text(str(folder / "in"))
        lines = stream.blocks(frame, json="value")
    elif kafka is None:
        schema = "person string, age int, zip string, ward int, illness string"
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).json(str(folder / "in"))
        lines = stream.blocks(frame)
    else:
        source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka[0])
        frame = source.option("subscribe", kafka[1]).option("startingOffsets", "earliest").load()
        lines = stream.lines(frame, json="value")
    for attempt in range(3):
        try:
            return _work(lines, folder)
        except StreamingQueryException as error:
            # Before each batch the driver starts a Python process and waits ten seconds for it, which no setting changes;
            # a very busy machine needs more. The checkpoint holds.
            if "connect back" not in str(error) or attempt == 2:
                raise
    raise AssertionError


def _work(lines, folder: Path) -> list[dict]:
    query = (
        lines.writeStream.foreachBatch(lines_to(str(folder / "out")))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    session = services.spark_session(folder)
    run(session, folder, int(sys.argv[2]))
    session.stop()
