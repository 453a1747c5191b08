"""The scenarios: commands as a user types them, with seeds, and what they leave behind."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import random
import shlex
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from golden_files import (
    STORE,
    normalized_json,
    published,
    release_files,
    rounded,
    store_content,
    symbolic,
    without_place,
)
from golden_inputs import write_inputs

from reticent.cli import main

HERE = Path(__file__).parent
POLICIES = HERE / "bytes" / "policies"
KEY = {"current": "k1", "keys": {"k1": "5a" * 32}}


@dataclass(frozen=True)
class Scenario:
    """Commands in a folder with the inputs and the policies.

    Attributes:
        name: of the folder with its goldens.
        policy: the policy's file, without its ending; `-p POLICY` in the commands.
        commands: one per line; what `-o NAME` and `--to NAME` name is recorded, unless it is `unrecorded`.
        whole: README.txt and codebook.json are recorded as well, which methods of one shape and releases of one series share.
        store: the content of the store is recorded.
    """

    name: str
    policy: str
    commands: str
    whole: bool = False
    store: bool = False


def _table(method: str, policy: str = "table", *, whole: bool = False) -> Scenario:
    command = f"anonymize people.csv -p POLICY -o release --method {method} --seed 1"
    return Scenario(f"table-{method}", policy, command, whole=whole)


def _series(method: str, policy: str = "series", *, whole: bool = False, store: bool = False) -> Scenario:
    """Two releases; of the methods that share a shape the second one is recorded."""
    command = "republish people-{n}.csv -p POLICY --store store.db -o {place} --seed 1 --method '{method}'"
    places = ("release-1" if whole else "unrecorded", "release-2")
    commands = [command.format(n=number, method=method, place=place) for number, place in enumerate(places, 1)]
    commands[1] += " --json" if store else ""
    return Scenario(f"series-{method.replace('*', '-star')}", policy, "\n".join(commands), whole=whole, store=store)


def _evolving(method: str, policy: str = "anatomy", *, whole: bool = False, store: bool = False) -> Scenario:
    """Methods of the research papers are made for one publication, the veil for several."""
    commands = [f"evolve init store.db -p POLICY --method {method} --seed 1", "evolve insert store.db people-1.csv"]
    if method == "veil":
        commands += ["evolve publish store.db -o release-1"]
    if whole:
        commands += ["evolve update store.db changed.csv --json", "evolve delete store.db deleted.csv --by patient"]
    commands += [f"evolve publish store.db -o release{'-2' if method == 'veil' else ''} --json"]
    if whole:
        commands += ["evolve status store.db --json"]
    return Scenario(f"evolving-{method}", policy, "\n".join(commands), whole=whole, store=store)


def _stream(method: str, policy: str = "stream", data: str = "people.csv", *, store: bool = False) -> Scenario:
    command = f"stream {data} -p POLICY --store store.db --to lines.ndjson --method {method} --seed 1 --json"
    return Scenario(f"stream-{method}", policy, command, whole=True, store=store)


SCENARIOS = (
    Scenario(
        "table-optimal",
        "table",
        """
        risk people.csv --json
        anonymize people.csv -p POLICY -o unrecorded --draft --seed 1 --json
        drafts unrecorded --json
        anonymize people.csv -p POLICY -o release --store store.db --seed 1 --json
        verify release -p POLICY --original people.csv --json
        audit release -p POLICY --original people.csv -o audit.html --seed 1
        ask release --where age>=40 --by sex --json
        ledger store.db --json
        store check store.db --json
        """,
        whole=True,
        store=True,
    ),
    Scenario("parquet", "table", "anonymize people.csv -p POLICY -o release --format parquet --seed 1"),
    *map(_table, ("auto", "local", "mondrian", "supervised")),
    _table("anatomy", "anatomy", whole=True),
    Scenario("identifiers", "identifiers", "anonymize days.csv -p POLICY -o release --seed 1 --json"),
    Scenario(
        "table-veil",
        "veil",
        """
        prior past.csv -p POLICY -o fitted.csv --by sex --epsilon 20 --seed 1 --json
        anonymize people.csv -p POLICY -o release --store store.db --seed 1 --json
        audit release -p POLICY -o audit.html --seed 1
        ask release --by sex --json
        ledger store.db --json
        """,
        whole=True,
        store=True,
    ),
    Scenario("table-veil-household", "household", "anonymize homes.csv -p POLICY -o release --store store.db --seed 1"),
    Scenario("table-veil-totals", "totals", "anonymize people.csv -p POLICY -o release --store store.db --seed 1"),
    Scenario(
        "linked",
        "linked",
        "anonymize linked -p POLICY -o release --seed 1 --json",
        whole=True,
    ),
    _series("m-distinct", whole=True, store=True),
    *map(_series, ("m-distinct*", "m-invariance", "l-diversity")),
    _series("veil", "veil-kernel", whole=True, store=True),
    _evolving("indexed", whole=True, store=True),
    *map(_evolving, ("enc", "encc", "eac", "red")),
    _evolving("veil", "veil", whole=True, store=True),
    _stream("delay-free", store=True),
    _stream("castle", store=True),
    _stream("veil", "veil-kernel", "visits.csv", store=True),
)


def run(scenario: Scenario, folder: Path) -> dict[str, bytes]:
    """What a scenario publishes and stores, by the name of the file, as it is compared."""
    write_inputs(folder)
    shutil.copytree(POLICIES, folder, dirs_exist_ok=True)
    (folder / "study.key").write_text(json.dumps(KEY))
    (folder / "study.key").chmod(0o600)
    policy = f"{scenario.policy}.yaml"
    files: dict[str, bytes] = {}
    known: dict[str, str] = {}
    with contextlib.chdir(folder), _pinned():
        for number, line in enumerate(filter(None, map(str.strip, scenario.commands.splitlines())), 1):
            words = [policy if word == "POLICY" else word for word in shlex.split(line)]
            if output := _command(words):
                files[f"{number}-{words[0]}.stdout.json"] = rounded(normalized_json(output))
            files |= _outputs(words, scenario, known)
        if scenario.store:
            known |= _blobs(folder / "store.db")
            files[STORE] = store_content(folder / "store.db")
    files = {name: without_place(content, folder) for name, content in files.items()}
    texts, digests = symbolic(files, known)
    return texts | {"digests.json": json.dumps(digests, indent=1).encode() + b"\n"}


def _command(words: list[str]) -> bytes:
    """Runs a command; gives its last line of standard output."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words)
    except SystemExit as end:
        if end.code:
            raise AssertionError(f"{shlex.join(words)}: {err.getvalue()}") from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return (out.getvalue().splitlines() or [""])[-1].encode()


