"""Shards: the same lines however the input is cut, after a replay, and after a restart."""

from __future__ import annotations

import json
import urllib.request
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import stream_feed

from reticent.connectors.kafka.address import Address
from reticent.connectors.kafka.metrics import Metrics
from reticent.connectors.kafka.state import CHUNK, _PartitionReader, state_messages
from reticent.connectors.shards import check_shards, pin_shards, shard_of
from reticent.connectors.spark.streams import unpack_policy
from reticent.engine.rng import Rng
from reticent.errors import ConnectorError, PolicyError, StateError
from reticent.policy.bundle import Bundle
from reticent.publication.records import RecordReader
from reticent.publication.stream import StreamPublication
from reticent.store import Store

KEY = Rng.from_seed(5)


def shard(policy, number: int, state: bytes | None = None, key: Rng = KEY) -> StreamPublication:
    return StreamPublication(policy, rng=key, shard=number, state=state)


def take(one: StreamPublication, records: list[dict], first: int = 0):
    batch = one.reader.objects(list(map(json.dumps, records)))
    return one.take(batch, np.arange(first, first + len(records), dtype=np.uint64))


def lines(one: StreamPublication, records: list[dict], sizes: list[int]) -> list[bytes]:
    out, first = [], 0
    for size in sizes:
        out += take(one, records[first : first + size], first).lines.splitlines()
        first += size
    return out


def test_batches_do_not_change_what_is_published(tmp_path):
    policy, records = stream_feed.policy(tmp_path), stream_feed.records(300)
    whole = lines(shard(policy, 3), records, [300])
    assert lines(shard(policy, 3), records, [1, 99, 50, 150]) == whole
    assert lines(shard(policy, 4), records, [300]) == whole  # the shards share their parameters
    codebook = json.loads(shard(policy, 3).codebook())
    stream_feed.check([codebook, *map(json.loads, whole)], records, policy, tmp_path, 3)


def test_values_of_any_type_are_read_alike_in_every_batch(tmp_path):
    policy = stream_feed.policy(tmp_path)
    records = [
        dict(record, age=[record["age"], None, "x", 1.5][i % 4]) for i, record in enumerate(stream_feed.records(80))
    ]
    assert lines(shard(policy, 0), records, [80]) == lines(shard(policy, 0), records, [1] * 80)


def test_snapshot_and_journal_bring_a_shard_back(tmp_path):
    policy, records = stream_feed.policy(tmp_path), stream_feed.records(300)
    first = shard(policy, 1)
    before = lines(first, records[:100], [100])
    snapshot = first.snapshot()
    taken = take(first, records[100:200], 100)
    again = shard(policy, 1, snapshot)
    again.replay(taken.journal)
    rest = take(again, records[200:], 200).lines.splitlines()
    assert before + taken.lines.splitlines() + rest == lines(shard(policy, 1), records, [300])
    with pytest.raises(StateError, match="another key"):
        shard(policy, 1, snapshot, Rng.from_seed(6))
    with pytest.raises(StateError, match="another key"):
        shard(policy, 2, snapshot)
    with pytest.raises(StateError, match="corrupt"):
        shard(policy, 1, snapshot[:-3])


def test_shards_refuse_pending_records(tmp_path):
    check_shards(stream_feed.policy(tmp_path))
    with pytest.raises(PolicyError):
        check_shards(stream_feed.policy(tmp_path, "castle"))


@pytest.mark.parametrize("method", ["veil", "delay-free"])
def test_the_number_of_shards_is_pinned_where_persons_are_remembered(tmp_path, method):
    """In another shard the next record of a person would be a first event again, with new candidates."""
    policy = stream_feed.policy(tmp_path, method)
    with Store.open(tmp_path / "store.db") as store:
        store.register("x", policy_hash=policy.hash)
        pin_shards(policy, store, "x", 4)
        pin_shards(policy, store, "x", 4)
        with pytest.raises(StateError, match="4 shards") if method == "veil" else nullcontext():
            pin_shards(policy, store, "x", 5)


def test_persons_are_spread_by_a_key():
    spread = [shard_of(f"p{i}", 8, b"one") for i in range(800)]
    assert min(np.bincount(spread, minlength=8)) > 60
    assert spread != [shard_of(f"p{i}", 8, b"two") for i in range(800)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "not JSON"),
        (None, "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b'{"person": "a", "name": "b"}', "a field without a role in the policy"),
        (b'{"person": "a"}', "none of the policy's columns"),
        (b'{"person": "a", "age": [1]}', "a field that is not a single value"),
        (b'{"age": 1}', "no person"),
    ],
)
def test_a_malformed_record_is_reported_without_its_values(tmp_path, value, reason):
    (bad,) = RecordReader(stream_feed.policy(tmp_path)).objects([value]).rejected
    assert bad == (0, reason, value or b"")


