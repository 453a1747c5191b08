"""`reticent verify`: recompute the guarantee from the release alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json


def verify(
    releases: Annotated[
        list[str],
        typer.Argument(metavar="DIR|FILE...", help="Releases; several = a series, in order. Or anybody's table."),
    ],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file.")],
    ledger: Annotated[
        str | None,
        typer.Option(help="The store of the series: tells who stood in which group.", show_default=False),
    ] = None,
    original: Annotated[
        str | None,
        typer.Option(help="The private input of a table: also recompute the claims of persons.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute every claim from the release alone.

    With --original also what the release cannot show: that every record is one of the input, and the claims of persons.
    A file that Reticent did not make is measured, and judged by what the policy asks for.
    Exit code 4 when a claim is refuted.
    """
    from reticent.api import verify as judge
    from reticent.cli.output import emit, say

    verdict = judge(list(releases), policy, store=ledger, original=original)
    for finding in verdict.findings:
        say(_line(finding.claim, finding.holds, finding.measured, finding.required, finding.where))
    for note in verdict.notes:
        say(f"  note: {note}")
    for claim in verdict.unchecked:
        say(f"  not recomputed here: the claim '{claim}'")
    for name, figure in verdict.measured.items():
        say(f"  measured: {name.replace('_', ' ')} = {figure:g}")
    failed = len(verdict.refuted)
    say(
        f"Every claim holds ({len(verdict.findings)} checks)."
        if verdict.holds
        else f"REFUTED: {failed} of {len(verdict.findings)} checks fail."
    )
    if json:
        emit(verdict.to_dict())
    if not verdict.holds:
        raise typer.Exit(4)


def _line(claim: str, holds: bool, measured: float | None, required: float | None, where: str) -> str:
    figures = (
        "" if measured is None else f"measured {measured:g}" + ("" if required is None else f", required {required:g}")
    )
    return "  ".join(
        part for part in ("  holds  " if holds else "  FAILS  ", claim.ljust(52), figures.ljust(34), where) if part
    ).rstrip()
