"""Batches that come together are placed as one, and each keeps its records, its key and its answer."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import orjson
import pyarrow as pa
import pytest
from serving import NDJSON, InThread, feed_policy, lines

from reticent.datasets import feed
from reticent.publication.stream_publication import StreamPublication
from reticent.service import live_stream, writer
from reticent.service.demo import rename_persons
from reticent.service.live_stream import LiveStream, split_lines

FEEDS, SIZE = 12, 7


@pytest.fixture
def delayed(tmp_path, monkeypatch):
    """A server whose first commit waits, so that everything sent meanwhile comes together; says how often it placed records."""
    running, go_on, placed = InThread(tmp_path), threading.Event(), []
    flush, take = LiveStream.flush, StreamPublication.take

    def waiting(self, tx):
        go_on.wait(30)
        flush(self, tx)

    def counted(self, batch, seqs=None):
        placed.append(batch.total)
        return take(self, batch, seqs)

    monkeypatch.setattr(LiveStream, "flush", waiting)
    monkeypatch.setattr(StreamPublication, "take", counted)
    try:
        yield running, go_on, placed
    finally:
        go_on.set()
        running.close()


def batches(*, mixed: bool = False) -> list[list[dict]]:
    rows = rename_persons(feed.generate(FEEDS * SIZE, 5), "T").to_pylist()
    marked = [row | {"admitted": f"{n // SIZE}/{n % SIZE}"} for n, row in enumerate(rows)]
    if mixed:  # one feed writes numbers where another writes text
        marked = [row | {"admitted": n} if n // SIZE % 2 else row for n, row in enumerate(marked)]
    return [marked[start : start + SIZE] for start in range(0, len(marked), SIZE)]


def sent(running, go_on, bodies: dict[str, bytes]) -> dict[str, object]:
    """Sends all at once; they wait behind a first batch."""

    def push(key: str, body: bytes):
        with running.client() as client:
            headers = {"Content-Type": NDJSON, "Idempotency-Key": key.rstrip("+")}
            return client.post("/streams/s/records", content=body, headers=headers)

    with ThreadPoolExecutor(len(bodies) + 1) as pool:
        ahead = pool.submit(push, "ahead", lines(rename_persons(feed.generate(1, 9), "A")))
        while not running.hub.writer.waiting and not live_group(running):
            time.sleep(0.01)
        answers = {key: pool.submit(push, key, body) for key, body in bodies.items()}
        while running.hub.writer.waiting < len(bodies):
            time.sleep(0.01)
        go_on.set()
        assert ahead.result().status_code in (200, 202)
        return {key: answer.result() for key, answer in answers.items()}


def live_group(running) -> bool:
    return bool(running.hub.stream("s")._queue)


def ndjson(rows: list[dict]) -> bytes:
    return b"\n".join(map(orjson.dumps, rows))


@pytest.mark.parametrize(("method", "mixed"), [("veil", False), ("veil", True), ("delay-free", False)])
def test_each_feed_gets_its_own_records(delayed, method, mixed):
    running, go_on, placed = delayed
    with running.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy(method=method)}).raise_for_status()
        parts = batches(mixed=mixed)
        bodies = {f"key{n}": ndjson(rows) for n, rows in enumerate(parts)}
        answers = sent(running, go_on, bodies)
        assert placed == [1, FEEDS * SIZE]
        groups: set[str] = set()
        for (key, answer), rows in zip(answers.items(), parts, strict=True):
            shown = list(map(orjson.loads, answer.content.splitlines()))
            groups |= {line["group"] for line in shown if line["type"] == "group"}
            records = [line for line in shown if line["type"] != "group"]
            assert [line["plain"]["admitted"] for line in records] == [row["admitted"] for row in rows]
            assert method == "veil" or shown[-1]["type"] == "tuple"
            again = client.post(
                "/streams/s/records", content=bodies[key], headers={"Content-Type": NDJSON, "Idempotency-Key": key}
            )
            assert (again.content, again.headers["reticent-replayed"]) == (answer.content, "true")
        whole = client.get("/streams/s/records", params={"cursor": 0}).content
        assert whole == b"".join(sorted((a.content for a in answers.values()), key=whole.index))
        seqs = [record["seq"] for record in map(orjson.loads, whole.splitlines()) if "seq" in record]
        assert seqs == list(range(1, 1 + FEEDS * SIZE))


def test_castle_delays_what_comes_together(delayed):
    running, go_on, placed = delayed
    policy = feed_policy(method="castle")
    policy["policy"]["privacy"]["k"] = 5
    with running.client() as client:
        client.post("/streams", json={"name": "s", **policy}).raise_for_status()
        answers = sent(running, go_on, {f"key{n}": ndjson(rows) for n, rows in enumerate(batches())})
        assert placed == [1, FEEDS * SIZE]
        assert {(a.status_code, a.content, a.headers["reticent-pending"]) for a in answers.values()} == {
            (202, b"", str(1 + FEEDS * SIZE))
        }


def test_one_that_cannot_be_released_does_not_harm_the_others(delayed):
    """A batch that is not readable is refused alone; a person of another publication undoes the group, and all others go in."""
    running, go_on, _ = delayed
    other = feed_policy()
    other["policy"]["privacy"] = {"l": 5}
    with running.client() as client:
        for name, policy in (("s", feed_policy()), ("other", other)):
            client.post("/streams", json={"name": name, **policy}).raise_for_status()
        go_on.set()
        taken = lines(rename_persons(feed.generate(SIZE, 6), "O"))
        headers = {"Content-Type": NDJSON, "Idempotency-Key": "there"}
        client.post("/streams/other/records", content=taken, headers=headers).raise_for_status()
        go_on.clear()
        bodies = {f"key{n}": ndjson(rows) for n, rows in enumerate(batches())}
        bodies |= {"key0": taken, "broken": b'{"no": "record"}', "key3+": bodies["key3"]}
        answers = sent(running, go_on, bodies)
        codes = {key: answer.status_code for key, answer in answers.items()}
        assert codes == dict.fromkeys(bodies, 200) | {"key0": 409, "broken": 422}
        assert answers["key3"].content == answers["key3+"].content
        shown = client.get("/streams/s/records", params={"cursor": 0}).content.splitlines()
        marks = [orjson.loads(line)["plain"]["admitted"] for line in shown]
        assert sorted(marks) == sorted(row["admitted"] for rows in batches()[1:] for row in rows)


def test_large_groups_are_placed_in_parts(delayed, monkeypatch):
    running, go_on, placed = delayed
    monkeypatch.setattr(live_stream, "_MAX_RECORDS", 3 * SIZE)
    with running.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
        sent(running, go_on, {f"key{n}": ndjson(rows) for n, rows in enumerate(batches())})
    assert placed == [1, *[3 * SIZE] * (FEEDS // 3)]


def test_lines_are_parted_by_their_records():
    group, line = b'{"type":"group","group":1}\n', b'{"type":"tuple","seq":1}\n'
    whole = group + line + line + group + group + line + line
    assert split_lines(whole, [1, 2, 1]) == [group + line, line + group + group + line, line]
    assert split_lines(b"", [3, 4]) == [b"", b""]
    assert split_lines(whole, [4]) == [whole]


class _Step:
    owner = None

    def check(self) -> None:
        pass

    def apply(self, _):
        return None

    on_commit = drop = check


def test_who_comes_alone_waits_for_nobody_and_who_came_in_company_does(tmp_path, monkeypatch):
    from reticent.store import Store

    monkeypatch.setattr(writer, "_GROUP_WAIT", 0.5)
    with Store.open(tmp_path / "store.db") as store:
        writing = writer.Writer(store)
        sizes, commit = [], writing._commit
        monkeypatch.setattr(writing, "_commit", lambda group: (sizes.append(len(group)), commit(group)))
        began = time.perf_counter()
        for _ in range(5):
            writing.submit(_Step()).result()
        assert time.perf_counter() - began < 0.5
        with store.transaction():  # nobody else can write meanwhile
            alone = writing.submit(_Step())
            time.sleep(0.1)
            pair = [writing.submit(_Step()) for _ in range(2)]
        alone.result()
        for one in pair:
            one.result()
        late = writing.submit(_Step())
        time.sleep(0.1)
        later = writing.submit(_Step())
        late.result()
        later.result()
        writing.close()
    assert sizes == [1, 1, 1, 1, 1, 1, 2, 2]


def test_tables_of_other_types_are_joined_as_json():
    from reticent.policy import Policy
    from reticent.publication.records import RecordReader
    from reticent.service.live_stream import concat_batches

    columns = {"id": "identifier", "age": {"role": "quasi"}, "d": "sensitive"}
    policy = Policy.model_validate({"version": 1, "columns": columns, "privacy": {"l": 2}})
    reader = RecordReader(policy)
    first = reader.ndjson(b'{"id":"a","age":5,"d":"x"}\n{"id":"b","age":null,"d":"x"}')
    second = reader.table(pa.table({"id": ["c"], "age": ["5"], "d": ["y"]}))
    both = concat_batches([first, second])
    assert both.table.column("age").to_pylist() == ["5", None, "5"]
    assert both.tokens["age"].to_pylist() == ["5", None, '"5"']
    assert (both.total, both.rows.tolist()) == (3, [0, 1, 2])


def test_the_figures_of_a_quiet_stream_are_those_of_its_last_record(tmp_path):
    """Batches that come within a moment are looked at once; when no more come, all of them are."""
    running, table = InThread(tmp_path), rename_persons(feed.generate(400, 5), "U")
    try:
        with running.client() as client:
            client.post("/streams", json={"name": "ward"} | feed_policy()).raise_for_status()
            for start in range(0, 400, 100):
                headers = {"Content-Type": NDJSON, "Idempotency-Key": f"k{start}"}
                client.post("/streams/ward/records", content=lines(table.slice(start, 100)), headers=headers)
            persons, until = len(table["patient_id"].unique()), time.monotonic() + 30
            while (seen := client.get("/streams/ward").json()["metrics"]["persons"]) != persons:
                assert time.monotonic() < until, (seen, persons)
    finally:
        running.close()
