"""An older copy of a store, whatever way it comes back, publishes nobody a second time."""

import datetime as dt
import json
import os
import random
import secrets
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from store_scenes import BASE, EvolvingScene, SeriesScene, StreamScene, ndjson, people

from reticent import EvolvingTable, Series, anonymize
from reticent.cli import app, main
from reticent.connectors.stream import Stream
from reticent.errors import DataError, StateError
from reticent.policy import Policy
from reticent.store import Store
from reticent.store.backup import backup, check, restore
from reticent.verify import verify

STORE = "store.db"
ANATOMY = Policy.from_dict(BASE | {"privacy": {"l": 3, "suppression": 0.2}, "table": {"method": "anatomy"}})


def stream(folder, sink):
    with Stream(StreamScene.policy, store=folder / STORE) as feed:
        return feed.run(str(folder / "feed.ndjson"), sink)


def feed(folder, first, n):
    with (folder / "feed.ndjson").open("ab") as file:
        file.write(ndjson(people(first, n)))


def evolving(folder):
    table = EvolvingTable(folder / STORE, EvolvingScene.policy)
    table.insert(people(0, 60))
    return table


def test_a_copy_put_back_by_hand_is_refused(tmp_path):
    table = evolving(tmp_path)
    shutil.copy(tmp_path / STORE, tmp_path / "old.db")
    table.publish()
    shutil.copy(tmp_path / "old.db", tmp_path / STORE)
    with pytest.raises(StateError, match="older copy") as caught:
        table.publish()
    assert "store restore" in caught.value.hint


def test_a_copy_from_before_a_restore_has_lost_no_number_of_commits(tmp_path):
    """It may have had more of them than the store that was restored: they are no measure between two epochs of a store."""
    table = evolving(tmp_path)
    backup(tmp_path / STORE, tmp_path / "old.db")
    table.insert(people(60, 3))
    table.insert(people(63, 3))
    shutil.copy(tmp_path / STORE, tmp_path / "before.db")
    restore(tmp_path / "old.db", tmp_path / STORE, ["evolving=0"])
    shutil.copy(tmp_path / "before.db", tmp_path / STORE)
    with pytest.raises(StateError, match="older copy") as caught:
        table.publish()
    assert "commits" not in caught.value.message


def test_a_folders_name_means_nothing_to_a_backup(tmp_path):
    folder = tmp_path / "a#b%41 ü"
    folder.mkdir()
    evolving(folder).publish()
    backup(folder / STORE, folder / "old.db")
    assert restore(folder / "old.db", folder / STORE)["evolving"].closed == ""


def test_a_store_that_is_gone_is_not_begun_anew(tmp_path):
    evolving(tmp_path)
    (tmp_path / STORE).unlink()
    with pytest.raises(StateError, match="is missing"):
        evolving(tmp_path)


def test_a_restored_table_publishes_only_when_nothing_is_missing(tmp_path):
    table = evolving(tmp_path)
    backup(tmp_path / STORE, tmp_path / "old.db")
    table.publish(tmp_path / "release-1")
    for published, closed in (
        ([], "--published does not say"),
        ([str(tmp_path / "release-1")], "1 releases are newer"),
        (["evolving=0"], ""),
    ):
        (outcome,) = restore(tmp_path / "old.db", tmp_path / STORE, published).values()
        assert outcome.closed.startswith(closed)
        assert bool(outcome.closed) == bool(closed)
        if closed:
            with pytest.raises(StateError, match="release the same people a second time"):
                EvolvingTable(tmp_path / STORE).publish()
    with pytest.raises(StateError, match="not in this store"):  # the folder next to it knows better
        EvolvingTable(tmp_path / STORE).publish(tmp_path / "release-2")


def test_who_restores_is_told_how_to_go_on(tmp_path, capsys):
    table = evolving(tmp_path)
    backup(tmp_path / STORE, tmp_path / "old.db")
    table.publish(tmp_path / "release-1")
    words = ["store", "restore", str(tmp_path / "old.db"), str(tmp_path / "new.db")]
    for more, told in (([], True), (["--published", "evolving=0"], False)):
        with pytest.raises(SystemExit):
            main([*words, *more])
        assert ("restore again with --published" in capsys.readouterr().err) == told


