"""Streams over HTTP: the released form in the same answer, exactly once, through kills and retries."""

from __future__ import annotations

import io
import os
import secrets
import threading
from collections import Counter

import httpx
import orjson
import pyarrow as pa
import pytest
from serving import NDJSON, InProcess, InThread, feed_policy, lines

from reticent.datasets import feed
from reticent.publication import stream_publication
from reticent.service import live_stream
from reticent.service import tokens as tokens_module
from reticent.service.demo import rename_persons
from reticent.service.live_stream import LiveStream
from reticent.service.tokens import Role, Tokens
from reticent.store import snapshot_writer

ARROW = "application/vnd.apache.arrow.stream"

KILLS = int(os.environ.get("RETICENT_HTTP_KILLS", "2"))
"""`make stress` kills 60 times."""


def arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def push(client: httpx.Client, name: str, body: bytes, key: str | None = None, kind: str = NDJSON) -> httpx.Response:
    headers = {"Content-Type": kind, "Idempotency-Key": key or secrets.token_hex(8)}
    return client.post(f"/streams/{name}/records", content=body, headers=headers)


def tuples(body: bytes) -> list[dict]:
    return [record for record in map(orjson.loads, body.splitlines()) if record["type"] in ("tuple", "record")]


@pytest.fixture(scope="module")
def stream(server):
    with server.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
        yield client


def test_ndjson_and_arrow_come_back_released(server, stream):
    table = feed.generate(40, 1)
    with server.client(Role.FEED) as pusher:
        first = push(pusher, "s", lines(table.slice(0, 20)))
        second = push(pusher, "s", arrow(table.slice(20)), kind=ARROW)
    assert first.status_code == second.status_code == 200
    for answer, part in ((first, table.slice(0, 20)), (second, table.slice(20))):
        shown = tuples(answer.content)
        assert [record["quasi"]["sex"] for record in shown] == part.column("sex").to_pylist()
        assert {len(record["candidates"]) for record in shown} == {10}
        assert all("diagnosis" not in record["quasi"] and "patient_id" not in record["quasi"] for record in shown)


def test_the_codebook_is_there_before_the_first_line(server, stream):
    with server.client(Role.ANALYST) as reader:
        book = reader.get("/streams/s/codebook")
    assert (book.status_code, book.json()["type"], book.json()["veil"]["l"]) == (200, "codebook", 10)
    assert {column["name"]: column["role"] for column in book.json()["columns"]}["diagnosis"] == "sensitive"


def test_a_second_parameter_set_takes_other_persons_only(stream):
    other = feed_policy()
    other["policy"]["privacy"] = {"l": 5}
    assert stream.post("/streams", json={"name": "five", **other}).status_code == 201
    assert push(stream, "s", lines(feed.generate(30, 2))).status_code == 200
    answer = push(stream, "five", lines(feed.generate(30, 2)))
    assert answer.status_code == 409
    assert "already released from this store" in answer.text
    assert push(stream, "five", lines(rename_persons(feed.generate(30, 2), "Q"))).status_code == 200


def test_a_key_is_used_once(stream):
    table = feed.generate(10, 2)
    one = push(stream, "s", lines(table), "again")
    two = push(stream, "s", lines(table), "again")
    assert one.content == two.content
    assert (one.headers["reticent-replayed"], two.headers["reticent-replayed"]) == ("false", "true")
    other = push(stream, "s", lines(feed.generate(9, 2)), "again")
    assert other.status_code == 409


def test_cursor_and_events_tell_the_same(server, stream):
    push(stream, "s", lines(feed.generate(10, 3)))
    with server.client(Role.ANALYST) as reader:
        whole, cursor = b"", "-1"
        while True:
            page = reader.get("/streams/s/records", params={"cursor": cursor, "limit": 1})
            if page.headers["reticent-cursor"] == cursor:
                break
            whole, cursor = whole + page.content, page.headers["reticent-cursor"]
        batches = int(cursor) + 1
        heard = reader.get("/streams/s/events", params={"limit": batches}).text
        data = "".join(line[6:] + "\n" for line in heard.splitlines() if line.startswith("data: "))
        assert data.encode() == whole
        rest = reader.get("/streams/s/events", params={"limit": 1}, headers={"Last-Event-ID": str(batches - 2)}).text
    assert f"id: {batches - 1}\n" in rest


