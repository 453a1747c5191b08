"""Lets calls of the operating system fail, or cuts the power at any of them, and says what came of it.

A process of its own with `faults.c` loaded before libc: it forks, and must have no threads.

    LD_PRELOAD=faults.so python fault_harness.py FOLDER stream|evolving|series|table FAULTS CUTS SEED [hasty]

FAULTS calls fail and at as many the process is killed (0: at every one of them); the power is cut CUTS times.
"""

import ast
import ctypes
import errno
import json
import os
import random
import shutil
import signal
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from store_scenes import BASE, EvolvingScene, SeriesScene, StreamScene, apart, ndjson, people

from reticent import EvolvingTable, Series, anonymize
from reticent.connectors.stream import FileSource, Stream
from reticent.errors import ReticentError
from reticent.policy import Policy
from reticent.store import Store, database
from reticent.verify import verify

LIBC = ctypes.CDLL(None)
OPS = struct.Struct("<QI")


class StreamRun:
    """A stream from file to file."""

    def prepare(self, folder):
        (folder / "feed.ndjson").write_bytes(ndjson(people(0, 160)))

    def work(self, folder):
        with Stream(StreamScene.policy, store=folder / "store.db", seed=7) as stream:
            stream.run(FileSource(str(folder / "feed.ndjson"), block=4096), str(folder / "out.ndjson"))

    def seen(self, folder):
        out = folder / "out.ndjson"
        return out.read_bytes() if out.exists() else b""

    def fits(self, before, after):
        """What the world had seen is the beginning of what it sees in the end, which is what comes without a fault."""
        return after.startswith(before) and after == self.expected


class FoldersRun:
    """Releases in folders, each made once however often the script is begun anew."""

    policy, publishers = None, ()

    def prepare(self, folder):
        pass

    def seen(self, folder):
        """The digests of what stands under its name: a folder is whole, or it is not there."""
        digests = []
        for place in sorted(folder.glob("release-*")):
            assert verify(place, self.policy).holds, place
            digests.append(json.loads((place / "release.json").read_text())["store"]["digest"])
        return digests

    def fits(self, before, after):
        return after[: len(before)] == before and len(after) == len(self.expected)

    def check(self, folder):
        """Every release of the store stands in one folder, and none was made twice."""
        with Store.open(folder / "store.db", create=False) as store:
            entries = [entry for name in store.publishers() for entry in store.ledger(name).entries]
        assert [entry.digest for entry in entries] == self.seen(folder)


class EvolvingRun(FoldersRun):
    """A table that changes and is published twice."""

    policy = EvolvingScene.policy

    def work(self, folder):
        table = EvolvingTable(folder / "store.db", EvolvingScene.policy)
        for number in (0, 1):
            if table.status()["changes"] == number:
                table.insert(people(60 * number, 60))
            if not (folder / f"release-{number}").exists():
                table.publish(folder / f"release-{number}", again=True)


class SeriesRun(FoldersRun):
    """Two releases of a series."""

    policy = SeriesScene.policy

    def work(self, folder):
        series = Series(folder / "store.db", self.policy)
        for number in (0, 1):
            if not (folder / f"release-{number}").exists():
                series.publish(people(0, 60 + 10 * number), folder / f"release-{number}")


class TableRun(FoldersRun):
    """Two tables of strangers in one store."""

    policy = Policy.from_dict(BASE | {"privacy": {"l": 3, "suppression": 0.2}, "table": {"method": "anatomy"}})

    def work(self, folder):
        for number in (0, 1):
            if not (folder / f"release-{number}").exists():
                release = anonymize(people(60 * number, 60), self.policy, store=folder / "store.db")
                release.to_dir(folder / f"release-{number}")


RUNS = {"stream": StreamRun, "evolving": EvolvingRun, "series": SeriesRun, "table": TableRun}


def tried(run, folder):
    try:
        run.work(folder)
    except ReticentError as error:
        return f"refused {type(error).__name__}: {error}"
    return "done"


def ended(run, folder):
    """Goes on until all is done, and looks at it."""
    run.work(folder)
    getattr(run, "check", lambda _: None)(folder)
    return "done"


