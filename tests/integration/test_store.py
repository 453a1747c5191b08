"""The store, on SQLite and on a real PostgreSQL: all or nothing, one writer, nothing told."""

import contextlib
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

from reticent.errors import ReticentError, StateError
from reticent.release import LedgerEntry, RecordCounts
from reticent.store import DeadLetter, OutboxEntry, Snapshot, SnapshotWriter, Store, opening, schema, snapshot_writer
from reticent.store import store as store_module


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def store(where):
    with Store.open(where) as opened:
        opened.register("feed", policy_hash="p1")
        yield opened


def test_a_step_is_remembered_whole(store, where):
    with store.lock("feed"):
        with store.transaction() as tx:
            tx.put_snapshot("feed", b"state")
            assert tx.put_outbox("feed", "stream", b"batch 0", position="10") == 0
            assert tx.append_delta("feed", b"delta 1") == 1
            tx.put_dead_letter("feed", "7", "wrong number of cells", b"raw")
        with store.transaction() as tx:
            assert tx.put_outbox("feed", "stream", b"batch 1") == 1
            assert tx.append_delta("feed", b"delta 2") == 2
            tx.set_position("feed", "20")
    with Store.open(where, create=False) as again:
        assert again.position("feed") == "20"
        assert again.snapshot("feed") == Snapshot(b"state", (b"delta 1", b"delta 2"))
        assert list(again.iter_undelivered_batches("feed")) == [
            OutboxEntry(0, "stream", b"batch 0", "10"),
            OutboxEntry(1, "stream", b"batch 1", None),
        ]
        assert again.dead_letters("feed") == [DeadLetter("7", "wrong number of cells", b"raw")]
        assert again.publishers() == ("feed",)


def test_a_failing_step_leaves_nothing(store):
    def step():
        with store.transaction() as tx:
            tx.put_snapshot("feed", b"state")
            tx.put_outbox("feed", "stream", b"batch", position="10")
            tx.put("feed", "space", "key", b"value")
            raise ZeroDivisionError

    with store.lock("feed"), contextlib.suppress(ZeroDivisionError):
        step()
    assert store.position("feed") is None
    assert store.snapshot("feed") is None
    assert list(store.iter_undelivered_batches("feed")) == []
    assert store.get("feed", "space", "key") is None


def test_sent_batches_are_not_sent_again(store):
    with store.lock("feed"):
        with store.transaction() as tx:
            for number in range(5):
                tx.put_outbox("feed", "stream", b"%d" % number)
        with store.transaction() as tx:
            tx.confirm_delivery("feed", 2)
        assert [entry.number for entry in store.iter_undelivered_batches("feed")] == [3, 4]
        with store.transaction() as tx:
            tx.forget_delivered_batches("feed", 4)
        assert [entry.number for entry in store.outbox("feed")] == [3, 4]
        assert [entry.number for entry in store.outbox("feed", after=3)] == [4]
        with store.transaction() as tx:
            assert tx.put_outbox("feed", "stream", b"5") == 5


def test_a_new_snapshot_replaces_the_old_one_and_its_changes(store):
    with store.lock("feed"), store.transaction() as tx:
        with pytest.raises(StateError, match="no stored state"):
            tx.append_delta("feed", b"too early")
        tx.put_snapshot("feed", b"one")
        tx.append_delta("feed", b"delta")
        tx.put_snapshot("feed", b"two")
        tx.append_delta("feed", b"after two")
    assert store.snapshot("feed") == Snapshot(b"two", (b"after two",))