def test_a_follower_hears_what_comes_later(server, stream):
    cursor = stream.get("/streams/s").json()["cursor"]
    with (
        server.client(Role.ANALYST) as reader,
        reader.stream("GET", "/streams/s/events", params={"cursor": cursor, "limit": 1}) as answer,
    ):
        found = answer.iter_lines()
        next(found)
        push(stream, "s", lines(feed.generate(3, 4)))
        text = "\n".join(found)
    assert f"id: {cursor + 1}" in text
    assert text.count("data: {") >= 3


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", NDJSON, 422),
        (b"not json", NDJSON, 422),
        (b"[1]", NDJSON, 422),
        (b'{"age": {"deep": 1}}', NDJSON, 422),
        (b'{"surprise": "canary-cell"}', NDJSON, 422),
        (b'{"age": 1}', NDJSON, 422),  # no person
        (b'{"age": 1e400}', NDJSON, 422),
        (b'{"age": 99999999999999999999999}', NDJSON, 422),
        (lines(feed.generate(3, 5)) + b"\n{}\n" + lines(feed.generate(3, 6)), NDJSON, 422),  # one of seven
        (b"canary-cell", ARROW, 422),
        (arrow(pa.table({"canary-cell": [1]})), ARROW, 422),
        (b"{}", "text/plain", 415),
        (b"{}", "application/json", 415),
    ],
)
def test_bad_batches_change_nothing_and_quote_nothing(stream, body, kind, status):
    before = stream.get("/streams/s").json()["input"]
    answer = push(stream, "s", body, kind=kind)
    assert answer.status_code == status, answer.text
    assert b"1e400" not in answer.content
    if b"canary" in body and kind == NDJSON:
        assert "canary" not in answer.text
    assert stream.get("/streams/s").json()["input"] == before
    assert push(stream, "s", lines(feed.generate(2, 5))).status_code == 200


def test_a_refused_batch_does_not_confuse_the_journal(tmp_path):
    """A batch refused after the engine met a new value: the codes after a restart are the codes before it."""
    rows = feed.generate(30, 6).to_pylist()
    strange = [rows[0] | {"diagnosis": "never met", "patient_id": None}]
    later = [row | {"diagnosis": "met later"} for row in rows[10:20]]

    def all_of(records):
        return b"\n".join(map(orjson.dumps, records))

    first = InThread(tmp_path)
    with first.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy(method="delay-free")}).raise_for_status()
        assert push(client, "s", all_of(rows[:10])).status_code == 200
        assert push(client, "s", all_of(strange)).status_code == 422
        assert push(client, "s", all_of(later), "k").status_code == 200
        labels = list(first.hub.stream("s").publication.engine.values.labels)
    first.close()
    second = InThread(tmp_path)
    try:
        assert list(second.hub.stream("s").publication.engine.values.labels) == labels
    finally:
        second.close()


@pytest.mark.parametrize("method", ["veil", "delay-free"])
def test_a_state_written_while_records_come_is_never_behind_them(tmp_path, monkeypatch, method):
    """With a journal and pieces of a few records: a reader of the store after any commit has the engine's state."""
    monkeypatch.setattr(stream_publication, "_MAX_JOURNAL", 3_000)
    monkeypatch.setattr(snapshot_writer, "_PIECE", 2_000)
    begun = []
    monkeypatch.setattr(
        live_stream, "SnapshotWriter", lambda *args: begun.append(args) or snapshot_writer.SnapshotWriter(*args)
    )
    running = InThread(tmp_path)
    try:
        with running.client() as client:
            client.post("/streams", json={"name": "s", **feed_policy(method=method)}).raise_for_status()
            stream = running.hub.stream("s")
            assert running.hub.store.snapshot(stream.publisher).deltas == ()  # before the first record
            table = feed.generate(2_000, 9)
            for i in range(50):
                assert push(client, "s", lines(table.slice(40 * i, 40)), f"k{i}").status_code == 200
                again = LiveStream("s", stream.policy, running.hub.store)
                assert again.publication.engine.snapshot() == stream.publication.engine.snapshot()
    finally:
        running.close()
    assert len(begun) >= 2


