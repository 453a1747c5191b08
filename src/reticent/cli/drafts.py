"""`reticent drafts`: compare the drafts of `anonymize --draft`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import DataError

if TYPE_CHECKING:
    from reticent.policy import Policy
    from reticent.publication.draft import Draft


@click.command()
@click.argument("folder", type=options.PATH, default=Path("drafts"), help="The output folder of `anonymize --draft`.")
@options.json
def drafts(folder: Path, json: bool) -> None:
    """Compare the drafts in a folder, lowest loss first.

    A draft has figures only and is in no store or ledger. To publish it, run its command without --draft.
    """
    entries = sorted(read_drafts(folder), key=lambda entry: entry["metrics"].get("loss", 0.0))
    for line in comparison_lines(entries):
        say(line)
    say("To publish a draft: reticent anonymize DATA -p POLICY -o RELEASE")
    if json:
        emit({"drafts": entries})


def save_draft(folder: Path, draft: Draft, policy: Policy, name: str) -> int:
    """Write the figures of a draft to a file that only its owner can read. Return its number."""
    import datetime as dt
    import json

    from reticent.connectors.files import write_text
    from reticent.disk import make_folder

    make_folder(folder, parents=True, exist_ok=True)
    number = max((int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()), default=0) + 1
    settings = policy.to_dict()
    entry = {"number": number, "time": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), "policy": name}
    entry |= {"privacy": settings.get("privacy", {}), "table": settings.get("table", {})} | draft.to_dict()
    write_text(folder / f"{number}.json", json.dumps(entry, indent=1) + "\n")
    return number


def read_drafts(folder: Path) -> list[dict[str, Any]]:
    """Read the drafts of a folder."""
    import json

    files = sorted(path for path in folder.glob("*.json") if path.stem.isdigit())
    if not files:
        raise DataError(f"{folder} has no drafts.", hint="Make one: reticent anonymize DATA -p POLICY --draft -o DIR")
    try:
        return [json.loads(path.read_text(encoding="utf-8")) for path in files]
    except (OSError, ValueError):
        raise DataError(f"A draft in {folder} cannot be read.", hint="Remove the file from the folder.") from None


def comparison_lines(entries: list[dict[str, Any]]) -> list[str]:
    """Return the drafts as lines of a table."""
    head = (
        "draft",
        "policy",
        "method",
        "requires",
        "loss",
        "suppressed",
        "kept",
        "coarser",
        "suppressed",
        "highest loss",
    )
    rows = [head, *map(_row, entries)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    states = [column["state"] for column in entry["columns"]]
    worst = max(entry["columns"], key=lambda column: float(column["loss"]), default={"column": ""})
    required = " ".join(f"{word}={number}" for word, number in entry["privacy"].items() if word != "suppression")
    return (
        str(entry["number"]),
        Path(entry["policy"]).name,
        entry["method"],
        required,
        f"{entry['metrics'].get('loss', 0):.4f}",
        f"{entry['records']['suppressed']:,}",
        *(str(states.count(state)) for state in ("kept", "coarser", "suppressed")),
        worst["column"],
    )