def test_a_state_in_pieces_is_the_old_one_or_the_new_one_after_every_commit(store, monkeypatch):
    """Pieces, the swap and the removal go with commits that append; a second attempt follows one that was cut short."""
    monkeypatch.setattr(snapshot_writer, "_PIECE", 7)
    monkeypatch.setattr(snapshot_writer, "_PIECE_FACTOR", 0)
    said, swapped = b"whole ", 0
    with store.lock("feed"):
        with store.transaction() as tx:
            tx.put_snapshot("feed", said)
            number = tx.append_delta("feed", b"0 ")
        said += b"0 "
        for attempt, cut in enumerate((3, 5, 9, 12, None, 2, None, None)):
            rewrite, before, bits = SnapshotWriter("feed", said, number), store.snapshot("feed").payload, 0
            more = True
            while more and bits != cut:
                with store.transaction() as tx:
                    number = tx.append_delta("feed", b"%d.%d " % (attempt, bits))
                    more = rewrite.write_next_piece(tx, 4)
                said += b"%d.%d " % (attempt, bits)
                kept = store.snapshot("feed")
                assert b"".join([kept.payload, *kept.deltas]) == said
                bits += 1
            swapped += store.snapshot("feed").payload != before
        kept = store.snapshot("feed")
        assert swapped >= 3
        assert len(store.items("feed", "state.a") or store.items("feed", "state.b")) == -(-len(kept.payload) // 7)
        assert not (store.items("feed", "state.a") and store.items("feed", "state.b"))
        (rows,) = store.read(sa.select(sa.func.count()).select_from(schema.snapshots))[0]
        assert rows == len(kept.deltas)
        with store.transaction() as tx:
            tx.put_snapshot("feed", b"anew")
        assert store.snapshot("feed") == Snapshot(b"anew")


def test_only_the_owner_swaps_a_state(store, monkeypatch):
    with store.lock("feed"), store.transaction() as tx:
        tx.put_snapshot("feed", b"old")
    rewrite = SnapshotWriter("feed", b"new", 0)
    with store.transaction() as tx:
        assert rewrite.write_next_piece(tx)
    with pytest.raises(StateError, match="not locked"), store.transaction() as tx:
        rewrite.write_next_piece(tx)
    assert store.snapshot("feed") == Snapshot(b"old")


def test_a_page_of_the_outbox_does_not_list_all_of_it(store, monkeypatch):
    monkeypatch.setattr(store_module, "_PAGE_SIZE", 2)
    with store.lock("feed"), store.transaction() as tx:
        for number in range(7):
            tx.put_outbox("feed", "stream", b"%d" % number)
    assert [entry.number for entry in store.outbox("feed")] == list(range(7))
    asked = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *call: asked.append(call[2]))
    assert next(store.outbox("feed", after=1)).number == 2
    assert all("LIMIT" in query for query in asked if "outbox" in query and "payload" not in query)


def test_the_ledger_only_grows(store):
    persons, groups = np.array([2**63 + 1, 5], np.uint64), np.array([-1, 2**40], np.int64)
    entries = [LedgerEntry(n, f"2026-01-0{n}", "p1", "veil", RecordCounts(2, 2), "d") for n in (1, 2)]
    with store.lock("feed"):
        for entry in entries:
            with store.transaction() as tx:
                tx.record_ledger("feed", entry, persons, groups)
        with pytest.raises(StateError), store.transaction() as tx:
            tx.record_ledger("feed", entries[1], persons, groups)
        with pytest.raises(StateError, match="one group per person"), store.transaction() as tx:
            tx.record_ledger("feed", LedgerEntry(3, "", "", "", RecordCounts(), ""), persons, groups[:1])
    ledger = store.ledger("feed")
    assert ledger.entries == entries
    assert all((found == persons).all() for found in ledger.persons)
    assert all((found == groups).all() for found in ledger.groups)


def test_own_values(store):
    with store.transaction() as tx:  # needs no lock
        tx.put("feed", "memo", "a", b"1")
        tx.put("feed", "memo", "a", b"2")
        tx.put("feed", "memo", "b", b"")
        tx.put("feed", "other", "a", b"3")
        assert tx.get("feed", "memo", "a") == b"2"
    assert store.items("feed", "memo") == {"a": b"2", "b": b""}
    with store.transaction() as tx:
        tx.delete("feed", "memo", "a")
    assert store.get("feed", "memo", "a") is None
    assert store.get("feed", "other", "a") == b"3"


