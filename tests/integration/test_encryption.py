"""An encrypted store: nothing of anybody is in its files, every interface works with the key, and none without it."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa
from store_scenes import SCENES, EvolvingScene, SeriesScene, StreamScene, ndjson, people

from reticent import EvolvingTable, Series
from reticent.cli import main
from reticent.connectors.stream import Stream
from reticent.errors import PolicyError, StateError
from reticent.store import Store, integrity, schema
from reticent.store.backup import backup, check, restore
from reticent.store.keys import FILE, PASSPHRASE, Key, new_key
from reticent.store.rekey import rekey

CANARY = b"Zyxwv8731Qq"
STORE = "store.db"


@pytest.fixture
def key(tmp_path_factory, monkeypatch):
    path = tmp_path_factory.mktemp("keys") / "key"
    new_key(path)
    monkeypatch.setenv(FILE, str(path))
    return path


def marked(rows):
    one = people(900, 1).set_column(4, "ill", [[f"illness {CANARY.decode()}"]])
    one = one.set_column(0, "patient", [[f"patient {CANARY.decode()}"]])
    return pa.concat_tables([rows, one])


def holding(folder, *words):
    return [path.name for path in folder.iterdir() if path.is_file() for word in words if word in path.read_bytes()]


def filled(folder):
    """All kinds in one store, with a value and a name that nobody else has, kept open so that the log is there, too."""
    table = EvolvingTable(folder / STORE, EvolvingScene.policy)
    table.insert(marked(people(0, 60)))
    table.publish()
    Series(folder / STORE, SeriesScene.policy).publish(people(100, 80))
    with Stream(StreamScene.policy, store=folder / STORE) as feed:
        feed.push(ndjson(people(300, 40)) + b'{"' + CANARY + b'": broken\n')
        assert len(feed.dead_letters()) == 1
    with Store.open(folder / STORE) as store, store.transaction() as tx:
        tx.put("service", "job", CANARY.decode(), CANARY)
    return table


PRIVATE = (CANARY, b"illness 3", b"patient 7", b"patient 110")


def test_nothing_of_anybody_is_in_the_files(tmp_path, key):
    Store.open(tmp_path / STORE).close()
    reader = sqlite3.connect(tmp_path / STORE)  # keeps the log from being written back
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM reticent_meta").fetchall()
    filled(tmp_path)
    assert (tmp_path / f"{STORE}-wal").stat().st_size > 100_000
    assert not holding(tmp_path, *PRIVATE)
    with Store.open(tmp_path / STORE) as store:
        hashes = store.ledger("evolving").persons[0].tobytes()
        secrets = [store.key(name) for name in store.publishers()]
        assert store.get("service", "job", CANARY.decode()) == CANARY
    assert not holding(tmp_path, hashes[:32], *secrets)
    reader.close()


def test_without_the_cipher_it_would_be(tmp_path):
    filled(tmp_path)
    assert set(holding(tmp_path, *PRIVATE)) >= {STORE}


@pytest.mark.parametrize("name", SCENES)
def test_it_publishes_what_an_open_store_publishes(name, tmp_path, monkeypatch):
    """Every choice follows from the keys in the store, so the same store publishes the same, encrypted or not."""
    scene, (plain, hidden) = SCENES[name], (tmp_path / "plain", tmp_path / "hidden")
    plain.mkdir()
    scene.build(plain)
    backup(plain / STORE, tmp_path / "copy.db")
    hidden.mkdir()
    (tmp_path / "copy.db").rename(hidden / STORE)
    new_key(tmp_path / "key")
    rekey(hidden / STORE, Key.from_file(tmp_path / "key"))
    outcome = scene.go_on(plain)
    monkeypatch.setenv(FILE, str(tmp_path / "key"))
    assert scene.go_on(hidden) == outcome
    assert holding(plain, b"illness 3")
    assert not holding(hidden, b"illness 3")


def test_no_key_and_another_key_are_refused(tmp_path, key, monkeypatch):
    filled(tmp_path)
    before = (tmp_path / STORE).read_bytes()
    new_key(tmp_path / "other")
    for setting in (None, "other"):
        monkeypatch.delenv(FILE) if setting is None else monkeypatch.setenv(FILE, str(tmp_path / setting))
        with pytest.raises(
            StateError, match="is encrypted" if setting is None else "key of the store is wrong"
        ) as caught:
            EvolvingTable(tmp_path / STORE).publish()
        assert FILE in caught.value.hint
    assert (tmp_path / STORE).read_bytes() == before


def test_a_key_for_a_store_that_is_not_encrypted_is_refused(tmp_path, monkeypatch, tmp_path_factory):
    filled(tmp_path)
    new_key(tmp_path / "key")
    monkeypatch.setenv(FILE, str(tmp_path / "key"))
    with pytest.raises(StateError, match="not encrypted") as caught:
        EvolvingTable(tmp_path / STORE).publish()
    assert "store rekey" in caught.value.hint


def test_a_passphrase_opens_it(tmp_path, monkeypatch):
    monkeypatch.setenv(PASSPHRASE, "five random words do it")
    filled(tmp_path)
    assert not holding(tmp_path, *PRIVATE)
    EvolvingTable(tmp_path / STORE).insert(people(60, 5))
    monkeypatch.setenv(PASSPHRASE, "five random words do not")
    with pytest.raises(StateError, match="key of the store is wrong"):
        EvolvingTable(tmp_path / STORE).status()
    with pytest.raises(PolicyError, match="fewer than 12 characters"):
        Key.from_passphrase("short")


def test_a_key_file_that_others_may_read_is_refused(tmp_path, key):
    key.chmod(0o644)
    with pytest.raises(PolicyError, match="Other users may read"):
        Store.open(tmp_path / STORE)


def test_a_store_is_encrypted_later_under_another_key_and_opened_again(tmp_path, monkeypatch):
    table = filled(tmp_path)
    with Store.open(tmp_path / STORE) as store:
        rows, hashes = check(store), store.ledger("evolving").persons[0].tolist()
    assert holding(tmp_path, *PRIVATE)
    for number, said in ((1, "rekey"), (2, "rekey")):
        new_key(tmp_path / f"key{number}")
        with pytest.raises(SystemExit) as ended:
            main(["store", said, str(tmp_path / STORE), "--to", str(tmp_path / f"key{number}")])
        assert not ended.value.code
        assert not holding(tmp_path, *PRIVATE)
        before = Path(os.environ.get(FILE, "/none"))
        if number == 2:
            with pytest.raises(StateError, match="key of the store is wrong"):
                Store.open(tmp_path / STORE, key=Key.from_file(before))
        monkeypatch.setenv(FILE, str(tmp_path / f"key{number}"))
    with Store.open(tmp_path / STORE) as store:
        assert check(store) == rows
        assert store.ledger("evolving").persons[0].tolist() == hashes
    table.insert(people(60, 5))
    table.delete([f"patient {CANARY.decode()}"])
    assert table.status()["records"] == 65
    rekey(tmp_path / STORE, None)
    monkeypatch.delenv(FILE)
    assert table.status()["records"] == 65
    assert holding(tmp_path, b"illness 3")


def test_a_process_with_the_earlier_key_writes_nothing(tmp_path, key, monkeypatch):
    Store.open(tmp_path / STORE).close()
    with Store.open(tmp_path / STORE) as store:
        new_key(tmp_path / "new")
        rekey(tmp_path / STORE, Key.from_file(tmp_path / "new"))
        monkeypatch.setenv(FILE, str(tmp_path / "new"))
        with pytest.raises(StateError), store.transaction() as tx:
            tx.put("service", "job", "a", b"b")
    with Store.open(tmp_path / STORE) as store:
        assert store.items("service", "job") == {}
        store.register("feed", policy_hash="p")
        with store.lock("feed"), pytest.raises(StateError, match="Another process is writing"):
            rekey(tmp_path / STORE, Key.from_file(key))


def test_an_older_copy_from_before_the_rekeying_is_refused(tmp_path, key):
    table = filled(tmp_path)
    old = (tmp_path / STORE).read_bytes()
    table.insert(people(60, 5))
    rekey(tmp_path / STORE, Key.from_file(key))
    (tmp_path / STORE).write_bytes(old)
    with pytest.raises(StateError, match="older copy"):
        table.status()


def test_backups_are_encrypted_and_go_on(tmp_path, key):
    filled(tmp_path)
    backup(tmp_path / STORE, tmp_path / "copy.db")
    assert not holding(tmp_path, *PRIVATE)
    assert not any(outcome.closed for outcome in restore(tmp_path / "copy.db", tmp_path / STORE).values())
    EvolvingTable(tmp_path / STORE).insert(people(60, 5))


def test_a_rekeying_that_is_killed_changes_nothing(tmp_path, key):
    filled(tmp_path)
    new_key(tmp_path / "new")
    script = (
        "import os, sys; from pathlib import Path; from reticent.store import rekey; from reticent.store.keys import Key\n"
        "rekey.write_head = lambda *_: os._exit(9)\n"
        "rekey.rekey(sys.argv[1], Key.from_file(Path(sys.argv[2])))"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / STORE, tmp_path / "new"], check=False)
    assert done.returncode == 9
    with Store.open(tmp_path / STORE) as store:
        check(store)


def test_cells_do_not_open_in_another_place(tmp_path, key, monkeypatch):
    """The digest aside: a cell that was moved is no cell there."""
    filled(tmp_path)
    with sqlite3.connect(tmp_path / STORE) as raw:
        raw.execute("UPDATE reticent_outbox SET payload = (SELECT payload FROM reticent_snapshots LIMIT 1)")
    with Store.open(tmp_path / STORE) as store:
        (row,) = store.read(sa.select(schema.outbox.c.digest).where(schema.outbox.c.publisher == "stream"))
        monkeypatch.setattr(integrity.Seal, "digest", lambda *_: bytes(row[0]))
        with pytest.raises(StateError, match="corrupt"):
            store.rows(schema.outbox, schema.outbox.c.publisher == "stream", order_by=schema.outbox.c.number)


def test_it_works_on_postgresql(postgres_url, key, monkeypatch):
    table = EvolvingTable.create(postgres_url, EvolvingScene.policy)
    with table:
        table.insert(people(0, 60))
        table.delete(["patient 3"])
    new_key(key.with_name("new"))
    rekey(postgres_url, Key.from_file(key.with_name("new")))
    monkeypatch.setenv(FILE, str(key.with_name("new")))
    assert EvolvingTable(postgres_url).publish().records.published == 59
    with Store.open(postgres_url) as store:
        cells = store.read(sa.select(schema.evolving_words.c.payload))
    assert cells
    assert not any(b"illness" in bytes(cell) for (cell,) in cells)


def test_a_key_is_never_overwritten_and_never_shown(key):
    with pytest.raises(PolicyError, match="already"):
        new_key(key)
    assert key.read_text().strip() not in repr(Key.from_file(key))
    assert Key.from_environment({}) is None
