"""`reticent verify`: recompute the guarantee from the release only."""

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
    help="Releases (several: in the order of publication), or a table from any source.",
)
@click.option("--policy", "-p", type=options.PATH, required=True, help="Policy file.")
@click.option("--ledger", help="Store of the publication; its ledger has each person's group.")
@click.option(
    "--original", type=options.PATH_OR_URL, help="The private input of a table, to also check the claims about persons."
)
@click.option("everything", "--all", is_flag=True, help="Print every check instead of one line per claim.")
@options.json
def verify(
    releases: tuple[str, ...], policy: Path, ledger: str | None, original: str | None, everything: bool, json: bool
) -> None:
    """Recompute every claim from the release only.

    Prints one line per claim. Format checks are only counted, unless they fail or --all is given.
    With --original it also checks that every record comes from the input, and the claims about persons.
    A table that Reticent did not make is measured and checked against the policy.
    The exit code is 4 if a claim is refuted.
    """
    from reticent.api import verify as verify_releases

    result = verify_releases(list(releases), policy, store=ledger, original=original)
    for line in map(_line, result.findings) if everything else summarize_findings(result.findings):
        say(line)
    for note in result.notes:
        say(f"  note: {note}")
    for claim in result.unchecked:
        say(f"  not recomputed here: the claim '{claim}'")
    for name, figure in result.measured.items():
        say(f"  measured: {name.replace('_', ' ')} = {figure:g}")
    failed = len(result.refuted)
    unchecked = f"; {len(result.unchecked)} not recomputed" if result.unchecked else ""
    say(
        f"Every claim holds ({len(result.findings)} checks{unchecked})."
        if result.holds
        else f"REFUTED: {failed} of {len(result.findings)} checks fail."
    )
    if json:
        emit(result.to_dict())
    if not result.holds:
        raise click.exceptions.Exit(4)


def summarize_findings(findings: Sequence[Finding]) -> list[str]:
    """Return one line per claim with its worst figure, one line for the format checks, and every failed check."""
    passed = [finding for finding in findings if finding.holds]
    claims = {
        finding.claim: [f for f in passed if f.claim == finding.claim] for finding in passed if _is_claim(finding)
    }
    form = len(passed) - sum(map(len, claims.values()))
    lines = [_line(_worst(group), f"{len(group)} checks" if len(group) > 1 else None) for group in claims.values()]
    lines += [f"  holds    format, counts and files: {form} checks"] if form else []
    return lines + [_line(finding) for finding in findings if not finding.holds]


def _is_claim(finding: Finding) -> bool:
    """Whether a finding is a claim with a bound. Other findings are format checks."""
    from reticent.verify.result import FormCheck

    return finding.required not in (None, 0) and not isinstance(finding, FormCheck)


def _worst(group: Sequence[Finding]) -> Finding:
    """Return the finding that is closest to its bound."""
    return min(group, key=lambda f: abs(float(f.measured or 0) - float(f.required or 0)))


def _line(finding: Finding, where: str | None = None) -> str:
    measured, required = finding.measured, finding.required
    figures = (
        "" if measured is None else f"measured {measured:g}" + ("" if required is None else f", required {required:g}")
    )
    word = "  holds  " if finding.holds else "  FAILS  "
    place = finding.where if where is None else where
    return "  ".join(part for part in (word, finding.claim.ljust(52), figures.ljust(34), place) if part).rstrip()
