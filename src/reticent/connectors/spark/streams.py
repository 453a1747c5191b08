"""Streams on Spark Structured Streaming: arbitrary state per shard, exactly once through checkpoints.

A shard is a keyed hash of the person; each shard is one publication whose snapshot stands in Spark's state store. The rows of
a micro-batch are put in a fixed order inside the shard, since the order of a shuffle changes from run to run; every choice
is a function of (key of the stream, shard, sequence number). A batch that is computed again after a crash is therefore the
same publication, line by line, and a sink that overwrites the batch of a number publishes every record once.

Guarantee: that of `reticent.connectors.shards`.
Not covered: sinks that append instead of overwriting show a repeated batch twice (the same lines, not others).
Cost: the state of every shard that a micro-batch touches is read and written whole: many shards, small states.
Reference: ours; M. Armbrust et al., "Structured Streaming", SIGMOD 2018.
Differences from Kafka: a micro-batch takes a second or more. This is for scale, not for zero delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.connectors.shards import MOST_SHARDS, check_shards, pin_shards, spread
from reticent.connectors.spark.rows import column
from reticent.connectors.spark.workplace import Carried
from reticent.errors import PolicyError
from reticent.publication.records import RecordReader
from reticent.publication.stream import StreamPublication
from reticent.publication.stream_publication import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from pyspark.sql import DataFrame

    from reticent.engine.rng import Rng
    from reticent.policy import Policy
    from reticent.store import Store

SHARDS = 64
"""Chosen up front: the state of a shard is written whole, so it should be small."""
_OUT = "shard int, number long, kind string, line string"
_NAME = "spark"


class Stream:
    """A stream under a policy, spread over shards; `lines` makes the streaming frame of what is published.

    Args:
        policy: the policy of the stream.
        store: holds the secret key; the same store for every start of the stream.
        shards: how many; the same for every start of a stream under the veil, where others may grow.
        seed: instead of the store's key, for tests only.
    """

    def __init__(self, policy: Policy, store: Store, *, shards: int = SHARDS, seed: int | None = None) -> None:
        if not 0 < shards <= MOST_SHARDS:
            raise PolicyError("The number of shards is out of range.", hint=f"Choose from 1 to {MOST_SHARDS}.")
        check_shards(policy)
        store.register(_NAME, policy_hash=policy.hash)
        pin_shards(policy, store, _NAME, shards)
        self._rng = keys_of(policy, store, _NAME, seed=seed)
        self._carried, self._shards = Carried.pack(policy), shards
        self.codebook = StreamPublication(policy, rng=self._rng).codebook()
        """What recipients need to read the lines."""

    def lines(self, frame: DataFrame, *, json: str | None = None) -> DataFrame:
        """The published lines of a streaming frame: shard, number within the shard, kind ("line" or "dead"), line.

        Args:
            frame: the columns of the policy, or one of JSON objects.
            json: the name of the column of JSON objects, as in a frame from Kafka.
        """
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.pandas import functions

        policy = self._carried.open()
        if json is None:
            policy.check_columns(frame.columns)
            record = F.to_json(F.struct(*[column(name) for name in policy.columns]))
        else:
            record = F.col(column(json)).cast("string")
        pandas_udf: Any = functions.pandas_udf
        shard = pandas_udf(_spreader(self._carried, self._shards, self._rng.key("shards")), "int")
        told = frame.select(record.alias("record")).withColumn("shard", shard(F.col("record")))
        processor = make_processor(self._carried, self._rng)
        return told.groupBy("shard").transformWithStateInPandas(
            statefulProcessor=processor, outputStructType=_OUT, outputMode="Append", timeMode="None"
        )


def lines_to(folder: str) -> Callable[[DataFrame, int], None]:
    """A `foreachBatch` sink: `FOLDER/batch=N/shard=S/*.txt` with the lines, and dead letters under `FOLDER.dead`.

    A batch that comes again overwrites itself; reading the batches in order gives each shard's stream.
    """

    def write(frame: DataFrame, batch: int) -> None:
        frame.persist()
        try:
            for kind, place in (("line", folder), ("dead", f"{folder}.dead")):
                part = frame.where(frame["kind"] == kind)
                if kind == "dead" and part.isEmpty():
                    continue
                part = part.repartition("shard").sortWithinPartitions("shard", "number").select("shard", "line")
                part.write.mode("overwrite").partitionBy("shard").text(f"{place}/batch={batch:012d}")
        finally:
            frame.unpersist()

    return write


def _spreader(carried: Carried, shards: int, key: bytes) -> Callable[[Any], Any]:
    # The key stays inside the function: it must not show up in a query plan.
    def shards_of(records):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Spark reads annotations
        import pandas as pd

        policy = carried.open()
        batch = RecordReader(policy).objects(records.tolist())
        return pd.Series(spread(batch, policy.person, shards, key))

    shards_of.__annotations__ = _series()
    return shards_of


def _series() -> dict[str, Any]:
    import pandas as pd

    return {"records": pd.Series, "return": pd.Series}


def make_processor(carried: Carried, rng: Rng) -> Any:
    """The operator that Spark runs per shard and micro-batch."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Operator(StatefulProcessor):  # type: ignore[misc,unused-ignore]
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("shard", "snapshot binary, lines long")

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803, ARG002 - Spark's names
            (number,) = key
            known = self._state.get() if self._state.exists() else None
            state = bytes(known[0]) if known else None
            shard = StreamPublication(carried.open(), rng=rng, shard=int(number), state=state)
            values = [value for part in rows for value in part["record"].tolist()]
            frame, lines = release(shard, values, int(known[1]) if known else 0, int(number))
            self._state.update((shard.snapshot(), lines))
            yield frame

        def close(self) -> None:
            pass

    return Operator()


def release(shard: StreamPublication, values: list[str | None], first: int, number: int) -> tuple[pd.DataFrame, int]:
    """The rows to publish of one shard's part of a batch, and how many lines the shard has published then."""
    import pandas as pd

    # The order of a shuffle changes from run to run; what is published must not.
    released = shard.take(shard.reader.objects(sorted(values, key=lambda value: value or "")))
    lines = [line.decode() for line in released.lines.splitlines()]
    dead = [f"{reason}\t{payload.decode(errors='replace')}" for _, reason, payload in released.bad]
    texts = lines + dead
    frame = pd.DataFrame(
        {
            "shard": np.full(len(texts), number, dtype=np.int32),
            "number": np.arange(first, first + len(texts), dtype=np.int64),
            "kind": ["line"] * len(lines) + ["dead"] * len(dead),
            "line": texts,
        }
    )
    return frame, first + len(texts)
