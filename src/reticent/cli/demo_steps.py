"""The steps of the demo: the commands a user would type, run one after the other and explained."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.cli.output import say

if TYPE_CHECKING:
    import pyarrow as pa


def show_steps(folder: Path, rows: int) -> None:
    """All steps, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    _table(folder, rows)
    _evolving(folder, rows)
    _series(folder, rows)
    _feed(folder, rows)
    _audit(folder)
    _ask(folder)
    say(f"\nAll files are in {folder}. Next, your own data: reticent init YOUR.csv")
    say("To see it in a browser: make serve")


def _title(number: int, text: str) -> None:
    line = f"{number}. {text}"
    say(f"\n{line}\n{'-' * len(line)}")


def _run(*args: Any) -> None:
    """Shows a command as a user would type it, and runs it."""
    from reticent.cli import app

    words = [str(arg) for arg in args]
    say(f"\n$ reticent {shlex.join(words)}")
    app(words, standalone_mode=False)


def _table(folder: Path, rows: int) -> None:
    _title(1, "One table, released once")
    say("A hospital that does not exist, with a policy beside it that says what must hold.")
    data, policy = folder / "hospital.csv", folder / "hospital.policy.yaml"
    _run("datasets", "hospital", "-n", rows, "--seed", 1, "-o", data)
    _run("policy", "check", policy)
    say("\nAnatomy keeps the quasi-identifiers exact and mixes the diagnoses of each group.")
    _run("anonymize", data, "-p", policy, "-o", folder / "anatomy")
    _run("verify", folder / "anatomy", "-p", policy)
    say("\nGeneralising instead: the best release in which nobody stands alone.")
    general = folder / "general.policy.yaml"
    general.write_text(_general(policy))
    _run("anonymize", data, "-p", general, "-o", folder / "general")
    _run("verify", folder / "general", "-p", general)


def _general(policy: Path) -> str:
    """The same columns under k-anonymity and l-diversity, by the optimal search."""
    import yaml

    rules = yaml.safe_load(policy.read_text())
    rules["privacy"] = {"k": 5, "l": 3, "suppression": 0.02}
    rules["table"] = {"method": "optimal"}
    return yaml.safe_dump(rules, sort_keys=False)


def _evolving(folder: Path, rows: int) -> None:
    _title(2, "A table that changes")
    say(
        "The first nine tenths today, the rest tomorrow, some patients removed. Each diagnosis stands among ten candidates, the same in every version."
    )
    from reticent.connectors.files import read_table, write_table

    data, store = read_table(folder / "hospital.csv"), folder / "evolving.db"
    cut = rows * 9 // 10
    parts: dict[str, pa.Table] = {
        "today": data.slice(0, cut),
        "tomorrow": data.slice(cut),
        "gone": data.slice(0, rows // 20).select(["patient_id"]),
    }
    for name, part in parts.items():
        write_table(part, folder / f"{name}.csv")
    policy = folder / "hospital.policy.yaml"
    _run("evolve", "init", store, "-p", policy)
    _run("evolve", "insert", store, folder / "today.csv")
    _run("evolve", "publish", store, "-o", folder / "version-1")
    _run("evolve", "insert", store, folder / "tomorrow.csv")
    _run("evolve", "delete", store, folder / "gone.csv")
    _run("evolve", "publish", store, "-o", folder / "version-2")
    _run("verify", folder / "version-1", folder / "version-2", "-p", policy, "--ledger", store)


def _series(folder: Path, rows: int) -> None:
    _title(3, "The same patients, again and again")
    say("Their illnesses progress between the releases, a reader knows how, and the candidates progress likewise.")
    place = folder / "series"
    _run("datasets", "series", "-n", max(1000, rows // 10), "--releases", 3, "--seed", 1, "-o", place)
    policy, store = place / "policy.yaml", folder / "series.db"
    for number in (1, 2, 3):
        _run(
            "republish",
            place / f"release_{number}.csv",
            "-p",
            policy,
            "--store",
            store,
            "-o",
            folder / f"series-{number}",
        )
    _run("verify", *(folder / f"series-{number}" for number in (1, 2, 3)), "-p", policy, "--ledger", store)


def _feed(folder: Path, rows: int) -> None:
    _title(4, "A feed that cannot wait")
    say(
        "Each record is released the moment it arrives, its diagnosis among ten candidates; a prior beside it says what readers know."
    )
    feed, policy = folder / "feed.csv", folder / "feed.policy.yaml"
    _run("datasets", "feed", "-n", rows, "--seed", 1, "-o", feed)
    _run("stream", feed, "-p", policy, "--store", folder / "feed.db", "--to", folder / "feed.ndjson")
    _run("verify", folder / "feed.ndjson", "-p", policy)
    with (folder / "feed.ndjson").open() as lines:
        say("The first lines of the released stream:")
        for _ in range(3):
            say(f"  {next(lines).strip()[:150]}")


def _audit(folder: Path) -> None:
    _title(5, "Somebody tries to break it")
    report = folder / "audit.html"
    policy = folder / "general.policy.yaml"
    _run("audit", folder / "general", "-p", policy, "--original", folder / "hospital.csv", "-o", report)
    say(f"The report is one file for a browser: {report}")


def _ask(folder: Path) -> None:
    _title(6, "What the recipient gets")
    from collections import Counter

    from reticent.connectors.files import read_table
    from reticent.read.received import read

    say("Whoever receives a release asks it, and gets an interval. The hospital alone knows the truth beside it.")
    rows = read_table(folder / "hospital.csv").to_pylist()
    chapter = Counter(row["diagnosis"][0] for row in rows).most_common(1)[0][0]
    where = "length_of_stay>=7"
    _run("ask", folder / "anatomy", "--value", f"{chapter}*", "--where", where, "--by", "sex")
    for row in read(folder / "anatomy").count(f"{chapter}*", where=where, by="sex").to_list():
        mine = [r for r in rows if r["sex"] == row["sex"] and r["diagnosis"].startswith(chapter)]
        truth = sum(int(r["length_of_stay"]) >= 7 for r in mine)
        words = "holds" if row["low"] <= truth <= row["high"] else "misses (as one in twenty may)"
        say(f"  {row['sex']}: the truth is {truth}; the interval {row['low']:.0f} to {row['high']:.0f} {words} it.")