def test_the_key_is_made_once_and_the_policy_stays(store, where):
    key = store.key("feed")
    store.register("feed", policy_hash="p1")
    store.register("other", policy_hash="p2")
    with Store.open(where) as again:
        assert again.key("feed") == key
        assert again.policy_hash("feed") == "p1"
        assert again.key("other") != key
    assert len(key) == 32
    with pytest.raises(StateError, match="another policy"):
        store.register("feed", policy_hash="p2")
    with pytest.raises(StateError, match="has no publication 'nobody'"):
        store.key("nobody")


def test_registering_at_once_makes_one_key(where):
    def register(_):
        with Store.open(where) as opened:
            opened.register("feed", policy_hash="p")
            return opened.key("feed")

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(register, range(8)))) == 1


def test_one_writer_at_a_time(store, where):
    with Store.open(where) as other:
        other.register("second", policy_hash="p")
        with store.lock("feed"):
            with pytest.raises(StateError, match="Another process is writing to 'feed'"), other.lock("feed"):
                pass
            with other.lock("second"):
                pass  # publishers do not stand in each other's way
            with pytest.raises(StateError, match="not locked by this process"), other.transaction() as tx:
                tx.set_position("feed", "1")
        with other.lock("feed"), other.transaction() as tx:
            tx.set_position("feed", "2")
    assert store.position("feed") == "2"


def test_a_lost_lock_is_noticed(store, where, monkeypatch):
    """Without the fence the first writer would continue next to the second one."""
    with store.lock("feed"), Store.open(where) as other:
        with monkeypatch.context() as patch:
            patch.setattr("reticent.store.database.hold_lock", lambda *_: contextlib.nullcontext())
            taken = other.lock("feed")
            taken.__enter__()
        with pytest.raises(StateError, match="took over"), store.transaction() as tx:
            tx.put_outbox("feed", "stream", b"twice")
        taken.__exit__(None, None, None)
    assert list(store.iter_undelivered_batches("feed")) == []


def test_waiting_writers_lose_nothing(store, where):
    def write(_):
        with Store.open(where) as own:
            for _ in range(5):
                with own.lock("feed", wait=60), own.transaction() as tx:
                    count = int(tx.get("feed", "space", "count") or b"0")
                    tx.put("feed", "space", "count", b"%d" % (count + 1))
                    tx.put_outbox("feed", "stream", b"x")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert store.get("feed", "space", "count") == b"20"
    assert [entry.number for entry in store.outbox("feed")] == list(range(20))


WRITER = """
import os, signal, sys
from sqlalchemy import event
from reticent.store import Store

moments = int(sys.argv[2])

def tick(*_):
    global moments
    moments -= 1
    if not moments:
        os.kill(os.getpid(), signal.SIGKILL)

with Store.open(sys.argv[1]) as store, store.lock("feed", wait=60):
    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        event.listen(store.engine, name, tick)
    snapshot = store.snapshot("feed")
    step = int(snapshot.payload) if snapshot else 0
    while True:
        step += 1
        with store.transaction() as tx:
            tx.put_outbox("feed", "stream", b"%d" % step * 2000, position=str(step))
            tx.put("feed", "memo", str(step), b"x")
            tx.put_snapshot("feed", b"%d" % step)
        print(step, flush=True)
"""


def test_a_store_opens_while_another_process_commits(store, where, monkeypatch):
    """Its rollback marker is read before its head: a commit in between puts the store ahead of the marker, not behind."""
    real = opening.read_head

    def read_head(*args):
        head = real(*args)
        with store.lock("feed"), store.transaction() as tx:
            tx.set_position("feed", "7")
        return head

    monkeypatch.setattr(opening, "read_head", read_head)
    with Store.open(where) as again:
        assert again.position("feed") == "7"


