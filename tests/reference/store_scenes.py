"""Publications on a store that stop in the middle, and how each goes on: what flips, torn writes and restores are tried on.

A scene builds a folder with a store as a killed process leaves it (with its log), and goes on from a copy of that folder;
what comes out of going on is compared with what comes out of an untouched copy.
"""

import hashlib
import os
import pickle
import shutil
import signal
import sqlite3
import sys
import traceback
from pathlib import Path

import numpy as np
import orjson
import pandas as pd  # noqa: F401  pyarrow loads it with the first array; as below, once before the first fork and not in each
import pyarrow as pa
from scipy.sparse import csgraph  # noqa: F401

from reticent import EvolvingTable, Series
from reticent.connectors.stream import Stream
from reticent.engine.evolving import indexed  # noqa: F401
from reticent.engine.series import m_distinct  # noqa: F401
from reticent.engine.stream import delay_free  # noqa: F401
from reticent.errors import ReticentError
from reticent.policy import Policy
from reticent.publication import single  # noqa: F401
from reticent.release.codec import table_bytes
from reticent.store import Store, database

ILLNESSES = {"*": {f"group {g}": [f"illness {2 * g + i}" for i in range(2)] for g in range(4)}}
COLUMNS = {
    "patient": "identifier",
    "line": "plain",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "sex": "quasi",
    "ill": "sensitive",
}
TREE = {"role": "sensitive", "hierarchy": {"tree": ILLNESSES}}
BASE = {"version": 1, "person": "patient", "columns": COLUMNS}


def people(first, n, seed=1):
    """Persons number `first` to `first + n`; the same number is always the same person."""
    ages, sexes, ills = (
        np.random.default_rng([seed, high]).integers(0, high, first + n)[first:] for high in (90, 2, 8)
    )
    return pa.table(
        {
            "patient": [f"patient {number}" for number in range(first, first + n)],
            "line": pa.array(range(first, first + n), pa.int64()),
            "age": pa.array(ages, pa.int64()),
            "sex": ["m" if sex else "f" for sex in sexes],
            "ill": [f"illness {ill}" for ill in ills],
        }
    )


def ndjson(table):
    return b"".join(orjson.dumps(row) + b"\n" for row in table.to_pylist())


def nothing():
    """After a step."""


class StreamScene:
    """A stream that was pushed to, the last answer stored and never taken."""

    after = staticmethod(nothing)

    policy = Policy.from_dict(BASE | {"columns": COLUMNS | {"ill": TREE}, "stream": {"method": "delay-free", "l": 3}})

    def build(self, folder):
        feed = Stream(self.policy, store=folder / "store.db", seed=None)
        for number in range(6):
            feed.push(ndjson(people(40 * number, 40)))
            self.after()
        return feed

    def go_on(self, folder):
        with Stream(self.policy, store=folder / "store.db") as feed:
            lines = feed.undelivered + feed.push(ndjson(people(240, 40)))
            letters = [(letter.position, letter.reason) for letter in feed.dead_letters()]
        return lines, letters


class EvolvingScene:
    """A table that was changed several times, before its publication."""

    policy = Policy.from_dict(BASE | {"evolving": {"method": "indexed", "l": 3}})

    def build(self, folder):
        table = EvolvingTable(folder / "store.db", self.policy)
        table.insert(people(0, 60))
        table.delete([f"patient {number}" for number in range(5)])
        table.insert(people(60, 20))
        return table

    def go_on(self, folder):
        table = EvolvingTable(folder / "store.db")
        table.insert(people(80, 20))
        return _plain(table.publish()), table.status()


class SeriesScene:
    """A series with two releases."""

    policy = Policy.from_dict(
        BASE
        | {
            "columns": COLUMNS | {"ill": TREE | {"updates": {"tree": 1}}},
            "series": {"method": "m-distinct", "m": 3, "max_risk": 0.5},
        }
    )

    def build(self, folder):
        series = Series(folder / "store.db", self.policy)
        series.publish(people(0, 80))
        series.publish(people(0, 90))
        return series

    def go_on(self, folder):
        return _plain(Series(folder / "store.db", self.policy).publish(people(0, 100)))


SCENES = {"stream": StreamScene(), "evolving": EvolvingScene(), "series": SeriesScene()}


def _plain(release):
    return {name: table_bytes(table) for name, table in release.tables.items()}


def killed(scene, folder):
    """The folder of a scene as a kill leaves it: the store's file, its log, its rollback marker."""
    work = folder / "work"
    work.mkdir()
    Store.open(work / "store.db").close()
    # A reader keeps the log from being written back; the process that builds ends without closing the store.
    keeper = sqlite3.connect(work / "store.db")
    keeper.execute("BEGIN")
    keeper.execute("SELECT * FROM reticent_meta").fetchall()
    assert apart(lambda: _built(scene, work)) == "built"
    shutil.copytree(work, folder / "killed")
    keeper.close()
    (folder / "killed" / "store.db-shm").unlink(missing_ok=True)
    return folder / "killed"


def _built(scene, folder):
    database.BUSY_MS = 100  # a deletion would wait half a minute for the reader to let the log be cut
    scene.keep = scene.build(folder)
    return "built"


def closed(scene, folder):
    """The folder of a scene whose store was closed in order: everything is in its one file."""
    place = copied(killed(scene, folder), folder / "closed")
    with Store.open(place / "store.db") as store, store.transaction():
        pass
    return place


def outcome(scene, folder):
    """What going on gives: a digest, or the name of our error; 'crash' for anything else."""
    return apart(lambda: _tried(scene, folder))


def apart(work):
    """The words of some work in a process of its own, which never has threads when it begins and ends without farewell."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        signal.alarm(120)
        try:
            os.write(write, work().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return said if said and not status else f"crash {status}"


def _tried(scene, folder):
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    try:
        return "same " + hashlib.sha256(pickle.dumps(scene.go_on(folder))).hexdigest()
    except ReticentError as error:
        return f"refused {type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - this is what is looked for
        return f"crash {''.join(traceback.format_exception(error)[-4:])}"


def copied(folder, place):
    if Path(place).exists():
        shutil.rmtree(place)
    return Path(shutil.copytree(folder, place))
