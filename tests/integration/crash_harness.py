"""Runs a stream in child processes and kills them (SIGKILL) at random moments; then lets one finish.

Forking from a process that has imported everything makes a restart cost milliseconds instead of half a second.

    python crash_harness.py FOLDER KILLS SEED [forgetful]
"""

import os
import random
import select
import signal
import sys
from pathlib import Path

import pyarrow as pa
import sqlalchemy.dialects.sqlite  # noqa: F401  imported before the first fork, as all below

from reticent.connectors.stream import FileSource, Stream
from reticent.engine.stream import veil  # noqa: F401
from reticent.publication.stream import StreamPublication


class Reporting(Stream):
    """Says when a batch is through, so that kills hit a working stream however slow the machine is."""

    said = -1

    def _deliver(self, *step):
        super()._deliver(*step)
        os.write(self.said, b".")


class Forgetful(Reporting):
    """The planted bug: the journal is not read back."""

    def _resume(self):
        StreamPublication.replay = lambda *_: None
        super()._resume()


def run(folder, place, kind):
    with kind(folder / "policy.yaml", store=place / "store.db", seed=7) as stream:
        stream.run(FileSource(str(folder / "feed.csv"), block=2048), str(place / "out.ndjson"))


def child(folder, place, kind):
    """Starts a runner; gives its process and the end of the pipe it reports its batches through."""
    reports, said = os.pipe()
    pid = os.fork()
    if pid:
        os.close(said)
        return pid, reports
    status = 1
    try:
        kind.said = said
        run(folder, place, kind)
        status = 0
    except BaseException as error:  # noqa: BLE001
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stderr.flush()
        os._exit(status)


def finishes(pid, told, batches, seconds):
    """Lets the child release some batches, then go on for a moment at most; kills it then."""
    while batches and os.read(told, 1):
        batches -= 1
    watch = os.pidfd_open(pid)
    ended, _, _ = select.select([watch], [], [], seconds)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(watch)
    os.close(told)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        sys.exit(code)
    return code == 0


def size(path):
    return path.stat().st_size if path.exists() else 0


def main(folder, kills, seed, kind):
    """Rounds of the same stream until it was killed often enough; the last round may finish."""
    rng = random.Random(seed)
    killed, moved, number = 0, 0, 0
    while True:
        place = folder / f"round_{number}"
        place.mkdir()
        finished = False
        while not finished:
            before = size(place / "out.ndjson")
            batches = rng.randrange(6)
            # Without a batch the kill falls somewhere into the start.
            wait = rng.random() * (0.02 if batches else 0.2)
            started = child(folder, place, kind)
            finished = finishes(*started, batches, wait) if killed < kills else finishes(*started, 0, None)
            killed += not finished
            moved += not finished and size(place / "out.ndjson") > before
        number += 1
        if killed >= kills:
            break
    sys.stdout.write(f"{killed} {moved} {number}\n")


if __name__ == "__main__":
    pa.array(["a"])  # loads pandas where it is installed, which takes longer than a whole run
    bugs = {"forgetful": Forgetful}
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), bugs.get("".join(sys.argv[4:]), Reporting))
