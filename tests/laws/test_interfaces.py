"""The same records through every interface: the same ones accepted with the same typed cells, the same ones refused.

Command line, HTTP, Kafka and Spark; the first two need nothing but the public interface, the others are called where the
broker and the cluster would call them.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import odd_records
import orjson
import pytest
from serving import InThread

from reticent import verify
from reticent.cli import main
from reticent.policy import Policy
from reticent.store import Store

LINES, BAD = odd_records.lines()
SEED = 11
KEYS = {
    "group": {"type", "group", "candidates"},
    "tuple": {"type", "group", "seq", "quasi", "plain"},
    "record": {"type", "seq", "quasi", "plain", "stratum", "event", "candidates"},
}


@pytest.fixture(scope="module", params=[odd_records.RULES, odd_records.VEILED], ids=lambda r: r["stream"]["method"])
def rules(request):
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rules):
    place = tmp_path_factory.mktemp("interfaces")
    (place / "prior.csv").write_text(odd_records.PRIOR)
    (place / "policy.json").write_text(json.dumps(rules))
    (place / "in.ndjson").write_text("\n".join(LINES) + "\n")
    return place


@pytest.fixture(scope="module")
def policy(folder):
    return Policy.load(folder / "policy.json")


@pytest.fixture(scope="module")
def by_command(folder):
    """Lines and refusals of the command line."""
    ends = ["--store", str(folder / "cli.db"), "--to", str(folder / "cli.ndjson")]
    with pytest.raises(SystemExit) as done:
        main(["stream", str(folder / "in.ndjson"), "-p", str(folder / "policy.json"), "--seed", str(SEED), *ends])
    assert done.value.code in (0, None)
    with Store.open(folder / "cli.db") as store:
        refused = {int(letter.position): letter.reason for letter in store.dead_letters("stream")}
    return (folder / "cli.ndjson").read_bytes(), refused


@pytest.fixture(scope="module")
def by_http(folder, rules):
    """Lines and refusals of the service, a record at a time."""
    (folder / "service").mkdir()
    running = InThread(folder / "service", rate=1e9)
    shown, refused = b"", {}
    try:
        with running.client() as client:
            files = {"prior.csv": odd_records.PRIOR}
            client.post("/streams", json={"name": "s", "policy": rules, "files": files}).raise_for_status()
            for number, line in enumerate(LINES):
                headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"record-{number}"}
                answer = client.post("/streams/s/records", content=line.encode(), headers=headers)
                if answer.status_code == 200:
                    shown += answer.content
                else:
                    assert answer.status_code == 422
                    refused[number] = answer.text
    finally:
        running.close()
    return shown, refused


def tuples(shown: bytes) -> list[dict]:
    return [line for line in map(orjson.loads, shown.splitlines()) if line["type"] in ("tuple", "record")]


def typed(shown: bytes) -> list[bytes]:
    """What a recipient reads of every record: each cell with its type."""
    return [orjson.dumps([line["quasi"], line["plain"]]) for line in tuples(shown)]


def test_every_cell_goes_out_with_the_type_it_came_with(by_command):
    shown, refused = by_command
    assert set(refused) == BAD
    sent = {number: orjson.loads(line) for number, line in enumerate(LINES) if number not in BAD}
    assert [line["seq"] for line in tuples(shown)] == list(sent)
    for line, record in zip(tuples(shown), sent.values(), strict=True):
        assert orjson.dumps(line["quasi"]) == orjson.dumps({name: record.get(name) for name in ("age", "town")})
        assert orjson.dumps(line["plain"]) == orjson.dumps({"note": record.get("note")})


def test_the_service_takes_and_refuses_what_the_command_line_does(by_command, by_http):
    assert typed(by_http[0]) == typed(by_command[0])
    assert set(by_http[1]) == set(by_command[1]) == BAD
    assert all(reason in by_http[1][number] for number, reason in by_command[1].items())


def test_neighbours_change_nothing(by_command, folder, policy):
    """Other blocks, hence other batches: the same bytes."""
    from reticent.connectors.stream import FileSource, Stream

    for block in (300, 4001):
        with Stream(policy, store=folder / f"{block}.db", seed=SEED) as stream:
            stream.run(FileSource(str(folder / "in.ndjson"), block=block), str(folder / f"{block}.ndjson"))
        assert (folder / f"{block}.ndjson").read_bytes() == by_command[0]


def test_a_table_is_read_as_its_rows_in_json_are(policy):
    import pyarrow as pa

    from reticent.publication.records import RecordReader

    whole = [9223372036854775807, -1, 0, None]
    table = pa.table(
        {
            "who": pa.array([1, 2, None, 4]),
            "age": pa.array([1.0, float("nan"), 0.5, None]),
            "town": pa.array([1, 2**63, 3, 4], pa.uint64()),
            "note": pa.array([True, False, None, True]),
            "ill": pa.array(whole, pa.int64()),
        }
    )
    batch = RecordReader(policy).table(table)
    assert [(bad.row, bad.reason) for bad in batch.rejected] == [(1, "not a finite number"), (2, "no person")]
    rows = [row for i, row in enumerate(table.to_pylist()) if i in batch.rows]
    same = RecordReader(policy).objects(list(map(orjson.dumps, rows)))
    assert batch.table.equals(same.table)
    assert {name: cells.to_pylist() for name, cells in batch.tokens.items()} == {
        name: cells.to_pylist() for name, cells in same.tokens.items()
    }


def test_a_kafka_partition_gives_the_lines_of_the_command_line(by_command, folder, policy):
    from reticent.connectors.kafka.session import OwnedShard, Session, Settings
    from reticent.engine.rng import Rng
    from reticent.publication.stream import StreamPublication

    parts, buried = [], []
    session = Session.__new__(Session)
    session._settings = Settings()
    session._job = SimpleNamespace(
        source=SimpleNamespace(topic="in"), store_dead_letters=buried.extend, partition_check=None
    )
    session.shards = {0: OwnedShard(StreamPublication(policy, rng=Rng.from_seed(SEED)), 0)}
    values = [line.encode() for line in LINES]
    for first in range(0, len(values), 77):
        part = values[first : first + 77]
        parts.append(session._release(0, np.arange(first, first + len(part)), part))
    (codebook,) = [value + b"\n" for part in parts for value in part.codebook_lines]
    lines = [part.lines for part in parts]
    assert codebook == (folder / "cli.ndjson.codebook.json").read_bytes()
    assert b"".join(lines) == by_command[0]
    assert {int(place.rpartition("/")[2]): reason for place, reason, _ in buried} == by_command[1]


def test_a_shard_of_spark_gives_the_lines_of_the_command_line(by_command, policy):
    pytest.importorskip("pandas")
    from reticent.connectors.spark.streams import release_blocks
    from reticent.engine.rng import Rng
    from reticent.publication.stream import StreamPublication

    shard, state, first = StreamPublication(policy, rng=Rng.from_seed(SEED)), None, 0
    shown, refused = [], {}
    for number, line in enumerate(LINES):  # one by one: a shard puts the rows of a micro-batch in an order of its own
        if state is not None:
            shard = StreamPublication(policy, rng=Rng.from_seed(SEED), state=state)
        frame, first = release_blocks(shard, [line], first, 0)
        state = shard.snapshot() if number % 100 == 99 else None
        for kind, text in zip(frame["kind"], frame["lines"], strict=True):
            if kind == "line":
                shown += text.split("\n")
            else:
                refused[number] = text.partition("\t")[0]
    assert "".join(line + "\n" for line in shown).encode() == by_command[0]
    assert refused == by_command[1]


def test_what_comes_out_verifies_and_has_no_other_key(by_command, by_http, folder, policy):
    (folder / "http.ndjson").write_bytes(by_http[0])
    for name in ("cli.ndjson", "http.ndjson"):
        result = verify(folder / name, policy)
        assert result.holds, result.refuted
    for line in map(orjson.loads, by_command[0].splitlines() + by_http[0].splitlines()):
        assert set(line) == KEYS[line["type"]]
        assert line["type"] == "group" or (set(line["quasi"]), set(line["plain"])) == ({"age", "town"}, {"note"})