def test_a_batch_sent_again_after_a_restart_does_not_mix_up_state_and_journal(tmp_path, monkeypatch):
    """It stores nothing, so nobody knows yet which change is the last; the state must wait for the next batch."""
    table = feed.generate(1_000, 9)
    first = InThread(tmp_path)
    with first.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
        for i in range(5):
            assert push(client, "s", lines(table.slice(200 * i, 200)), f"k{i}").status_code == 200
    first.close()
    monkeypatch.setattr(stream_publication, "_MAX_JOURNAL", 0)
    second = InThread(tmp_path)
    try:
        with second.client() as client:
            assert push(client, "s", lines(table.slice(0, 200)), "k0").headers["reticent-replayed"] == "true"
            for i in range(5):
                assert push(client, "s", lines(feed.generate(10, i))).status_code == 200
            stream = second.hub.stream("s")
            assert second.hub.store.snapshot(stream.publisher).deltas != ()
            assert (
                LiveStream("s", stream.policy, second.hub.store).publication.engine.snapshot()
                == stream.publication.engine.snapshot()
            )
    finally:
        second.close()


def test_castle_delays_and_subscribers_get_it(server):
    policy = feed_policy(method="castle", delta=20)
    policy["policy"]["privacy"] = {"k": 3}
    with server.client() as client:
        client.post("/streams", json={"name": "delayed", **policy}).raise_for_status()
        table = rename_persons(feed.generate(200, 7), "C")  # others of this server have the same names
        answers = [push(client, "delayed", lines(table.slice(i * 50, 50)), f"k{i}") for i in range(4)]
        assert {answer.status_code for answer in answers} == {202}
        assert {push(client, "delayed", lines(table.slice(0, 50)), "k0").status_code} == {202}
        shown = [orjson.loads(line) for line in client.get("/streams/delayed/records").content.splitlines()]
        status = client.get("/streams/delayed").json()
    assert status["input"] == 200
    assert len(shown) == status["published"]
    assert {record["type"] for record in shown} == {"record"}


