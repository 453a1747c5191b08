"""`reticent export`: write a release to a database, or back to the standard of its input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.output import emit, say

if TYPE_CHECKING:
    from reticent.policy import Policy


@click.command()
@click.argument("release", type=options.PATH, metavar="DIR", help="A release folder, or a stream's file.")
@click.argument(
    "url",
    metavar="URL",
    help="postgresql://... or sqlite:///file.db; fhir:FOLDER or fhir:FILE.json; omop:FILE.db or omop:FILE.duckdb.",
)
@click.option("--name", default="release", help="Prefix of the table names, as in NAME_data.")
@click.option("--policy", "-p", type=options.PATH, help="FHIR: the policy, which maps columns to FHIR elements.")
@options.json
def export(release: Path, url: str, name: str, policy: Path | None, json: bool) -> None:
    """Write a release to a database, as FHIR, or as OMOP.

    Writes everything or nothing.
    """
    from reticent.policy import Policy

    standard, _, place = url.partition(":")
    if standard in ("fhir", "omop"):
        counts = _write_standard(standard, release, Path(place), None if policy is None else Policy.load(policy))
        say(f"Written to {place}: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) + ".")
        if json:
            emit({"written": counts})
        return
    from reticent.connectors.sql.write import write_release

    tables = write_release(release, url, name=name)
    say(f"Written: {', '.join(tables)}.")
    if json:
        emit({"tables": list(tables)})


def _write_standard(standard: str, release: Path, place: Path, policy: Policy | None) -> dict[str, int]:
    if standard == "fhir":
        from reticent.connectors.fhir.write import write_fhir_release

        return write_fhir_release(release, place, policy)
    from reticent.connectors.omop import write_omop_release

    return write_omop_release(release, place)
