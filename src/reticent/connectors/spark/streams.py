"""Run streams on Spark Structured Streaming: state per shard, exactly once through checkpoints.

A keyed hash of the person gives the shard. Each shard is one publication whose snapshot is in Spark's state store. Rows
of a micro-batch are sorted inside the shard, because the order of a shuffle changes from run to run. Every choice is a
function of (stream key, shard, sequence number). So a batch that is repeated after a crash gives the same lines, and a
sink that overwrites a batch by its number publishes every record once.

Guarantee: as in `reticent.connectors.shards`.
Not covered: sinks that append instead of overwriting, which show a repeated batch twice (with the same lines).
Cost: each micro-batch reads and writes the whole state of its shards; use many shards to keep the states small.
Reference: ours; M. Armbrust et al., "Structured Streaming", SIGMOD 2018.
Differences from Kafka: a micro-batch takes a second or more. This is for scale, not for zero delay.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's customary name
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from reticent.connectors.shards import MOST_SHARDS, assign_shards, check_shards, claim_population, pin_shards
from reticent.connectors.spark.rows import quote_column
from reticent.errors import PolicyError
from reticent.policy.bundle import Bundle
from reticent.publication.records import RecordReader
from reticent.publication.stream import StreamPublication
from reticent.publication.stream_publication import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from reticent.engine.rng import Rng
    from reticent.policy import Policy
    from reticent.store import Store

DEFAULT_SHARDS = 64
"""Default number of shards; a shard's whole state is written each time, so it should be small."""
_PACKED = "shard int, records array<string>"
_BLOCKS = "shard int, first long, kind string, lines string"
_NAME = "spark"


@functools.lru_cache(maxsize=8)
def unpack_policy(bundle: bytes) -> Policy:
    """Return the policy of a bundle, built once per process: a worker does not have the driver's files."""
    folder = Path(tempfile.mkdtemp(prefix="reticent-"))  # readable by this user only
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Bundle.from_bytes(bundle).unpack(folder)


class Stream:
    """A stream under a policy, split into shards; `lines` returns the streaming frame of published lines.

    Args:
        policy: the policy of the stream.
        store: contains the secret key; use the same store for every start of the stream.
        shards: number of shards; must stay the same for a veiled stream, may grow for others.
        seed: used instead of the store's key, for tests only.
        allow_republication: begin although other publications stand in the store.
    """

    def __init__(
        self,
        policy: Policy,
        store: Store,
        *,
        shards: int = DEFAULT_SHARDS,
        seed: int | None = None,
        allow_republication: bool = False,
    ) -> None:
        if not 0 < shards <= MOST_SHARDS:
            raise PolicyError("The number of shards is out of range.", hint=f"Choose from 1 to {MOST_SHARDS}.")
        check_shards(policy)
        store.register(_NAME, policy_hash=policy.hash)
        pin_shards(policy, store, _NAME, shards)
        self._rng = keys_of(policy, store, _NAME, seed=seed)
        claim_population(policy, store, _NAME, allow_republication=allow_republication)
        self._bundle, self._shards = Bundle.pack(policy).to_bytes(), shards
        self.codebook = StreamPublication(policy, rng=self._rng).codebook()
        """The codebook that recipients need to read the lines."""

    def blocks(self, frame: DataFrame, *, json: str | None = None) -> DataFrame:
        """Return the published blocks of a streaming frame, one row per shard and micro-batch.

        Args:
            frame: a frame with the columns of the policy, or with one column of JSON objects.
            json: the name of the column of JSON objects, as in a frame from Kafka.
        """
        policy = unpack_policy(self._bundle)
        if json is None:
            policy.check_columns(frame.columns)
            record = F.to_json(F.struct(*[quote_column(name) for name in policy.columns]))
        else:
            record = F.col(quote_column(json)).cast("string")
        # The key stays inside the function: it must not appear in a query plan.
        packer = make_packer(self._bundle, self._shards, self._rng.key("shards"))
        packed = frame.select(record.alias("record")).mapInArrow(packer, _PACKED)
        return packed.groupBy("shard").transformWithStateInPandas(
            statefulProcessor=make_processor(self._bundle, self._rng),
            outputStructType=_BLOCKS,
            outputMode="Append",
            timeMode="None",
        )

    def lines(self, frame: DataFrame, *, json: str | None = None) -> DataFrame:
        """Return the published lines one by one: shard, number within the shard, kind ("line" or "dead"), line."""
        blocks = self.blocks(frame, json=json)
        each = F.when(F.col("kind") == "line", F.split("lines", "\n")).otherwise(F.array("lines"))
        exploded = blocks.select("shard", "first", "kind", F.posexplode(each).alias("place", "line"))
        return exploded.select("shard", (F.col("first") + F.col("place")).alias("number"), "kind", "line")


