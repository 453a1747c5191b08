"""Whether a topic is keyed by person: where every record must lie, whoever has sent it.

A shard remembers the persons of its partition. Whoever came in two partitions would be met for the first time in both, and veiled twice over
one truth. A producer that keys messages by person puts all of hers into one partition, which its partitioner computes from the name. So the
worker computes it, too, from the name as the stream knows it, and stops at the first record that lies elsewhere: because it has no key or
another one, because its person is spelled otherwise there, or because two producers with different partitioners fill the topic.

Guarantee: all records that the workers of a stream have published lie where one and the same partitioner puts their persons, so that nobody
    stands in two partitions. Which of the known partitioners it is, the records tell; what is still possible is kept in the store for all workers.
Not covered: keys in another form than the text of the name (such a topic is refused), and what was published before this was looked at.
Cost: about 45 nanoseconds per record and partitioner that is still possible; a write to the store when one no longer is.
Reference: A. Appleby, MurmurHash2, 2008, as Kafka's Java client uses it; the CRC-32 of zlib, as librdkafka does.
Differences from it: none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reticent.errors import DataError
from reticent.store import Store

NameBytes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint32]

_STORE_KEY = "placement"
_U = np.uint32
_SEED, _FACTOR = _U(0x9747B28C), _U(0x5BD1E995)


def _crc_table() -> Hashes:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & _U(1), (table >> _U(1)) ^ _U(0xEDB88320), table >> _U(1))
    return table


_CRC = _crc_table()


def crc32(names: NameBytes) -> Hashes:
    """Of names of one length, a row of bytes each."""
    hashes = np.full(len(names), 0xFFFFFFFF, dtype=np.uint32)
    for letters in names.T:
        hashes = _CRC[(hashes ^ letters) & _U(0xFF)] ^ (hashes >> _U(8))
    return ~hashes


def murmur2(names: NameBytes) -> Hashes:
    """Of names of one length, a row of bytes each; without the sign that Java's numbers have."""
    size = names.shape[1]
    hashes = np.full(len(names), _SEED ^ _U(size), dtype=np.uint32)
    words = np.ascontiguousarray(names[:, : size // 4 * 4]).view("<u4")
    for word in words.T:
        mixed = word * _FACTOR
        mixed ^= mixed >> _U(24)
        hashes = (hashes * _FACTOR) ^ (mixed * _FACTOR)
    if size % 4:
        for place, letters in enumerate(names[:, size // 4 * 4 :].T):
            hashes ^= letters.astype(np.uint32) << _U(8 * place)
        hashes *= _FACTOR
    hashes ^= hashes >> _U(13)
    hashes *= _FACTOR
    return (hashes ^ (hashes >> _U(15))) & _U(0x7FFFFFFF)


PARTITIONERS: dict[str, Callable[[NameBytes], Hashes]] = {"crc32": crc32, "murmur2": murmur2}


class PartitionCheck:
    """What may lie where, for all workers of a stream, which share the store; `name` is the stream's in it."""

    def __init__(self, store: Store, name: str, person: str, shards: int) -> None:
        self._store, self._name, self.person, self._shards = store, name, person, shards
        self._possible = tuple(PARTITIONERS)

    def check(self, partition: int, names: pa.ChunkedArray) -> None:
        """Refuses records of persons who belong in another partition.

        Raises:
            DataError: some do; nothing of the batch may be published.
        """
        if self._shards == 1 or not len(names):
            return
        astray = {way: self._count_misfits(way, partition, names) for way in self._possible}
        if not any(astray.values()):
            return
        possible = self._agree_with_others(tuple(way for way, number in astray.items() if not number))
        if not possible:
            raise DataError(
                f"Partition {partition} has {min(astray.values()) or len(names):,} records of persons who belong in another one, where they would "
                f"be veiled a second time; nothing of its last {len(names):,} records was published.",
                hint=f"Key the topic by person: the message key is the text of '{self.person}', without blanks or other signs around it, and one "
                "partitioner for all producers, crc32 (librdkafka) or murmur2 (Java). Or give the topic one partition.",
            )
        self._possible = possible

    def _count_misfits(self, partitioner: str, partition: int, names: pa.ChunkedArray) -> int:
        return sum(
            int((PARTITIONERS[partitioner](letters) % _U(self._shards) != partition).sum())
            for letters in _by_length(names)
        )

    def _agree_with_others(self, possible: tuple[str, ...]) -> tuple[str, ...]:
        """What is possible for all workers: each writes down what it has seen before it publishes."""
        with self._store.transaction() as tx:
            known = tx.get(self._name, _STORE_KEY, _STORE_KEY)
            whole = tuple(PARTITIONERS) if known is None else tuple(known.decode().split())
            agreed = tuple(way for way in whole if way in possible)
            if agreed:  # a refused batch was not published, and says nothing of those that were
                tx.put(self._name, _STORE_KEY, _STORE_KEY, " ".join(agreed).encode())
        return agreed


def _by_length(names: pa.ChunkedArray) -> Iterator[NameBytes]:
    """The bytes of names, those of one length together."""
    for chunk in names.chunks:
        _, places, text = chunk.buffers()
        if text is None:
            continue
        ends = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        sizes, letters = np.diff(ends), np.frombuffer(text, np.uint8)
        for size in np.unique(sizes).tolist():
            starts = ends[:-1][sizes == size]
            yield letters[starts[:, None] + np.arange(size, dtype=np.int32)]
