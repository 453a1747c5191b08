"""Check that a topic is keyed by person: every record must be in the partition of its person.

A shard remembers the persons of its partition. A person in two partitions would have two first events, and the veil
would draw candidates for one true value twice. A producer that keys messages by person puts all records of a person
into one partition, which its partitioner computes from the key. The worker computes the partition too, and stops at the
first record that is in another one: the message has no key or another key, its person identifier is written
differently, or two producers use different partitioners.

Guarantee: all published records of a stream are where one partitioner puts their persons, so that no person is in two
    partitions. The records show which known partitioner it is; the store keeps the possible ones for all workers.
Not covered: keys other than the text of the identifier (such a topic is refused), and records published without the
check.
Cost: about 45 ns per record and possible partitioner; one write to the store when a partitioner is ruled out.
Reference: A. Appleby, MurmurHash2, 2008, as in Kafka's Java client; the CRC-32 of zlib, as in librdkafka.
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
    """Return the CRC-32 of names of equal length, one row of bytes each."""
    hashes = np.full(len(names), 0xFFFFFFFF, dtype=np.uint32)
    for letters in names.T:
        hashes = _CRC[(hashes ^ letters) & _U(0xFF)] ^ (hashes >> _U(8))
    return ~hashes


def murmur2(names: NameBytes) -> Hashes:
    """Return the MurmurHash2 of names of equal length, one row of bytes each, without the sign bit as in Kafka."""
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
    """Checks partitions for all workers of a stream, which share the store; `name` is the stream's name there."""

    def __init__(self, store: Store, name: str, person: str, shards: int) -> None:
        self._store, self._name, self.person, self._shards = store, name, person, shards
        self._possible = tuple(PARTITIONERS)

    def check(self, partition: int, names: pa.ChunkedArray) -> None:
        """Refuse records of persons who belong in another partition.

        Raises:
            DataError: such records exist; nothing of the batch may be published.
        """
        if self._shards == 1 or not len(names):
            return
        misfits = {one: self._count_misfits(one, partition, names) for one in self._possible}
        if not any(misfits.values()):
            return
        possible = self._agree_with_others(tuple(one for one, number in misfits.items() if not number))
        if not possible:
            raise DataError(
                f"Partition {partition} has {min(misfits.values()) or len(names):,} records of persons who belong in another partition; they would "
                f"be veiled twice. None of its last {len(names):,} records was published.",
                hint=f"Key the topic by person: use the exact text of '{self.person}' as the message key, without surrounding blanks, and one "
                "partitioner for all producers, crc32 (librdkafka) or murmur2 (Java). Or use a topic with one partition.",
            )
        self._possible = possible

    def _count_misfits(self, partitioner: str, partition: int, names: pa.ChunkedArray) -> int:
        return sum(
            int((PARTITIONERS[partitioner](letters) % _U(self._shards) != partition).sum())
            for letters in _by_length(names)
        )

    def _agree_with_others(self, possible: tuple[str, ...]) -> tuple[str, ...]:
        """Return the partitioners possible for all workers; each worker stores what it has seen before it publishes."""
        with self._store.transaction() as tx:
            known = tx.get(self._name, _STORE_KEY, _STORE_KEY)
            stored = tuple(PARTITIONERS) if known is None else tuple(known.decode().split())
            agreed = tuple(one for one in stored if one in possible)
            if agreed:  # a refused batch is not published and must not change the record
                tx.put(self._name, _STORE_KEY, _STORE_KEY, " ".join(agreed).encode())
        return agreed


def _by_length(names: pa.ChunkedArray) -> Iterator[NameBytes]:
    """Yield the bytes of the names, grouped by length."""
    for chunk in names.chunks:
        _, places, text = chunk.buffers()
        if text is None:
            continue
        ends = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        sizes, letters = np.diff(ends), np.frombuffer(text, np.uint8)
        for size in np.unique(sizes).tolist():
            starts = ends[:-1][sizes == size]
            yield letters[starts[:, None] + np.arange(size, dtype=np.int32)]