def lines_to(folder: str) -> Callable[[DataFrame, int], None]:
    """Return a `foreachBatch` sink for blocks or lines: `FOLDER/batch=N/shard=S/*.txt`; dead letters: `FOLDER.dead`.

    A repeated batch overwrites itself; reading the batches in order gives each shard's stream.
    """

    def write(frame: DataFrame, batch: int) -> None:
        place, text = ("first", "lines") if "lines" in frame.columns else ("number", "line")
        frame.persist()
        try:
            for kind, target in (("line", folder), ("dead", f"{folder}.dead")):
                part = frame.where(frame["kind"] == kind)
                if kind == "dead" and part.isEmpty():
                    continue
                part = part.repartition("shard").sortWithinPartitions("shard", place).select("shard", text)
                part.write.mode("overwrite").partitionBy("shard").text(f"{target}/batch={batch:012d}")
        finally:
            frame.unpersist()

    return write


def make_packer(
    bundle: bytes, shards: int, key: bytes
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that puts the records of one shard into one row, so that a shuffle moves few rows."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        policy = unpack_policy(bundle)
        reader = RecordReader(policy)
        for batch in batches:
            (records,) = batch.columns
            numbers = assign_shards(reader.objects(records.to_pylist()), policy.person, shards, key)
            order = np.argsort(numbers, kind="stable")
            present, starts = np.unique(numbers[order], return_index=True)
            ends = pa.array([*starts.tolist(), len(order)], pa.int32())
            lists = pa.ListArray.from_arrays(ends, records.take(pa.array(order)))
            yield pa.RecordBatch.from_arrays([pa.array(present, pa.int32()), lists], names=["shard", "records"])

    return pack


def make_processor(bundle: bytes, rng: Rng) -> Any:
    """Return the operator that Spark runs per shard and micro-batch."""

    class Operator(StatefulProcessor):  # type: ignore[misc,unused-ignore]
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("shard", "snapshot binary, lines long")

        def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803, ARG002 - Spark's names
            (number,) = key
            stored = self._state.get() if self._state.exists() else None
            state, lines = (bytes(stored[0]), int(stored[1])) if stored else (None, 0)
            values = [value for part in rows for chunk in part["records"] for value in chunk]
            frame, state, lines = process_shard(bundle, rng, int(number), state, values, lines)
            self._state.update((state, lines))
            yield frame

        def close(self) -> None:
            pass

    return Operator()


_shard_cache: dict[tuple[bytes, bytes, int], tuple[bytes, StreamPublication]] = {}
"""Shards of this process by policy, key and number, each with its serialized state."""


def process_shard(
    bundle: bytes, rng: Rng, number: int, state: bytes | None, values: list[str | None], lines: int
) -> tuple[pd.DataFrame, bytes, int]:
    """Process one shard's part of a batch; return the blocks to publish, the new state and the line count."""
    cache_key = bundle, rng.key("shards"), number
    before, shard = _shard_cache.pop(cache_key, (None, None))
    if shard is None or before != state:  # another process had the shard, or a batch is repeated
        shard = StreamPublication(unpack_policy(bundle), rng=rng, shard=number, state=state)
    frame, lines = release_blocks(shard, values, lines, number)
    after = shard.snapshot()
    _shard_cache[cache_key] = after, shard
    return frame, after, lines


def _sort_values(values: list[str | None]) -> list[str | None]:
    """Sort values: the order of a shuffle changes from run to run, but the published lines must not."""
    try:
        return sorted(values)  # type: ignore[type-var]
    except TypeError:  # a null is present; sorting without a key is a third faster
        return sorted(values, key=lambda value: value or "")


def release_blocks(
    shard: StreamPublication, values: list[str | None], first: int, number: int
) -> tuple[pd.DataFrame, int]:
    """Return the blocks to publish for one shard's part of a batch, and the number of lines published so far."""
    import pandas as pd

    released = shard.take(shard.reader.objects(_sort_values(values)))
    blocks = [("line", released.lines[:-1].decode(), released.lines.count(b"\n"))] if released.lines else []
    blocks += [("dead", f"{reason}\t{text.decode(errors='replace')}", 1) for _, reason, text in released.rejected]
    ends = np.cumsum([first, *(size for _, _, size in blocks)])
    columns = {
        "shard": np.full(len(blocks), number, dtype=np.int32),
        "first": ends[:-1],
        "kind": [kind for kind, _, _ in blocks],
        "lines": [text for _, text, _ in blocks],
    }
    return pd.DataFrame(columns), int(ends[-1])
