"""Small bodies that stand for large tables are refused before they are unpacked; honest ones, packed or not, are taken."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from serving import NDJSON, feed_policy

from reticent.datasets import feed, hospital
from reticent.errors import DataError, PolicyError
from reticent.service.policy_registry import parse_policy
from reticent.service.tokens import Role
from reticent.service.unpacked_size import refuse_bombs
from reticent.service.uploads import ARROW, read_upload

NAMES = feed.generate(1, 1).column_names
LONG = "x" * 1_000_000
VIEW = struct.pack("<i4sii", len(LONG), b"xxxx", 0, 0)
PARQUET = "application/vnd.apache.parquet"


def arrow(table: pa.Table, packed: str | None = None, *, file: bool = False) -> bytes:
    out = io.BytesIO()
    begin = ipc.new_file if file else ipc.new_stream
    with begin(out, table.schema, options=ipc.IpcWriteOptions(compression=packed)) as writer:
        writer.write_table(table)
    return out.getvalue()


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def of_all(column: pa.Array) -> pa.Table:
    return pa.table(dict.fromkeys(NAMES, column))


def views(number: int) -> pa.Array:
    buffers = [None, pa.py_buffer(VIEW * number), pa.py_buffer(LONG.encode())]
    return pa.Array.from_buffers(pa.string_view(), number, buffers)


ZEROS = pa.array(np.zeros(6_000_000, dtype=np.int64))
WORD = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000, dtype=np.int32)), pa.array([LONG]))
RUN = pa.RunEndEncodedArray.from_arrays(pa.array([2_000_000_000], pa.int32()), pa.array(["x"]))
STREAMS = {
    "packed buffers": lambda: arrow(of_all(ZEROS), "zstd"),
    "packed by lz4": lambda: arrow(of_all(ZEROS), "lz4"),
    "one word many times": lambda: arrow(of_all(WORD)),
    "nothing, two billion times": lambda: arrow(of_all(pa.nulls(2_000_000_000))),
    "one run": lambda: arrow(of_all(RUN)),
}
TABLES = {
    "parquet of zeros": lambda: parquet(of_all(ZEROS)),
    "parquet of a word": lambda: parquet(pa.table({"a": [LONG] * 300})),
    "a file of packed buffers": lambda: arrow(of_all(ZEROS), "zstd", file=True),
    "a file of nothing": lambda: arrow(of_all(pa.nulls(2_000_000_000)), file=True),
    "views of one word": lambda: arrow(pa.table({"a": views(2_000)})),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_feed_cannot_fill_the_memory(server, name):
    with server.client() as client, server.client(Role.FEED) as feeding:
        client.post("/streams", json={"name": "bombs", **feed_policy()})
        headers = {"Content-Type": ARROW, "Idempotency-Key": name.replace(" ", "-")}
        body = STREAMS[name]()
        answer = feeding.post("/streams/bombs/records", content=body, headers=headers)
    assert answer.status_code == 422
    assert "more than 256 MiB of memory" in answer.text


@pytest.mark.parametrize("name", STREAMS | TABLES)
def test_a_table_cannot_either(name):
    body = (STREAMS | TABLES)[name]()
    assert len(body) < 10 << 20
    with pytest.raises(DataError, match="MiB of memory"):
        read_upload(body)


def test_lines_with_a_field_each_are_refused(server):
    body = b"\n".join(b'{"k%d":1}' % number for number in range(8_000))
    with server.client() as client:
        answer = client.post("/tables", content=body, headers={"Content-Type": NDJSON})
    assert answer.status_code == 422
    assert "share too few fields" in answer.text


@pytest.mark.parametrize(
    "write",
    [parquet, arrow, lambda t: arrow(t, "zstd"), lambda t: arrow(t, "lz4", file=True)],
    ids=["parquet", "arrow", "zstd", "lz4 file"],
)
def test_honest_tables_are_taken(write):
    table = hospital.generate(2_000, 1)
    assert read_upload(write(table)).num_rows == 2_000
    viewed = pa.table({"a": table["region"].cast(pa.string_view())})
    assert write is parquet or read_upload(write(viewed)).num_rows == 2_000
    coded = pa.table({name: table[name].dictionary_encode() for name in table.column_names})
    assert read_upload(write(coded)).num_rows == 2_000


def test_what_cannot_be_measured_is_refused():
    body = arrow(of_all(pa.array(["a", "b"])))
    length = struct.unpack_from("<i", body, 4)[0]
    old = struct.pack("<i", length) + body[8:]  # the form of before 2019, which the library still reads
    with pytest.raises(DataError):
        read_upload(old)
    for cut in range(8, len(body), 97):
        with pytest.raises(DataError):
            refuse_bombs(body[:8] + b"\xff" * 24 + body[32:cut])


def test_a_policy_of_anchors_is_not_written_out():
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
    for text in (laughs, "a: &a [*a]", "a: &a {b: *a}"):
        with pytest.raises(PolicyError, match="aliases"):
            parse_policy(text)
