"""How long released batches can be read: for ever by default, and nobody skips a gap unknowingly."""

from __future__ import annotations

import pytest
from serving import NDJSON, InThread, feed_policy, lines

from reticent.datasets import feed
from reticent.service import retention
from reticent.service.problems import ServiceError
from reticent.service.retention import Retention
from reticent.store import Store

HOUR, DAY = 3600, 24 * 3600


class Stream:
    """A stream's batches in a store, with a clock that the test sets."""

    def __init__(self, store: Store, days: float | None) -> None:
        self.store, self.now = store, 1_000_000 * HOUR
        self.retention = Retention("s", days, clock=lambda: self.now)
        self.retention.load(store)

    def release(self, batches: int, *, after: float = 0) -> None:
        self.now += after
        for _ in range(batches):
            with self.store.transaction() as tx:
                self.retention.record_batch(tx, tx.put_outbox("s", "ndjson", b"x"))

    @property
    def kept(self) -> list[int]:
        return [entry.number for entry in self.store.outbox("s")]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store.db") as opened:
        opened.register("s", policy_hash="p")
        with opened.lock("s"):
            yield opened


def test_without_a_limit_nothing_goes(store):
    stream = Stream(store, None)
    stream.release(3)
    stream.release(3, after=10_000 * DAY)
    assert stream.kept == list(range(6))


def test_old_batches_go_a_few_at_a_time_and_young_ones_stay(store):
    stream = Stream(store, 2)
    stream.release(20)
    stream.release(5, after=2 * DAY)  # the first ones may be a moment younger than two days
    assert stream.kept == list(range(25))
    stream.release(1, after=HOUR)
    assert stream.kept == list(range(retention._MAX_REMOVALS, 26))
    stream.release(3)
    assert stream.kept == list(range(20, 29))
    stream.release(1, after=DAY)
    assert stream.retention.oldest == stream.kept[0] == 20


def test_a_restart_goes_on_where_it_was(store):
    first = Stream(store, 1)
    first.release(20)
    first.release(1, after=2 * DAY)
    second = Stream(store, 1)
    second.now = first.now
    assert second.retention.oldest == first.retention.oldest == retention._MAX_REMOVALS
    second.release(2)
    assert second.kept == [20, 21, 22]


def test_a_limit_that_comes_later_takes_nothing_for_older_than_it_knows(store):
    Stream(store, None).release(5)
    later = Stream(store, 1)
    later.release(2)
    later.release(1, after=DAY)
    assert later.kept == list(range(8))
    later.release(1, after=HOUR)
    assert later.kept[0] == 7


def test_a_cursor_before_the_oldest_is_told(store):
    stream = Stream(store, 1)
    stream.release(4)
    stream.release(1, after=2 * DAY)
    assert stream.retention.oldest == 4
    stream.retention.check(3)
    with pytest.raises(ServiceError, match="before number 4") as told:
        stream.retention.check(2)
    assert told.value.status == 410
    assert "cursor=3" in told.value.hint


def test_subscribers_get_410_over_http(tmp_path):
    running = InThread(tmp_path, keep_days=1)
    try:
        with running.client() as client:
            client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
            for i in range(4):
                headers = {"Content-Type": NDJSON, "Idempotency-Key": f"k{i}"}
                body = lines(feed.generate(3, i))
                client.post("/streams/s/records", content=body, headers=headers).raise_for_status()
                if i == 2:
                    running.hub.stream("s").retention._clock = lambda: 2**32
            assert client.get("/streams/s").json()["oldest"] == 3
            for path in ("records", "events"):
                gone = client.get(f"/streams/s/{path}", params={"limit": 1})
                assert (gone.status_code, gone.json()["error"]["code"]) == (410, "gone")
                assert client.get(f"/streams/s/{path}", params={"cursor": 2, "limit": 1}).status_code == 200
            again = client.post(
                "/streams/s/records",
                content=lines(feed.generate(3, 0)),
                headers={"Content-Type": NDJSON, "Idempotency-Key": "k0"},
            )
            assert again.status_code == 410
    finally:
        running.close()