def afresh(run, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run.prepare(folder)
    return folder


def loud(work):
    """Some work in a process of its own; what it raises is its answer."""

    def words():
        try:
            return work()
        except BaseException as error:  # noqa: BLE001 - this is what is looked for
            return f"crash {type(error).__name__}: {error}"

    return apart(words)


def straight(run, folder):
    """Without a fault: what comes out, and how many calls it took."""

    def work():
        LIBC.fault_arm(os.fsencode(folder) + b"/", ctypes.c_long(-1), 0, 0)
        run.work(folder)
        return str(LIBC.fault_calls())

    calls = loud(work)
    run.expected = run.seen(folder)
    return int(calls)


FAILURES = {"errors": ((errno.EIO, 0), (errno.ENOSPC, 1)), "kills": ((0, 0),)}


def failing(run, folder, count, rng, way):
    """One call fails, or that one and all that follow, or the process ends there; then all is well again."""
    calls = straight(run, afresh(run, folder))
    places = sorted(rng.sample(range(calls), min(count, calls)) if count else range(calls))
    told, bad = {"calls": calls, "tried": len(places), "done": 0, "refused": 0, "killed": 0}, []
    for number, at in enumerate(places):
        place = afresh(run, folder)
        code, on = FAILURES[way][number % len(FAILURES[way])]

        def work(at=at, code=code, on=on, place=place):
            LIBC.fault_arm(os.fsencode(place) + b"/", ctypes.c_long(at), code, on)
            return tried(run, place)

        said = loud(work).replace(f"crash {signal.SIGKILL}", "killed")
        before, word = loud(lambda place=place: repr(run.seen(place))), said.partition(" ")[0]
        after = loud(lambda place=place: ended(run, place))
        if (
            word not in told
            or before.startswith("crash")
            or after != "done"
            or not run.fits(ast.literal_eval(before), run.seen(place))
        ):
            bad.append((at, code, on, said, before[:200], after))
        else:
            told[word] += 1
    return told, bad


def noted(run, folder, log):
    """Every call that changed a file, in order."""

    def work():
        LIBC.fault_note(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC))
        LIBC.fault_arm(os.fsencode(folder) + b"/", ctypes.c_long(-1), 0, 0)
        run.work(folder)
        return "done"

    assert loud(work) == "done"
    data, at, ops = log.read_bytes(), 0, []
    while at < len(data):
        what, size = data[at : at + 1], struct.unpack_from("<I", data, at + 1)[0]
        path = data[at + 5 : at + 5 + size].decode()
        at += 5 + size
        offset, size = OPS.unpack_from(data, at)
        at += OPS.size
        ops.append((what.decode(), path, offset, data[at : at + size]))
        at += size
    return [op for op in ops if not op[1].endswith(("-shm", ".lock"))]


class File:
    """What the disk has, and what it was told since it was last waited for."""

    def __init__(self, data=b""):
        self.data, self.waiting = bytearray(data), []

    def sync(self):
        for op in self.waiting:
            self.apply(*op)
        self.waiting = []

    def apply(self, what, at, data):
        if what == "T":
            self.data = self.data[:at].ljust(at, b"\0")
        else:
            self.data = self.data.ljust(at, b"\0")
            self.data[at : at + len(data)] = data


def cut(ops, upto, rng, base):
    """The files after a power cut: what was synced, and of the rest everything, nothing, a beginning, or any of it."""
    files, folders = {path: File(data) for path, data in base.items()}, []
    for what, path, at, data in ops[:upto]:
        if what == "O":
            files.setdefault(path, File())
        elif what in "WT":
            files.setdefault(path, File()).waiting.append((what, at, data))
        elif what == "S" and path in files:
            files[path].sync()
        elif what == "D":
            folders.append(path)
        elif what == "U":
            files.pop(path, None)
            folders = [folder for folder in folders if folder != path]
        elif what in "RL":
            files, folders = _renamed(files, folders, path, data.decode(), keep=what == "L")
    mood = rng.choice(["lost", "torn", "any"])
    for file in set(files.values()):
        last = len(file.waiting) - 1
        for number, (what, at, data) in enumerate(file.waiting):
            if mood == "lost" or (mood == "any" and rng.random() < 0.5):
                continue
            torn = what == "W" and (mood == "any" or number == last)
            file.apply(what, at, data[: rng.randrange(len(data) + 1)] if torn else data)
    return files, folders


def _renamed(files, folders, old, new, *, keep):
    def moved(path):
        return new + path[len(old) :] if path == old or path.startswith(old + "/") else path

    gone = {path: file for path, file in files.items() if keep or moved(path) == path}
    return gone | {moved(path): file for path, file in files.items() if moved(path) != path}, [*map(moved, folders)]


def power(run, folder, count, rng):
    """The power fails at any call; then the machine starts again."""
    straight(run, afresh(run, folder))
    place = afresh(run, folder)
    base = {str(path): path.read_bytes() for path in place.iterdir()}
    ops = noted(run, place, folder.with_suffix(".log"))
    told, bad = {"calls": len(ops), "done": 0}, []
    for _ in range(count):
        upto = rng.randrange(len(ops) + 1)
        files, folders = cut(ops, upto, rng, base)
        shutil.rmtree(place)
        place.mkdir()
        for path in folders:
            Path(path).mkdir(parents=True, exist_ok=True)
        for path, file in files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(file.data)
        before = loud(lambda: repr(run.seen(place)))
        said = loud(lambda: ended(run, place))
        if (
            "not created completely" in said and before == "[]"
        ):  # the way out that it tells, where nothing was published
            for path in place.glob("store.db*"):
                path.unlink()
            told["begun anew"] = told.get("begun anew", 0) + 1
            said = loud(lambda: ended(run, place))
        if before.startswith("crash") or said != "done" or not run.fits(ast.literal_eval(before), run.seen(place)):
            bad.append((upto, ops[max(0, upto - 1)][:2], before[:200], said))
        else:
            told["done"] += 1
    return told, bad


if __name__ == "__main__":
    place, name, faults, cuts, seed, *bug = sys.argv[1:]
    if bug:  # the planted bug: commits do not wait for the disk
        database._on_sqlite = lambda raw, _: raw.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
    run, folder, rng = RUNS[name](), Path(place) / "work", random.Random(int(seed))
    found = {"power": power(run, folder, int(cuts), rng)}
    if not bug:
        found |= {way: failing(run, folder, int(faults), rng, way) for way in FAILURES}
    json.dump(found, sys.stdout)
