"""Where partitioners put a key: the known vectors of Kafka's Java client, and zlib."""

import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.connectors.kafka.partition_check import PartitionCheck, crc32, murmur2
from reticent.errors import DataError
from reticent.store import Store

JAVA = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


def letters(name: bytes):
    return np.frombuffer(name * 3, np.uint8).reshape(3, len(name))


@pytest.mark.parametrize("name", JAVA)
def test_murmur2_is_that_of_java(name):
    assert murmur2(letters(name.encode())).tolist() == [JAVA[name] & 0x7FFFFFFF] * 3


@given(st.binary(min_size=1, max_size=30))
def test_crc32_is_that_of_zlib(name):
    assert crc32(letters(name)).tolist() == [zlib.crc32(name)] * 3


def names_in(partition: int, shards: int, way=zlib.crc32) -> list[str]:
    return [name for name in (f"p{i}" for i in range(300)) if way(name.encode()) % shards == partition]


def test_names_of_any_length_in_pieces(tmp_path):
    with Store.open(tmp_path / "s.db") as store:
        store.register("k", policy_hash="")
        mine = names_in(2, 5)
        partition_check = PartitionCheck(store, "k", "id", 5)
        partition_check.check(2, pa.chunked_array([mine[:20], [], mine[20:]], pa.string()).slice(3, 40))
        partition_check.check(2, pa.chunked_array([], pa.string()))
        with pytest.raises(DataError, match="Partition 3"):
            partition_check.check(3, pa.chunked_array([mine[:1]]))
        partition_check.check(2, pa.chunked_array([mine]))  # a refused batch changes nothing
        with pytest.raises(DataError, match="1 records of persons"):
            PartitionCheck(store, "k", "id", 5).check(
                2, pa.chunked_array([[*mine, "p0" if "p0" not in mine else "p1"]])
            )