def test_a_restored_store_with_a_full_rollback_marker_continues(tmp_path):
    table = evolving(tmp_path)
    backup(tmp_path / STORE, tmp_path / "old.db")
    (tmp_path / STORE).write_bytes(b"corrupt")
    (outcome,) = restore(tmp_path / "old.db", tmp_path / STORE).values()
    assert not outcome.closed
    before = Store.open(tmp_path / "old.db").epoch
    with Store.open(tmp_path / STORE) as store:
        assert store.epoch == before.replace("-1", "-2")
    assert table.publish().records.published == 60


def test_folders_form_a_chain(tmp_path):
    series = Series(tmp_path / STORE, SeriesScene.policy)
    for number in (1, 2, 3):
        series.publish(people(0, 80), tmp_path / f"r{number}")
    places = [json.loads((tmp_path / f"r{n}" / "release.json").read_text())["store"] for n in (1, 2, 3)]
    assert [place["number"] for place in places] == [1, 2, 3]
    assert [place["predecessor"] for place in places] == ["", places[0]["digest"], places[1]["digest"]]
    assert len({place["epoch"] for place in places}) == 1


def test_a_restored_stream_sends_only_what_is_new(tmp_path):
    sink = str(tmp_path / "out.ndjson")
    feed(tmp_path, 0, 60)
    stream(tmp_path, sink)
    backup(tmp_path / STORE, tmp_path / "old.db")
    feed(tmp_path, 60, 40)
    stream(tmp_path, sink)
    whole = Path(sink).read_bytes()
    shutil.copytree(tmp_path, tmp_path / "straight")
    feed(tmp_path / "straight", 100, 20)
    stream(tmp_path / "straight", str(tmp_path / "straight" / "out.ndjson"))

    restore(tmp_path / "old.db", tmp_path / STORE)
    with pytest.raises(StateError, match="release the same people a second time"):
        stream(tmp_path, "-")
    restore(tmp_path / "old.db", tmp_path / STORE, [sink])
    with (
        Stream(StreamScene.policy, store=tmp_path / STORE) as other,
        pytest.raises(StateError, match="more of it was published"),
    ):
        other.push(ndjson(people(200, 5)))
    feed(tmp_path, 100, 20)
    stream(tmp_path, sink)
    assert Path(sink).read_bytes().startswith(whole)
    assert Path(sink).read_bytes() == (tmp_path / "straight" / "out.ndjson").read_bytes()


def test_a_restored_stream_with_another_input_sends_nothing(tmp_path):
    sink = tmp_path / "out.ndjson"
    feed(tmp_path, 0, 60)
    stream(tmp_path, str(sink))
    backup(tmp_path / STORE, tmp_path / "old.db")
    feed(tmp_path, 60, 40)
    stream(tmp_path, str(sink))
    whole, data = sink.read_bytes(), (tmp_path / "feed.ndjson").read_bytes()
    restore(tmp_path / "old.db", tmp_path / STORE, [str(sink)])
    (tmp_path / "feed.ndjson").write_bytes(data[: len(ndjson(people(0, 60)))] + ndjson(people(70, 40)))
    with pytest.raises(StateError, match="other lines than those published"):
        stream(tmp_path, str(sink))
    assert sink.read_bytes() == whole


@pytest.mark.parametrize("change", ["replaced", "truncated"])
def test_another_input_of_the_same_name_is_refused(change, tmp_path):
    feed(tmp_path, 0, 60)
    stream(tmp_path, str(tmp_path / "out.ndjson"))
    path = tmp_path / "feed.ndjson"
    path.write_bytes(ndjson(people(500, 90)) if change == "replaced" else path.read_bytes()[:1000])
    with pytest.raises(DataError, match="was replaced"):
        stream(tmp_path, str(tmp_path / "out.ndjson"))


