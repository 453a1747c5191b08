"""A topic that is not keyed by person, on a real broker: a person in two partitions was veiled twice over one true value."""

from __future__ import annotations

import json
import threading

import numpy as np
import pyarrow as pa
import pytest
from kafka_topics import Topics

from reticent.connectors.kafka import Settings, run_kafka
from reticent.connectors.kafka.partition_check import PartitionCheck, murmur2
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.store import Store

VALUES = [f"v{v:02d}" for v in range(20)]
WARDS = "abcd"
PERSONS, VISITS, L = 150, 6, 4


@pytest.fixture
def policy(tmp_path):
    dice = np.random.default_rng(1)
    rows = [f"{ward},{value},{dice.integers(5, 15)}\n" for ward in WARDS for value in VALUES]
    (tmp_path / "prior.csv").write_text("ward,value,count\n" + "".join(rows))
    columns = {"id": "identifier", "ward": "quasi", "line": "plain", "ill": "sensitive"}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": L}, "prior": {"file": "prior.csv"}}
    return Policy.from_dict(rules | {"stream": {"method": "veil"}}, base=tmp_path)


def visits(first: int = 0) -> list[dict]:
    """Everybody comes several times with the same illness, to one ward or another; the line tells the reader who it is."""
    dice = np.random.default_rng(2)
    true_values = dice.integers(len(VALUES), size=PERSONS)
    return [
        {"id": f"p{who}", "ward": WARDS[dice.integers(4)], "line": first + at, "ill": VALUES[true_values[who]]}
        for at, who in enumerate(np.tile(np.arange(PERSONS), VISITS).tolist())
    ]


def send(topics: Topics, records: list[dict], key, **settings) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topics.broker.address, "linger.ms": 0} | settings)
    for at, record in enumerate(records):
        how = {"partition": at // PERSONS % topics.partitions} if key is None else {"key": key(record)}
        producer.produce(topics.source, json.dumps(record).encode(), **how)
    assert producer.flush(60) == 0


def work(topics: Topics, wanted: Policy, store: Store, **more):
    settings = Settings(batch=50, linger=0.02, session=3.0)
    urls = topics.url(topics.source), topics.url(topics.sink)
    return run_kafka(*urls, wanted, store, settings=settings, until_end=True, **more)


def found(topics: Topics, records: list[dict]) -> float:
    """The share of persons of whom a reader who lays all their lines side by side keeps one value."""
    who = {record["line"]: record["id"] for record in records}
    left: dict[str, set[str]] = {}
    for lines in topics.read().values():
        for line in lines:
            if line["type"] == "record":
                name, offered = who[line["plain"]["line"]], set(line["candidates"])
                left[name] = left.get(name, offered) & offered
    return float(np.mean([len(values) == 1 for values in left.values()])) if left else 0.0


def name(record: dict) -> str:
    return record["id"]


@pytest.mark.parametrize(
    "key", [None, lambda record: record["ward"], lambda record: f" {record['id']}"], ids=["none", "ward", "blank"]
)
def test_a_topic_that_is_not_keyed_by_person_is_refused_before_it_discloses(kafka, tmp_path, policy, key):
    topics, records = Topics(kafka, 4), visits()
    send(topics, records, key)
    with Store.open(tmp_path / "store.db") as store:
        for _ in range(2):  # started again, it stops again
            with pytest.raises(DataError, match="belong in another") as told:
                work(topics, policy, store)
            assert "Key the topic by person" in str(told.value)
            assert not any(record["id"] in str(told.value) for record in records[10:])
    assert found(topics, records) == 0.0


@pytest.mark.parametrize("partitioner", ["consistent_random", "murmur2_random"])
def test_a_topic_that_is_keyed_by_person_is_published(kafka, tmp_path, policy, partitioner):
    topics, records = Topics(kafka, 3), visits()
    send(topics, records, name, partitioner=partitioner)
    with Store.open(tmp_path / "store.db") as store:
        assert work(topics, policy, store).published == len(records)
        assert work(topics, policy, store).published == 0
        other = "murmur2_random" if partitioner == "consistent_random" else "consistent_random"
        send(topics, visits(len(records)), name, partitioner=other)
        with pytest.raises(DataError, match="belong in another"):  # two producers that do not agree
            work(topics, policy, store)
    assert found(topics, [*records, *visits(len(records))]) == 0.0


def test_workers_agree_on_one_partitioner(kafka, tmp_path, policy):
    """Each partition by itself looks keyed: one by this partitioner, the other by that."""
    topics, records = Topics(kafka, 2), visits()
    send(topics, records, name)
    with Store.open(tmp_path / "store.db") as store:
        work(topics, policy, store)
        (stream,) = store.publishers()
        late = PartitionCheck(store, stream, "id", 2)
        letters = np.frombuffer(b"".join(b"q%03d" % i for i in range(200)), np.uint8).reshape(-1, 4)
        there = [letters[i].tobytes().decode() for i in np.flatnonzero(murmur2(letters) % 2 == 1)]
        with pytest.raises(DataError, match="Partition 1"):
            late.check(1, pa.chunked_array([there]))


def test_one_partition_needs_no_key(kafka, tmp_path, policy):
    topics, records = Topics(kafka, 1), visits()
    send(topics, records, None)
    with Store.open(tmp_path / "store.db") as store:
        assert work(topics, policy, store).published == len(records)
    assert found(topics, records) == 0.0


def test_two_workers_refuse_it_both(kafka, tmp_path, policy):
    topics, told = Topics(kafka, 2), []
    send(topics, visits(), None)

    def worker() -> None:
        with Store.open(tmp_path / "store.db") as store:
            try:
                work(topics, policy, store)
            except DataError as error:
                told.append(str(error))

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(told) == 2
