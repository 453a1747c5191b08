"""Evolving tables on a durable store: the command line, several writers, a kill at any moment."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import select
import signal
import struct
import warnings

import evolving_cases as cases
import numpy as np
import pyarrow.csv as pc
import pytest

from reticent.cli import main
from reticent.errors import DataError, GuaranteeError, InternalError, StateError
from reticent.publication.evolving import Evolving
from reticent.release import Release
from reticent.stateful import EvolvingTable
from reticent.store import Store
from reticent.verify import verify

NAME = "evolving"


def write(table, path):
    pc.write_csv(table, path)
    return str(path)


def run(*args):
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in args])
    return done.value.code


@pytest.fixture
def policy_file(tmp_path):
    def make(method, l=3):
        path = tmp_path / f"{method}.json"
        path.write_text(json.dumps(cases.policy(method, l).to_dict()))
        return path

    return make


@pytest.mark.parametrize("records", ["first", "last"])
def test_a_record_without_a_person_is_refused_whichever_records_count(records, tmp_path, capsys):
    (tmp_path / "prior.csv").write_text("value,count\na,5\nb,5\nc,5\n")
    columns = {"who": "identifier", "age": "quasi", "ill": "sensitive"}
    settings = {"version": 1, "person": {"column": "who", "records": records}, "columns": columns, "privacy": {"l": 2}}
    (tmp_path / "policy.json").write_text(json.dumps(settings | {"prior": {"file": "prior.csv"}}))
    (tmp_path / "data.csv").write_text("who,age,ill\np1,30,a\n,31,b\np2,32,c\n")
    assert not run("evolve", "init", tmp_path / "store.db", "-p", tmp_path / "policy.json")
    assert run("evolve", "insert", tmp_path / "store.db", tmp_path / "data.csv") == 3
    assert "identifier is missing" in capsys.readouterr().err


@pytest.mark.parametrize("method", cases.METHODS)
def test_a_history_on_the_command_line(method, policy_file, tmp_path, capsys):
    store, policy = tmp_path / "store.db", policy_file(method)
    values = [i % 7 for i in range(70)]
    assert run("evolve", "init", store, "-p", policy) == 0
    assert run("evolve", "insert", store, write(cases.table(range(70), values), tmp_path / "a.csv"), "--json") == 0
    done = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert done["inserted"] == done["records"] == 70
    assert run("evolve", "publish", store, "-o", tmp_path / "r1", "--json") == 0
    ids = cases.table(range(10), values[:10]).select(["id"])
    assert run("evolve", "delete", store, write(ids, tmp_path / "ids.csv")) == 0
    moved = cases.table([20, 21], [values[20], values[21]], zips=[900, 901])
    assert run("evolve", "update", store, write(moved, tmp_path / "u.csv")) == 0
    feed = cases.table([80, 30], [1, 2])
    feed = feed.append_column("op", [["insert", "delete"]])
    assert run("evolve", "apply", store, write(feed, tmp_path / "f.csv")) == 0
    safe = method == "veil"
    assert run("evolve", "publish", store, "-o", tmp_path / "r2") == (0 if safe else 4)
    if not safe:  # the verifier decides, and an attacker who has both would learn too much
        assert run("evolve", "publish", store, "-o", tmp_path / "r2", "--again") == 4
        assert not (tmp_path / "r2").exists()
    assert run("evolve", "status", store, "--json") == 0
    status = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert (status["records"], status["publications"], status["undelivered"]) == (60, 1 + safe, 0)
    if safe:
        second = Release.from_dir(tmp_path / "r2")
        assert {"z900", "z901", "z80"} <= set(second.tables["data"].column("zip").to_pylist())
        assert run("verify", tmp_path / "r1", tmp_path / "r2", "-p", policy) == 0


def test_wrong_uses_are_refused(policy_file, tmp_path):
    store, policy = tmp_path / "store.db", policy_file("veil")
    data = write(cases.table(range(3), [0, 1, 2]), tmp_path / "a.csv")
    assert run("evolve", "insert", store, data) == 5
    assert run("evolve", "init", store, "-p", policy) == 0
    assert run("evolve", "init", store, "-p", policy) == 5
    assert run("evolve", "delete", store, data) == 3
    assert run("evolve", "publish", store, "-o", tmp_path / "r") == 4
    assert not (tmp_path / "r").exists()
    assert run("evolve", "insert", store, data) == 0
    assert run("evolve", "publish", store, "-o", tmp_path / "r") == 0
    assert store.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("first", ["", "id\n", "who left\n"])
def test_a_file_of_ids_forgets_everybody_it_names_with_a_header_or_without(first, policy_file, tmp_path, capsys):
    store, ids = tmp_path / "store.db", tmp_path / "left.txt"
    data = write(cases.table(range(30), [i % 5 for i in range(30)]), tmp_path / "a.csv")
    assert run("evolve", "init", store, "-p", policy_file("veil")) == 0
    assert run("evolve", "insert", store, data) == 0
    people = cases.table(range(30), [0] * 30).column("id").to_pylist()
    ids.write_text(first + "".join(f"{person}\n" for person in people[3:6]))
    capsys.readouterr()
    assert run("evolve", "delete", store, ids, "--json") == 0
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["deleted"] == 3
    ids.write_text(first + "".join(f"{person}\n" for person in people[6:9]) + "nobody\n")
    assert run("evolve", "delete", store, ids) == 3
    assert "1 are not in the table; nothing was changed" in capsys.readouterr().err


def test_a_command_that_is_repeated_changes_nothing(policy_file, tmp_path, capsys):
    """After a crash nobody knows whether the last command came through; running it again must not double the records."""
    store, ids = tmp_path / "store.db", tmp_path / "ids.csv"
    data = write(cases.table(range(30), [i % 5 for i in range(30)]), tmp_path / "a.csv")
    assert run("evolve", "init", store, "-p", policy_file("veil")) == 0

    def records():
        capsys.readouterr()
        assert run("evolve", "status", store, "--json") == 0
        return json.loads(capsys.readouterr().out.strip().splitlines()[-1])["records"]

    assert run("evolve", "insert", store, data) == 0
    assert run("evolve", "insert", store, data) == 5
    assert records() == 30
    assert run("evolve", "insert", store, data, "--again") == 3  # the persons are there already
    assert records() == 30
    assert run("evolve", "delete", store, write(cases.table(range(30), [0] * 30).select(["id"]), ids)) == 0
    assert run("evolve", "insert", store, data) == 0  # another change lies between
    assert records() == 30


def test_the_ledger_remembers_and_a_reopened_table_goes_on_alike(tmp_path):
    policy, values = cases.policy("veil", 3), [i % 7 for i in range(70)]
    made = []
    for name in ("straight", "reopened"):
        place = tmp_path / name
        EvolvingTable.create(place, policy, seed=5)
        with EvolvingTable.open(place) as table:
            table.insert(cases.table(range(70), values))
            if name == "straight":
                table.delete(["3", "4"])
                made.append(table.publish(tmp_path / f"{name} 1"))
        if name == "reopened":
            with EvolvingTable.open(place) as table:
                table.delete(["3", "4"])
            with EvolvingTable.open(place) as table:
                made.append(table.publish(tmp_path / f"{name} 1"))
        with Store.open(place, create=False) as store:
            ledger = store.ledger(NAME)
            assert len(ledger) == 1
            assert len(ledger.persons[0]) == ledger.entries[0].records.published == 68
    assert all(made[0].tables[t].equals(made[1].tables[t]) for t in ("data",))


def test_a_refused_change_leaves_the_table_as_it_was(tmp_path):
    place = tmp_path / "store"
    EvolvingTable.create(place, cases.policy("indexed", 3), seed=1)
    with EvolvingTable.open(place) as table:
        table.insert(cases.table(range(30), [i % 5 for i in range(30)]))
        with pytest.raises(DataError):
            table.delete(["3", "nobody"])
        table.publish(tmp_path / "r1")
        with pytest.raises(GuaranteeError):
            table.publish(tmp_path / "r2")
        table.delete(["3"])
        assert table.status()["records"] == 29
        with pytest.raises(StateError), EvolvingTable.open(place, wait=0):
            pass


def test_a_stored_publication_is_delivered_and_not_made_again(tmp_path, monkeypatch):
    place = tmp_path / "store"
    EvolvingTable.create(place, cases.policy("veil", 3), seed=1)
    with EvolvingTable.open(place) as table:
        table.insert(cases.table(range(30), [i % 5 for i in range(30)]))
        with monkeypatch.context() as patch:
            patch.setattr(Release, "to_dir", lambda *_, **__: (_ for _ in ()).throw(OSError("crash")))
            with pytest.raises(OSError, match="crash"):
                table.publish(tmp_path / "lost")
        assert table.status()["undelivered"] == 1
    with EvolvingTable.open(place) as table:
        table.publish(tmp_path / "found")
        assert table.status()["publications"] == 1
        assert verify([tmp_path / "found"], table.policy).holds


# -- kills and several writers ------------------------------------------------------------------------------------


def forked(work) -> int:
    """Runs `work` in a child process that ends without clean-up; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def history(first):
    """Endless changes: step i inserts persons 3i..3i+2, every other one also deletes person 3i - 6."""
    i = first
    while True:
        feed = cases.table(range(3 * i, 3 * i + 3), [(i + k) % 7 for k in range(3)])
        ops = ["insert"] * 3
        if i % 2 == 0 and i >= 2:
            feed = cases.table([*range(3 * i, 3 * i + 3), 3 * i - 6], [*((i + k) % 7 for k in range(3)), 0])
            ops.append("delete")
        yield i, feed.append_column("op", [ops])
        i += 1