def test_addresses():
    address = Address.parse("kafka://one:9092,two:9092/topic?security.protocol=SSL")
    assert address.client["bootstrap.servers"] == "one:9092,two:9092"
    assert address.client["security.protocol"] == "SSL"
    for wrong in ("kafka://one", "http://one/topic", "kafka:///topic", "kafka://one/a/b"):
        with pytest.raises(PolicyError):
            Address.parse(wrong)


def test_secrets_come_from_the_environment_or_a_file_and_never_stand_in_an_address(tmp_path, monkeypatch):
    (tmp_path / "password").write_text("hidden\n")
    (tmp_path / "client.conf").write_text("# ours\nsasl.username = me\nsasl.password=hid=den\n")
    monkeypatch.setenv("PASSWORD", "hidden")
    for query in ("sasl.password=env:PASSWORD", f"sasl.password=file:{tmp_path}/password"):
        address = Address.parse(f"kafka://one:9092/topic?{query}")
        assert address.client["sasl.password"] == "hidden"
        assert "hidden" not in repr(address)
    settings = Address.parse(f"kafka://one:9092/topic?config={tmp_path}/client.conf&client.id=x").settings
    assert settings == {"sasl.username": "me", "sasl.password": "hid=den", "client.id": "x"}
    (tmp_path / "wrong.conf").write_text("sasl.password hidden\n")
    wrong = ["sasl.password=hidden", "ssl.key.password=hidden", "sasl.password=env:NOWHERE", "config=nowhere"]
    for query in (*wrong, "sasl.password=file:nowhere", f"config={tmp_path}/wrong.conf"):
        with pytest.raises(PolicyError) as refused:
            Address.parse(f"kafka://one:9092/topic?{query}")
        assert "hidden" not in str(refused.value)


def test_a_worker_serves_its_metrics():
    shard = SimpleNamespace(engine=SimpleNamespace(metrics={"persons": 7, "strange": 1}))
    worker = SimpleNamespace(published=12, dead=3, shards={4: shard}, positions=lambda: {4: 1_000_000_000_001})
    with Metrics("0") as metrics:
        metrics.update(worker)
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            text = answer.read().decode()
    assert "# TYPE reticent_kafka_records_total counter\nreticent_kafka_records_total 12\n" in text
    assert 'reticent_kafka_position{shard="4"} 1000000000001\n' in text
    assert 'reticent_kafka_persons{shard="4"} 7\n' in text
    assert "strange" not in text
    for place in ("x", "127.0.0.1:99999"):
        with pytest.raises(ConnectorError):
            Metrics(place)


class Message:
    """A message of the state topic."""

    def __init__(self, value: bytes, headers: list) -> None:
        self._value, self._headers = value, headers

    def value(self) -> bytes:
        return self._value

    def headers(self) -> list:
        return self._headers


def test_the_state_topic_gives_the_last_whole_snapshot_and_the_journal_behind_it():
    reader, big = _PartitionReader(), bytes(range(256)) * (CHUNK // 100)
    parts = state_messages("snapshot", big, 7)
    assert len(parts) > 2
    for part in [
        *state_messages("journal", b"old", 5),
        *parts,
        *state_messages("journal", b"", 8),
        *state_messages("journal", b"new", 9),
    ]:
        reader.read(Message(*part))
    assert (reader.saved.snapshot, reader.saved.journal, reader.saved.position) == (big, [b"new"], 9)
    for part in parts[1:]:  # its first chunk is pruned: what is left of it is no snapshot
        reader.read(Message(*part))
    assert reader.saved.position == 9


def test_a_policy_travels_with_its_files(tmp_path):
    policy = stream_feed.policy(tmp_path)
    bundle = Bundle.pack(policy).to_bytes()
    (tmp_path / "prior.csv").unlink()
    opened = unpack_policy(bundle)
    assert opened.base != tmp_path
    assert (opened.path("prior.csv").stat().st_mode & 0o777, opened.base.stat().st_mode & 0o777) == (0o600, 0o700)
    assert opened.hash == unpack_policy(Bundle.pack(opened).to_bytes()).hash
    outside = policy.model_copy(update={"prior": policy.prior.model_copy(update={"file": "../x.csv"})})
    with pytest.raises(PolicyError):
        Bundle.pack(
            type(policy).from_dict(
                outside.model_dump(mode="json", exclude_defaults=True, warnings=False), base=tmp_path
            )
        )