def _outputs(words: list[str], scenario: Scenario, known: dict[str, str]) -> dict[str, bytes]:
    """The files that a command has written; `known` learns their digests."""
    names = [after for word, after in itertools.pairwise(words) if word in ("-o", "--to") and after != "unrecorded"]
    files: dict[str, bytes] = {}
    for place in map(Path, names):
        if place.is_dir():
            known |= {
                hashlib.sha256(path.read_bytes()).hexdigest(): f"(sha256 of {path.name})" for path in place.iterdir()
            }
            inside = release_files(place)
            shared = () if scenario.whole and not place.name.endswith("-2") else ("README.txt", "codebook.json")
            files |= {f"{place}/{name}": content for name, content in inside.items() if name not in shared}
        else:
            stream_files = sorted(
                path for path in Path().glob(f"{place.stem}*") if path.suffix in (".json", ".csv", ".ndjson", ".txt")
            )
            files |= dict(map(published, stream_files))
    return files


def _blobs(store: Path) -> dict[str, str]:
    """Digests of the blobs of a store, named by table and column."""
    with sqlite3.connect(store) as connection:
        rows = connection.execute("SELECT number, payload FROM reticent_outbox ORDER BY publisher, number").fetchall()
    connection.close()
    return {hashlib.sha256(payload).hexdigest(): f"(sha256 of stored release {number + 1})" for number, payload in rows}


@contextlib.contextmanager
def _pinned() -> Iterator[None]:
    """The operating system's randomness is always the same: ids of stores, keys that no seed gives."""

    def bytes_of(size: int) -> bytes:
        return hashlib.shake_256(b"golden").digest(size)

    places: list[tuple[object, str, Callable[[int], bytes]]] = [
        (os, "urandom", os.urandom),
        (random, "_urandom", random._urandom),
    ]
    for module, name, _ in places:
        setattr(module, name, bytes_of)
    try:
        yield
    finally:
        for module, name, original in places:
            setattr(module, name, original)