def test_check_finds_what_a_small_read_would_not(tmp_path):
    evolving(tmp_path)
    with Store.open(tmp_path / STORE) as store:
        assert check(store)["reticent_evolving_records"] == 60
    with sqlite3.connect(tmp_path / STORE) as raw:
        raw.execute("UPDATE reticent_evolving_records SET class = class + 1 WHERE row = 7")
    with Store.open(tmp_path / STORE) as store, pytest.raises(StateError, match="corrupt"):
        check(store)


def test_a_store_of_another_schema_is_refused(tmp_path):
    series = Series(tmp_path / STORE, SeriesScene.policy)
    series.publish(people(0, 80))
    with closing(sqlite3.connect(tmp_path / STORE)) as raw, raw:
        raw.execute("UPDATE reticent_meta SET value = '2' WHERE name = 'schema'")
    with pytest.raises(StateError, match="has schema 2") as caught:
        series.publish(people(0, 90))
    assert "Use the version of Reticent that created the store" in caught.value.hint


def test_an_unfinished_last_line_waits(tmp_path):
    half = ndjson(people(0, 61))[:-20]
    (tmp_path / "feed.ndjson").write_bytes(half)
    sink = str(tmp_path / "out.ndjson")
    summary = stream(tmp_path, sink)
    assert (summary.records.input, summary.dead_letters) == (60, 0)
    assert summary.pending_bytes > 0
    (tmp_path / "feed.ndjson").write_bytes(ndjson(people(0, 61)))
    assert stream(tmp_path, sink).records.input == 61


def test_a_last_line_counts_when_it_is_said_to_be_the_last(tmp_path):
    (tmp_path / "feed.ndjson").write_bytes(ndjson(people(0, 61))[:-1])
    with Stream(StreamScene.policy, store=tmp_path / STORE) as opened:
        summary = opened.run(str(tmp_path / "feed.ndjson"), str(tmp_path / "out.ndjson"), final=True)
    assert (summary.records.input, summary.pending_bytes) == (61, 0)


def test_half_a_line_of_a_pipe_is_set_aside(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(ndjson(people(0, 61))[:-1]))
    writer.start()
    with Stream(StreamScene.policy, store=tmp_path / STORE) as opened:
        summary = opened.run(str(tmp_path / "pipe"), str(tmp_path / "out.ndjson"))
    writer.join()
    assert (summary.records.input, summary.dead_letters) == (60, 1)


def test_one_foreign_line_next_to_a_cell_of_two_lines_is_set_aside(tmp_path):
    rows = [
        b"p1,1,30,m,illness 1",
        b'p2,2,40,"f\n",illness 2',
        "p3,3,50,é,illness 3".encode("latin-1"),
        b"p4,4,60,f,illness 4",
    ]
    (tmp_path / "feed.csv").write_bytes(b"\n".join([b"patient,line,age,sex,ill", *rows, b""]))
    with Stream(StreamScene.policy, store=tmp_path / STORE) as opened:
        summary = opened.run(str(tmp_path / "feed.csv"), str(tmp_path / "out.ndjson"))
        assert [(letter.position, letter.reason) for letter in opened.dead_letters()] == [("2", "not UTF-8")]
    assert summary.records.input == 3


def test_another_name_of_a_store_has_no_rollback_marker_of_its_own(tmp_path):
    """Through a link the same file is used, and an older copy of it is as old."""
    table = evolving(tmp_path)
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / "link.db").symlink_to(tmp_path / STORE)
    link = EvolvingTable(tmp_path / "aside" / "link.db")
    link.insert(people(60, 10))
    old = (tmp_path / STORE).read_bytes()
    table.publish()
    (tmp_path / STORE).write_bytes(old)
    with pytest.raises(StateError, match="older copy"):
        link.publish()
    assert [path.name for path in (tmp_path / "aside").iterdir()] == ["link.db"]


