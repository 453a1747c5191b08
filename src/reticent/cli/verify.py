"""`reticent verify`: recompute the guarantee from the release alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.output import emit, say

if TYPE_CHECKING:
    from reticent.verify.result import Finding


@click.command()
@click.argument(
    "releases",
    nargs=-1,
    type=options.PATH_OR_URL,
    metavar="DIR|FILE...",
    required=True,
    help="Releases; several = a series, in order. Or anybody's table.",
)
@click.option("--policy", "-p", type=options.PATH, required=True, help="The policy file.")
@click.option("--ledger", help="The store of the series: tells who stood in which group.")
@click.option(
    "--original", type=options.PATH_OR_URL, help="The private input of a table: also recompute the claims of persons."
)
@click.option("everything", "--all", is_flag=True, help="Print every check, not one line per claim.")
@options.json
def verify(
    releases: tuple[str, ...], policy: Path, ledger: str | None, original: str | None, everything: bool, json: bool
) -> None:
    """Recompute every claim from the release alone.

    One line per claim; checks of form are counted, and printed with --all or where they fail.
    With --original also what the release cannot show: that every record is one of the input, and the claims of persons.
    A file that Reticent did not make is measured, and judged by what the policy asks for.
    Exit code 4 when a claim is refuted.
    """
    from reticent.api import verify as judge

    verdict = judge(list(releases), policy, store=ledger, original=original)
    for line in map(_line, verdict.findings) if everything else summarize_findings(verdict.findings):
        say(line)
    for note in verdict.notes:
        say(f"  note: {note}")
    for claim in verdict.unchecked:
        say(f"  not recomputed here: the claim '{claim}'")
    for name, figure in verdict.measured.items():
        say(f"  measured: {name.replace('_', ' ')} = {figure:g}")
    failed = len(verdict.refuted)
    unseen = f"; {len(verdict.unchecked)} not recomputed" if verdict.unchecked else ""
    say(
        f"Every claim holds ({len(verdict.findings)} checks{unseen})."
        if verdict.holds
        else f"REFUTED: {failed} of {len(verdict.findings)} checks fail."
    )
    if json:
        emit(verdict.to_dict())
    if not verdict.holds:
        raise click.exceptions.Exit(4)


def summarize_findings(findings: Sequence[Finding]) -> list[str]:
    """One line per claim with its worst figure, the checks of form as one line, and every check that fails."""
    sound = [finding for finding in findings if finding.holds]
    claims = {finding.claim: [f for f in sound if f.claim == finding.claim] for finding in sound if _is_claim(finding)}
    form = len(sound) - sum(map(len, claims.values()))
    lines = [_line(_worst(group), f"{len(group)} checks" if len(group) > 1 else None) for group in claims.values()]
    lines += [f"  holds    form, counts and files: {form} checks"] if form else []
    return lines + [_line(finding) for finding in findings if not finding.holds]


def _is_claim(finding: Finding) -> bool:
    """A figure with a bound to it; what must be nowhere, or equal, is a check of form."""
    return finding.required not in (None, 0) and not finding.claim.startswith("rows ")


def _worst(group: Sequence[Finding]) -> Finding:
    """The finding that comes nearest to its bound."""
    return min(group, key=lambda f: abs(float(f.measured or 0) - float(f.required or 0)))


def _line(finding: Finding, where: str | None = None) -> str:
    measured, required = finding.measured, finding.required
    figures = (
        "" if measured is None else f"measured {measured:g}" + ("" if required is None else f", required {required:g}")
    )
    word = "  holds  " if finding.holds else "  FAILS  "
    place = finding.where if where is None else where
    return "  ".join(part for part in (word, finding.claim.ljust(52), figures.ljust(34), place) if part).rstrip()