def expected(steps):
    gone = {str(3 * i - 6) for i in range(2, steps, 2)}
    return {str(p) for p in range(3 * steps)} - gone


@pytest.mark.parametrize("method", ["veil", "indexed"])
def test_a_kill_at_any_moment_leaves_whole_changes(method, tmp_path):
    seed = 20261
    chance = random.Random(seed)
    place = tmp_path / "store.db"
    EvolvingTable.create(place, cases.policy(method, 3))
    steps = 0
    for kill in range(int(os.environ.get("RETICENT_EVOLVE_KILLS", "12"))):
        reader, writer = os.pipe()

        def work(first=steps, folder=tmp_path / f"at {kill}", writer=writer):
            with EvolvingTable.open(place) as table:
                for i, feed in history(first):
                    table.apply(feed)
                    os.write(writer, struct.pack("<q", i + 1))
                    if i % 5 == 4:
                        with contextlib.suppress(GuaranteeError):  # the verifier may refuse a second one of `indexed`
                            table.publish(folder / str(i), again=True)

        child = forked(work)
        os.close(writer)
        for _ in range(chance.randrange(4)):
            steps = struct.unpack("<q", os.read(reader, 8))[0]
        select.select([], [], [], chance.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while message := os.read(reader, 8):
            steps = struct.unpack("<q", message)[0]
        os.close(reader)
        with EvolvingTable.open(place) as table:
            present = {p for p in table.engine.records.persons if p is not None}
            assert present in (expected(steps), expected(steps + 1)), f"seed {seed}, kill {kill}"
            steps += present == expected(steps + 1) and present != expected(steps)
            if kill % 10 == 9 and steps > 3:
                with contextlib.suppress(GuaranteeError):
                    table.publish(tmp_path / f"after {kill}", again=True)
    # A killed writer may leave a hidden draft; what bears the name that was asked for is whole.
    made = [p.parent for p in tmp_path.rglob("release.json") if not p.parent.name.startswith(".")]
    assert made
    made.sort(key=lambda folder: Release.from_dir(folder).explain["publication"])
    with Store.open(place, create=False) as store:
        assert verify(made, cases.policy(method, 3), ledger=store.ledger(NAME)).holds
        assert all(
            hashlib.sha256(entry.payload).hexdigest() == line.digest
            for entry, line in zip(store.outbox(NAME), store.ledger(NAME).entries, strict=True)
        )
        numbers = [entry.number for entry in store.ledger(NAME).entries]
        assert numbers == list(range(1, len(numbers) + 1))


def test_writers_wait_for_each_other_and_none_is_lost(tmp_path):
    place = tmp_path / "store.db"
    EvolvingTable.create(place, cases.policy("veil", 3))

    def work(start):
        for i in range(start, start + 5):
            with EvolvingTable.open(place) as table:
                table.insert(cases.table([i], [i % 7]))

    children = [forked(lambda start=start: work(start)) for start in (0, 100, 200)]
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    with EvolvingTable.open(place) as table:
        assert {p for p in table.engine.records.persons if p} == {str(s + i) for s in (0, 100, 200) for i in range(5)}


def test_a_history_on_postgresql(postgres_url, tmp_path):
    EvolvingTable.create(postgres_url, cases.policy("veil", 3))
    for change in range(3):
        batch = cases.table(range(40 * change, 40 * change + 40), [i % 7 for i in range(40)])
        EvolvingTable.open(postgres_url).insert(batch)
        with EvolvingTable.open(postgres_url) as table:
            table.delete([str(40 * change), str(40 * change + 1)])
            table.publish(tmp_path / str(change))
            assert table.status()["records"] == 38 * (change + 1)
    assert verify([tmp_path / str(i) for i in range(3)], cases.policy("veil", 3)).holds


def test_a_change_loads_what_it_names_and_counts_the_rest(tmp_path, monkeypatch):
    place, values, loaded = tmp_path / "store", [i % 7 for i in range(70)], []
    table = EvolvingTable.create(place, cases.policy("veil", 3, record="visit"))
    rows = cases.table(range(70), values).append_column("visit", [[f"r{i}" for i in range(70)]])
    real = Evolving._load

    def load(self, change):
        engine = real(self, change)
        loaded.append(sum(p is not None for p in engine.records.persons))
        return engine

    monkeypatch.setattr(Evolving, "_load", load)
    table.insert(rows)
    some = rows.slice(5, 3)
    with pytest.raises(DataError, match="already"):
        table.insert(some)
    table.update(some)
    assert table.delete(some.column("visit")).deleted == 3
    assert table.status()["records"] == 67
    table.insert(some)
    assert table.publish(tmp_path / "whole").records.published == 70
    assert loaded == [0, 3, 3, 3, 0, 70]
    with EvolvingTable.open(place) as again, pytest.raises(InternalError):
        again._driver._load(some).cut()


def trajectories(release):
    """Event and candidates of every person."""
    data = release.tables["data"]
    columns = [data.column(name).to_pylist() for name in ("zip", "event", "ill_1", "ill_2", "ill_3")]
    return {zip_code: rest for zip_code, *rest in zip(*columns, strict=True)}


def test_who_returns_after_a_correction_is_known_by_another_process(tmp_path):
    """Each call opens the store anew, so nothing is known but what the store says."""
    place = tmp_path / "store"
    EvolvingTable.create(place, cases.policy("veil", 3))
    EvolvingTable.open(place).insert(cases.table(range(50), [i % 7 for i in range(50)]))
    EvolvingTable.open(place).publish(tmp_path / "0")
    EvolvingTable.open(place).update(cases.table(range(20), [(i + 1) % 7 for i in range(20)]))
    first = trajectories(EvolvingTable.open(place).publish(tmp_path / "1"))
    EvolvingTable.open(place).delete([str(i) for i in range(10)])
    EvolvingTable.open(place).insert(cases.table(range(10), [(i + 1) % 7 for i in range(10)]))
    second = trajectories(EvolvingTable.open(place).publish(tmp_path / "2"))
    assert second == first
    assert [first[f"z{i}"][0] for i in (0, 10, 20)] == [1, 1, 0]
    EvolvingTable.open(place).update(cases.table([0], [5]))
    assert trajectories(EvolvingTable.open(place).publish(tmp_path / "3"))["z0"][0] == 2


def test_the_ledger_links_persons_over_all_publications(tmp_path):
    place = tmp_path / "store"
    EvolvingTable.create(place, cases.policy("veil", 3))
    for part in range(3):
        EvolvingTable.open(place).insert(cases.table(range(30 * part, 30 * part + 30), [i % 7 for i in range(30)]))
        EvolvingTable.open(place).delete(["0"])
        EvolvingTable.open(place).insert(cases.table([0], [0]))
        EvolvingTable.open(place).publish(tmp_path / str(part))
    with Store.open(place, create=False) as store:
        ledger = store.ledger(NAME)
    persons = [set(listed.tolist()) for listed in ledger.persons]
    assert persons[0] < persons[1] < persons[2]
    assert [len(listed) for listed in persons] == [30, 60, 90]


def test_record_ids_name_single_records_of_one_person(tmp_path):
    place = tmp_path / "store"
    EvolvingTable.create(place, cases.policy("indexed", 3, record="visit"))
    rows = cases.table([1, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])
    rows = rows.append_column("visit", [[f"r{i}" for i in range(6)]])
    with EvolvingTable.open(place) as table:
        table.insert(rows)
        with pytest.raises(DataError, match="already"):
            table.insert(rows.slice(0, 1))
        table.delete(["r1"])
        assert table.status()["records"] == 5
    with EvolvingTable.open(place) as table:
        table.delete(["1"], by="id")
        assert table.status()["records"] == 4
        assert np.count_nonzero([name is not None for name in table.engine.records.record_ids]) == 4
