"""`reticent demo`: run and explain the commands that a user would type."""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.cli import options
from reticent.cli.output import say, suppress_progress

if TYPE_CHECKING:
    import pyarrow as pa


@click.command()
@click.option("--output", "-o", type=options.PATH, help="Folder for the files; default: a new folder under demo-out/.")
@click.option("--rows", type=click.IntRange(min=1000), default=20000, help="Number of records in the hospital data.")
def demo(output: Path | None, rows: int) -> None:
    """Create synthetic hospital data, release it in every way, and verify each release.

    Shows and explains each command.
    """
    if output is None:
        Path("demo-out").mkdir(exist_ok=True)
        output = Path(tempfile.mkdtemp(prefix="demo-", dir="demo-out"))
    show_steps(output, rows)


ALL_LINES = 99
"""Shows all lines of a command's output."""
_WIDTH = 118


def show_steps(folder: Path, rows: int) -> None:
    """Run all steps inside the folder, so that the commands are short."""
    folder.mkdir(parents=True, exist_ok=True)
    say(
        f"Working in {folder} with synthetic people. Lines after $ are what you would type; --help explains each command."
    )
    with contextlib.chdir(folder):
        _table(rows)
        _evolving_table(rows)
        _series(rows)
        _feed(rows)
        _audit()
        _ask()
    say(f"\nAll files are in {folder}. Next, try your own data: reticent init YOUR.csv. In a browser: make serve")


def _title(number: int, text: str) -> None:
    say(f"\n{number}. {text}")


def _run(*args: Any, first: int = 0, last: int = 0) -> None:
    """Show a command, run it, and show the first and last lines of its output."""
    from reticent.cli import app

    words = [str(arg) for arg in args]
    say(f"$ reticent {shlex.join(words)}")
    output = io.StringIO()
    with contextlib.redirect_stderr(output), suppress_progress():
        app(words, standalone_mode=False)
    lines = output.getvalue().splitlines()
    for line in lines if first + last >= len(lines) else [*lines[:first], *lines[len(lines) - last :]]:
        say(line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "\u2026")


def _table(rows: int) -> None:
    _title(
        1,
        "One table, released once: the policy states the requirements, and the verifier checks them before publication.",
    )
    _run("datasets", "hospital", "-n", rows, "--seed", 1, "-o", "hospital.csv")
    say("Dates, places and lengths of stay are generalized until every class has ten diagnoses.")
    _run("anonymize", "hospital.csv", "-p", "hospital.policy.yaml", "-o", "general", first=ALL_LINES)
    _run("verify", "general", "-p", "hospital.policy.yaml", first=3, last=1)
    say("The same table with the veil: each diagnosis is shown among ten candidates. The store keeps the key.")
    veil = ("--method", "veil", "--store", "veil.db")
    _run("anonymize", "hospital.csv", "-p", "hospital.policy.yaml", "-o", "veil", *veil, first=3)
    _run("verify", "veil", "-p", "hospital.policy.yaml", last=1)


def _evolving_table(rows: int) -> None:
    _title(2, "A table that changes: each diagnosis is shown among ten candidates, the same in every version.")
    from reticent.connectors.files import read_table, write_table

    data, cut = read_table("hospital.csv"), rows * 9 // 10
    parts: dict[str, pa.Table] = {
        "today": data.slice(0, cut),
        "tomorrow": data.slice(cut),
        "gone": data.slice(0, rows // 20).select(["patient_id"]),
    }
    for name, part in parts.items():
        write_table(part, f"{name}.csv")
    policy, store = "hospital.policy.yaml", "evolving.db"
    _run("evolve", "init", store, "-p", policy)
    _run("evolve", "insert", store, "today.csv", first=1)
    _run("evolve", "publish", store, "-o", "version-1", first=2)
    _run("evolve", "insert", store, "tomorrow.csv", first=1)
    _run("evolve", "delete", store, "gone.csv", first=1)
    _run("evolve", "publish", store, "-o", "version-2", first=1)
    _run("verify", "version-1", "version-2", "-p", policy, "--ledger", store, last=1)


def _series(rows: int) -> None:
    _title(3, "The same patients in release after release: diseases progress, and the candidates progress with them.")
    _run("datasets", "series", "-n", max(1000, rows // 10), "--releases", 3, "--seed", 1, "-o", "series")
    policy, store = "series/policy.yaml", "series.db"
    for number in (1, 2, 3):
        table, folder = f"series/release_{number}.csv", f"series-{number}"
        _run("republish", table, "-p", policy, "--store", store, "-o", folder, first=1)
    _run("verify", "series-1", "series-2", "series-3", "-p", policy, "--ledger", store, last=1)


def _feed(rows: int) -> None:
    _title(4, "A live feed: each record is released as soon as it arrives.")
    _run("datasets", "feed", "-n", rows, "--seed", 1, "-o", "feed.csv")
    _run("stream", "feed.csv", "-p", "feed.policy.yaml", "--store", "feed.db", "--to", "feed.ndjson", first=1)
    _run("verify", "feed.ndjson", "-p", "feed.policy.yaml", last=1)
    with Path("feed.ndjson").open(encoding="utf-8") as lines:
        say(f"  {next(lines)[:_WIDTH]}\u2026")


def _audit() -> None:
    _title(5, "The audit attacks the release.")
    policy = "hospital.policy.yaml"
    _run("audit", "general", "-p", policy, "--original", "hospital.csv", "-o", "audit.html", first=3, last=2)


def _ask() -> None:
    _title(6, "A recipient estimates counts from the release, with intervals. Only the hospital knows the true counts.")
    from collections import Counter

    from reticent.connectors.files import read_table
    from reticent.read.received import read

    rows = read_table("hospital.csv").to_pylist()
    chapter = Counter(row["diagnosis"][0] for row in rows).most_common(1)[0][0]
    where = "length_of_stay>=7"
    _run("ask", "veil", "--value", f"{chapter}*", "--where", where, "--by", "sex", first=ALL_LINES)
    for row in read("veil").count(f"{chapter}*", where=where, by="sex").to_list():
        mine = [r for r in rows if r["sex"] == row["sex"] and r["diagnosis"].startswith(chapter)]
        true_count = sum(int(r["length_of_stay"]) >= 7 for r in mine)
        words = "contains" if row["low"] <= true_count <= row["high"] else "misses (as one in twenty may)"
        say(
            f"  {row['sex']}: the true count is {true_count}; the interval {row['low']:.0f} to {row['high']:.0f} {words} it."
        )