def test_a_link_to_another_store_in_its_place_is_refused(tmp_path):
    table = evolving(tmp_path)
    (tmp_path / "other").mkdir()
    evolving(tmp_path / "other")
    (tmp_path / STORE).unlink()
    (tmp_path / STORE).symlink_to(tmp_path / "other" / STORE)
    with pytest.raises(StateError, match="is now a link"):
        table.publish()


def test_a_log_without_its_store_is_no_new_store(tmp_path):
    with Store.open(tmp_path / STORE) as store:
        store.register("feed", policy_hash="p")
        shutil.copy(tmp_path / f"{STORE}-wal", tmp_path / "log")
    for path in tmp_path.glob(f"{STORE}*"):
        path.unlink()
    (tmp_path / "log").rename(tmp_path / f"{STORE}-wal")
    with pytest.raises(StateError, match="its log") as caught:
        evolving(tmp_path)
    assert "store restore" in caught.value.hint


def published(place, out, files):
    """A table, by the command line."""
    (files / "policy.json").write_text(json.dumps(ANATOMY.to_dict()))
    pq.write_table(people(0, 90), files / "data.parquet")
    words = ["anonymize", files / "data.parquet", "-p", files / "policy.json", "-o", out, "--store", place / STORE]
    app([str(word) for word in words], standalone_mode=False)


@pytest.mark.parametrize("kind", ["evolving", "series", "table"])
def test_of_two_copies_in_use_one_sees_the_folder_of_the_other(kind, tmp_path):
    """Both copies came with their rollback marker and look like themselves; what the first published is next to the second's folder."""
    publish = {
        "evolving": lambda place, out: EvolvingTable(place / STORE).publish(out, again=True),
        "series": lambda place, out: Series(place / STORE, SeriesScene.policy).publish(people(0, 90), out),
        "table": lambda place, out: published(place, out, tmp_path),
    }[kind]
    one, two = tmp_path / "slot_length", tmp_path / "two"
    one.mkdir()
    if kind == "evolving":
        evolving(one)
    elif kind == "series":
        Series(one / STORE, SeriesScene.policy).publish(people(0, 80))
    else:
        anonymize(people(200, 80), ANATOMY, store=one / STORE)
    shutil.copytree(one, two)
    publish(one, tmp_path / "out" / "a")
    (tmp_path / "out" / "a" / "release.json").stat()
    with pytest.raises(StateError, match="not in this store"):
        publish(two, tmp_path / "out" / "b")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]