@pytest.mark.timeout(3600)
def test_killed_in_the_middle_nothing_is_lost_or_doubled(tmp_path):
    """Feeds push while the server is killed and started again and again; every record comes out once, with its answer."""
    running = InProcess(tmp_path)
    feeds, turns, size = 6, 6 * KILLS, 5
    base = feed.generate(size, 8).to_pylist()
    answers: dict[str, bytes] = {}
    done = threading.Semaphore(0)

    def body(key: str) -> bytes:
        return b"\n".join(orjson.dumps(row | {"admitted": f"{key}/{n}"}) for n, row in enumerate(base))

    def one_feed(number: int) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {running.token}"}, timeout=30) as client:
            for turn in range(turns):
                key = f"{number}-{turn}"
                while key not in answers:
                    try:
                        client.base_url = f"http://127.0.0.1:{running.port}/api/v1"
                        answer = push(client, "s", body(key), key)
                        answer.raise_for_status()
                        answers[key] = answer.content
                    except httpx.HTTPError:
                        threading.Event().wait(0.05)
                done.release()

    try:
        with running.client() as client:
            client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
        threads = [threading.Thread(target=one_feed, args=(i,)) for i in range(feeds)]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            for _ in range(feeds * turns // (KILLS + 1)):
                done.acquire()
            running.kill()
            running.start()
        for thread in threads:
            thread.join()
        with running.client() as client:
            whole, cursor = b"", "-1"
            while True:
                page = client.get("/streams/s/records", params={"cursor": cursor, "limit": 1000})
                if page.headers["reticent-cursor"] == cursor:
                    break
                whole, cursor = whole + page.content, page.headers["reticent-cursor"]
            again = push(client, "s", body("0-0"), "0-0")
    finally:
        running.close()
    seen = Counter(record["plain"]["admitted"] for record in tuples(whole))
    assert seen == Counter({f"{key}/{n}": 1 for key in answers for n in range(size)})
    assert again.content == answers["0-0"]
    released = set(whole.splitlines())
    assert all(line in released for answer in answers.values() for line in answer.splitlines())
    seqs = sorted(record["seq"] for record in tuples(whole))
    assert seqs == list(range(feeds * turns * size))


def test_a_batch_without_a_key_is_refused(stream):
    answer = stream.post("/streams/s/records", content=lines(feed.generate(5, 9)), headers={"Content-Type": NDJSON})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "key"
    assert "same name when you send the batch again" in answer.json()["error"]["hint"]


def test_a_cursor_ahead_of_its_stream_is_refused(stream):
    push(stream, "s", lines(feed.generate(5, 10)))
    last = stream.get("/streams/s").json()["cursor"]
    here = stream.get("/streams/s/records", params={"cursor": last})
    assert here.status_code == 200
    assert not here.content
    for path in ("records", "events"):
        ahead = stream.get(f"/streams/s/{path}", params={"cursor": last + 1, "limit": 1})
        assert (ahead.status_code, ahead.json()["error"]["code"]) == (409, "ahead")
    epoch = here.headers["reticent-epoch"]
    assert stream.get("/streams/s/records", params={"epoch": epoch}).status_code == 200
    other = stream.get("/streams/s/records", params={"epoch": epoch + "1"})
    assert other.json()["error"]["code"] == "epoch"


def test_a_batch_that_takes_too_long_is_unknown_and_then_known(tmp_path, monkeypatch):
    """It is being released when the time is up: to say that nothing was changed would be a lie."""
    running, go_on = InThread(tmp_path, timeout=0.5), threading.Event()
    try:
        with running.client() as client:
            client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
            flush = LiveStream.flush
            monkeypatch.setattr(LiveStream, "flush", lambda self, tx: (go_on.wait(30), flush(self, tx))[1])
            body = lines(feed.generate(10, 2))
            begun, waiting = push(client, "s", body, "begun"), push(client, "s", body, "waiting")
            assert [answer.json()["error"]["code"] for answer in (begun, waiting)] == ["unknown", "busy"]
            go_on.set()
            again = push(client, "s", body, "begun")
            while again.status_code == 503:
                again = push(client, "s", body, "begun")
            assert again.headers["reticent-replayed"] == "true"
            shown = client.get("/streams/s/records").content
            assert len(tuples(shown)) == 10
    finally:
        go_on.set()
        running.close()


def test_events_end_with_their_token(server, stream, monkeypatch):
    """An open answer is no way past a revocation."""
    monkeypatch.setattr(tokens_module, "_CACHE_SECONDS", 0.0)
    text, token = Tokens(server.hub.store).create("short", Role.ANALYST)
    where, cursor = f"{server.root}/api/v1/streams/s/events", stream.get("/streams/s").json()["cursor"]
    headers = {"Authorization": f"Bearer {text}"}
    with httpx.stream("GET", where, params={"cursor": cursor}, headers=headers, timeout=20) as answer:
        said = answer.iter_text()
        assert next(said).startswith(": reticent")
        push(stream, "s", lines(rename_persons(feed.generate(3, 77), "V")))
        seen = ""
        while "event: batch" not in seen:
            seen += next(said)
        Tokens(server.hub.store).revoke(token.id)
        server.hub.tokens._cache.clear()
        push(stream, "s", lines(rename_persons(feed.generate(3, 78), "U")))
        rest = ""
        for part in said:  # it ends by itself
            rest += part
            assert "event: batch" not in rest


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 1\ncolumns: {age: quasi}\ncolumns: {age: plain}\n", "twice"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nversion: 1\n", "aliases"),
    ],
)
def test_a_policy_that_would_be_read_otherwise_is_refused(stream, text, told):
    """What the command line refuses in a policy's text, the service refuses."""
    answer = stream.post("/streams", json={"name": "t", "policy": text})
    assert answer.status_code in (400, 422)
    assert told in answer.json()["error"]["message"]
