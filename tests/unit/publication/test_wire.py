"""The core reads records as the reference implementation does: valid ones, odd ones, and corrupt bytes."""

from __future__ import annotations

import csv
import io
import random

import odd_records
import orjson
import pyarrow as pa
import pytest
import wire_reference

from reticent.policy import Policy
from reticent.publication.blocks import CsvLineFormat
from reticent.publication.records import RecordReader

RULES = odd_records.RULES
HEADER = list(RULES["columns"])
LINES = [line.encode() for line in odd_records.lines()[0]]
# What readers of JSON and CSV trip over, to be put anywhere.
SNARES = [
    b'"',
    b"\\",
    b",",
    b"\n",
    b"\r",
    b"{",
    b"}",
    b":",
    b"[",
    b"]",
    b"\x00",
    b"\xff",
    b"\xc3",
    b"0",
    b"-",
    b"e",
    b".",
    b"\\u",
    b" ",
]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wire")
    (folder / "prior.csv").write_text(odd_records.PRIOR)
    return Policy.from_dict(RULES, base=folder)


def seen(batch, policy, *, tokens=True):
    """A batch in the form of the reference."""
    told: dict[int, object] = {bad.row: bad.reason for bad in batch.rejected}
    texts = {name: batch.table.column(name).to_pylist() for name in policy.columns}
    shown = [*policy.quasi, *policy.plain]
    json = {name: batch.token_column(name).to_pylist() for name in shown} if tokens else {}
    for at, row in enumerate(batch.rows.tolist()):
        told[row] = {name: (texts[name][at], json[name][at] if name in json else None) for name in policy.columns}
    assert sorted(told) == list(range(batch.total))
    return [told[row] for row in range(batch.total)]


def expected(records, policy):
    """The result of the reference, with JSON for the published columns only."""
    shown = {*policy.quasi, *policy.plain}
    return [
        record
        if isinstance(record, str)
        else {name: (cell, json if name in shown else None) for name, (cell, json) in record.items()}
        for record in records
    ]


def bent(line: bytes, rng: random.Random) -> bytes:
    """A line with a few bytes changed, lost or put in."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(line) + 1)
        line = line[:at] + rng.choice([*SNARES, b""]) + line[at + rng.randint(0, 2) :]
    return line


@pytest.mark.parametrize(("numbers", "missing"), [((), []), (("age",), []), ((), ["1", "x", "p4", "true", "a"])])
def test_messages_are_read_as_by_the_reference(policy, numbers, missing):
    rng = random.Random(5)
    policy = Policy.from_dict(RULES | {"missing": missing}, base=policy.base)
    values = [*LINES, None, b"", *(bent(rng.choice(LINES), rng) for _ in range(6_000))]
    batch = RecordReader(policy, numbers).objects(values)
    assert seen(batch, policy) == expected(wire_reference.objects(values, policy, numbers), policy)
    assert [bad.payload for bad in batch.rejected] == [values[bad.row] or b"" for bad in batch.rejected]
    assert {bad.reason for bad in batch.rejected} > {"not JSON", "not a JSON object", "a field twice", "no person"}


def test_lines_are_read_as_by_the_reference(policy):
    """Enough of them to be read in parts."""
    rng = random.Random(6)
    data = b"\n".join(bent(line, rng) if rng.random() < 0.1 else line for line in LINES * 5)
    assert seen(RecordReader(policy).ndjson(data), policy) == expected(wire_reference.ndjson(data, policy), policy)


def test_floats_keep_every_bit(policy):
    rng = random.Random(7)
    floats = [
        orjson.loads(b"%d.%de%d" % (rng.randrange(10), rng.randrange(10**17), rng.randint(-320, 18)))
        for _ in range(5_000)
    ]
    floats = [x for x in floats if abs(x) < 2**63]
    batch = RecordReader(policy).objects([b'{"who":1,"age":%s}' % repr(x).encode() for x in floats])
    assert batch.token_column("age").to_pylist() == [orjson.dumps(x).decode() for x in floats]
    assert list(map(float, batch.table.column("age").to_pylist())) == floats


def cells_of_csv(rng: random.Random) -> str:
    kinds = ("", "x", "7", "é", 'a"b', "a,b", "a\nb", " ", '""', "\r\n", "long text that needs no quotes")
    return rng.choice(kinds)


def test_csv_that_others_write_is_read_as_they_do(policy):
    rng = random.Random(8)
    rows = [[f"p{i}", *(cells_of_csv(rng) for _ in HEADER[1:])] for i in range(2_000)]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    batch, _ = RecordReader(policy).csv(text.getvalue().encode(), HEADER, ",", last=False)
    assert not batch.rejected
    found = [
        [cell or "" for cell in row] for row in zip(*(batch.table.column(n).to_pylist() for n in HEADER), strict=True)
    ]
    assert found == rows


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_corrupt_csv_is_read_as_by_the_reference(policy, delimiter):
    rng = random.Random(9)
    sound = b'p%d,30,"t ""1"", a",x,a\r\n'.replace(b",", delimiter.encode())
    for _ in range(1_500):
        data = b"".join(bent(sound % i, rng) if rng.random() < 0.5 else sound % i for i in range(rng.randint(1, 6)))
        batch, size = RecordReader(policy).csv(data, HEADER, delimiter, last=True)
        assert (seen(batch, policy, tokens=False), size) == wire_reference.csv(data, HEADER, delimiter, policy), data


def test_however_csv_is_cut_into_blocks_its_records_are_the_same(policy):
    from reticent.publication.blocks import Blocks

    rng = random.Random(10)
    lines = [b'p%d,30,"a\nb",5" disk,a\n', b"p%d,30,t,x,\n", b"p%d,1\n", b'"p%d","",t,x,a\r\n']
    data = b",".join(map(str.encode, HEADER)) + b"\n" + b"".join(rng.choice(lines) % i for i in range(400))
    whole = None
    for size in (7, 100, 1 << 20):
        reader = RecordReader(policy)
        blocks, told = Blocks(CsvLineFormat(reader), reader), []
        for at in range(0, len(data) + size, size):
            for batch, _ in blocks.iter_batches(data[at : at + size], last=at >= len(data)):
                told += seen(batch, policy, tokens=False)
        whole = whole or told
        assert told == whole
    assert len(whole) == 400


def test_a_table_of_any_type_is_read_as_its_json_is(policy):
    table = pa.table(
        {
            "who": ["a", "", None, "d"],
            "age": [1.0, 2.5, -0.0, 1e300],
            "town": pa.array([1, 2**63, 3, 4], pa.uint64()),
            "note": [True, None, False, True],
            "ill": ["x", "y", "z", None],
        }
    )
    values = [orjson.dumps(row) for row in table.to_pylist()]
    batch = RecordReader(policy).table(table)
    assert seen(batch, policy) == expected(wire_reference.objects(values, policy), policy)
    assert [bad.payload for bad in batch.rejected] == values[1:]