def test_a_killed_writer_leaves_whole_steps(store, where):
    """It dies before, after and between the statements of a step; eight of some forty moments each time."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201
    last = 0
    for moments in random.Random(seed).sample(range(3, 44), 8):
        command = [sys.executable, "-c", WRITER, where, str(moments)]
        writer = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        assert writer.returncode == -signal.SIGKILL
        seen = [int(line) for line in writer.stdout.split()]
        # A process that gets the lock knows that the dead writer's last commit has ended, one way or the other.
        with store.lock("feed", wait=60):
            step = int(store.position("feed") or 0)
            assert seen == list(range(last + 1, last + 1 + len(seen)))
            assert last + len(seen) <= step <= last + len(seen) + 1  # what was acknowledged is there
            assert [entry.position for entry in store.outbox("feed")] == [str(n + 1) for n in range(step)]
            assert store.snapshot("feed") == (Snapshot(b"%d" % step) if step else None)
            assert len(store.items("feed", "memo")) == step
        last = step


CANARY = b"Zyxwv8731Qq"


def test_no_content_in_errors_and_reprs(store, where):
    entry = LedgerEntry(1, CANARY.decode(), "p", "m", RecordCounts(), "d")
    with store.lock("feed"), store.transaction() as tx:
        tx.put_outbox("feed", "stream", CANARY)
        tx.put_snapshot("feed", CANARY)
        tx.put_dead_letter("feed", "1", "bad", CANARY)
        tx.record_ledger("feed", entry, np.array([], np.uint64), np.array([], np.int64))
    shown = [repr(store), repr(list(store.iter_undelivered_batches("feed"))), repr(store.snapshot("feed"))]
    shown.append(repr(store.dead_letters("feed")))

    def again():
        with store.lock("feed"), store.transaction() as tx:
            tx.record_ledger("feed", entry, np.array([], np.uint64), np.array([], np.int64))

    try:
        again()
    except ReticentError as error:
        shown += [repr(error), "".join(traceback.format_exception(error))]
    assert len(shown) == 6
    assert not any(CANARY.decode() in text for text in shown)
    if "@" in where:
        password = where.split(":")[2].split("@")[0]
        assert not any(password in text for text in shown)


def test_another_version_is_refused(store, where):
    url = where if "://" in where else f"sqlite:///{where}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE reticent_meta SET value = '99' WHERE name = 'schema'")
    engine.dispose()
    with pytest.raises(StateError, match=f"has schema 99; this version of Reticent reads schema {schema.VERSION}"):
        Store.open(where)


def test_an_absent_store_is_not_made_unasked(where, tmp_path):
    with pytest.raises(StateError, match=r"no such file|is not a Reticent store"):
        Store.open(where, create=False)
    assert not list(tmp_path.iterdir())


def test_sqlite_files_are_durable_and_private(tmp_path):
    with Store.open(tmp_path / "store.db") as store:
        store.register("feed", policy_hash="p")
        with store.lock("feed"), store.transaction() as tx:
            tx.set_position("feed", "1")
            assert tx._connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert tx._connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    with Store.open(f"sqlite:///{tmp_path}/store.db", create=False) as store:
        assert store.position("feed") == "1"


def test_what_is_not_a_store_is_refused(tmp_path):
    (tmp_path / "text").write_text("not a database, though long enough to be looked at\n" * 100)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    cases = {
        tmp_path / "text": "is not a store",
        tmp_path / "other.db": "is not a Reticent store",
        tmp_path: "is a directory",
        tmp_path / "none" / "store.db": "cannot be created",
        "mysql://host/x": "URL is invalid",
        "sqlite://": "URL is invalid",
        "nonsense://": "URL is invalid",
        "postgresql://u:hidden@127.0.0.1:1/x": "Store postgresql",
    }
    for where, message in cases.items():
        with pytest.raises(StateError, match=message) as caught:
            Store.open(where)
        assert caught.value.hint
        assert "hidden" not in "".join(traceback.format_exception(caught.value))


FULL = """
import resource, signal, sys
from reticent.errors import StateError
from reticent.store import Store
with Store.open(sys.argv[1]) as store:
    store.register("feed", policy_hash="p")
    with store.lock("feed"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            with store.transaction() as tx:
                tx.set_position("feed", "1")
                tx.put_snapshot("feed", bytes(1_000_000))
        except StateError as error:
            print(error)
"""


def test_a_full_disk_changes_nothing(tmp_path):
    where = str(tmp_path / "store.db")
    run = subprocess.run([sys.executable, "-c", FULL, where], capture_output=True, text=True, check=True)
    assert "Nothing was changed" in run.stdout
    with Store.open(where) as store:
        assert store.position("feed") is None
        assert store.snapshot("feed") is None