def test_a_clock_that_is_set_back_changes_nothing(tmp_path, monkeypatch):
    """Numbers and digests make the order; time is only told."""
    series = Series(tmp_path / STORE, SeriesScene.policy)
    series.publish(people(0, 80), tmp_path / "r1")

    class Past(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return dt.datetime(1999, 1, 1, tzinfo=tz)

    monkeypatch.setattr("reticent.publication.gate.dt.datetime", Past)
    series.publish(people(0, 90), tmp_path / "r2")
    (tmp_path / STORE).write_bytes((tmp_path / STORE).read_bytes())
    places = [json.loads((tmp_path / f"r{n}" / "release.json").read_text())["store"] for n in (1, 2)]
    assert places[1]["predecessor"] == places[0]["digest"]
    with Store.open(tmp_path / STORE) as store:
        assert [entry.time[:4] for entry in store.ledger("series").entries][1] == "1999"
    series.publish(people(0, 95), tmp_path / "r3")


def tool(name):
    """A program of the server's package."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return debian[-1] if debian else shutil.which(name)


def dumped(postgres_url, folder):
    """Takes a dump, and brings it to another database of the same server."""
    import psycopg

    name = f"restored_{secrets.token_hex(4)}"
    subprocess.run([tool("pg_dump"), "--format=custom", f"--file={folder / 'dump'}", postgres_url], check=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    other = postgres_url.rpartition("/")[0] + f"/{name}"
    subprocess.run([tool("pg_restore"), f"--dbname={other}", folder / "dump"], check=True)
    return other


def test_a_dump_of_a_server_publishes_nobody_anew(postgres_url, tmp_path):
    table = EvolvingTable.create(postgres_url, EvolvingScene.policy)
    table.insert(people(0, 60))
    other = dumped(postgres_url, tmp_path)
    table.publish(tmp_path / "release-1")
    with pytest.raises(StateError, match="from a backup") as caught:
        EvolvingTable(other).publish()
    assert "store restore" in caught.value.hint
    (outcome,) = restore(other, other, [str(tmp_path / "release-1")]).values()
    assert outcome.closed.startswith("1 releases are newer")
    with pytest.raises(StateError, match="release the same people a second time"):
        EvolvingTable(other).publish()
    (outcome,) = restore(other, other, ["evolving=0"]).values()
    assert not outcome.closed
    assert EvolvingTable(other).publish().records.published == 60
    with pytest.raises(StateError, match="in a database server"):
        restore(tmp_path / "dump", other)
    EvolvingTable(postgres_url).insert(people(60, 10))  # where it lives it goes on


RESTORES = int(os.environ.get("RETICENT_RESTORES", "5"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_random_old_backups_regroup_nobody(tmp_path):
    """Backups of any age, restored at any time: what was published stays as it is, and the rest comes as it would have come."""
    rng = random.Random(19)
    sink, copies, fed = tmp_path / "out.ndjson", [], 0
    for number in range(-(-RESTORES // 2)):
        for _ in range(rng.randrange(1, 4)):
            feed(tmp_path, fed, more := rng.randrange(1, 30))
            fed += more
            stream(tmp_path, str(sink))
            copies.append(tmp_path / f"copy_{len(copies)}.db")
            backup(tmp_path / STORE, copies[-1])
        before = sink.read_bytes()
        restore(rng.choice(copies), tmp_path / STORE, [str(sink)])
        stream(tmp_path, str(sink))
        assert sink.read_bytes() == before, number
    shown = [json.loads(line) for line in sink.read_bytes().splitlines()]
    assert [line["seq"] for line in shown if line["type"] == "tuple"] == list(range(fed))


def changing(folder, step, release):
    """One more release of an evolving table; its change is made once."""
    table = EvolvingTable(folder / STORE, EvolvingScene.policy)
    if table.status()["changes"] == step:
        table.insert(people(40 * step, 40))
    table.publish(release, again=True)


def repeating(folder, step, release):
    """One more release of a series."""
    Series(folder / STORE, SeriesScene.policy).publish(people(0, 60 + 10 * step), release)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("publish", "policy"),
    [(changing, EvolvingScene.policy), (repeating, SeriesScene.policy)],
    ids=["evolving", "series"],
)
def test_random_old_backups_publish_no_release_twice(publish, policy, tmp_path):
    """A backup goes on where it knows every folder, and is closed where it does not, whether the folders say so, or nobody."""
    rng, copies = random.Random(19), []
    for step in range(-(-RESTORES // 4)):
        publish(tmp_path, step, tmp_path / f"release-{step:03}")
        copies.append(tmp_path / f"copy_{step}.db")
        backup(tmp_path / STORE, copies[-1])
        folders = sorted(tmp_path.glob("release-*"))
        old = rng.choice(copies)
        shown = rng.choice([[], [str(folder) for folder in folders]])
        (outcome,) = restore(old, tmp_path / STORE, shown).values()
        assert bool(outcome.closed) == (old != copies[-1])
        if outcome.closed:
            with pytest.raises(StateError, match="release the same people a second time"):
                publish(tmp_path, step + 1, tmp_path / "elsewhere" / "never")
            restore(copies[-1], tmp_path / STORE, [str(folder) for folder in folders])
    with Store.open(tmp_path / STORE) as store:
        (name,) = store.publishers()
        digests = [entry.digest for entry in store.ledger(name).entries]
        places = [json.loads((folder / "release.json").read_text())["store"] for folder in folders]
        assert [place["digest"] for place in places] == digests
        assert [place["number"] for place in places] == list(range(1, len(folders) + 1))
        if policy is SeriesScene.policy:
            assert verify(folders, policy, ledger=store.ledger(name)).holds
