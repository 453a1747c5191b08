"""The result of a verification: one finding per claim, and the overall result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

_REFUTED_LIMIT = 10
"""Number of refuted claims that a repr lists."""


@dataclass(frozen=True)
class Finding:
    """One claim, recomputed.

    Attributes:
        claim: what was checked, in plain words.
        holds: whether the recomputed figure meets the requirement.
        measured: the recomputed figure: that of the worst group, or the number of violations.
        required: what the claim or the policy requires.
        where: the release, the column, the number of groups that fail. Never a cell value.
    """

    claim: str
    holds: bool
    measured: int | float | None = None
    required: int | float | None = None
    where: str = ""


@dataclass(frozen=True, repr=False)
class VerificationResult:
    """All findings over one or more releases.

    Attributes:
        findings: every check, in the order of execution.
        notes: facts that are no claim, such as the origin of a reference distribution.
        unchecked: claims that cannot be recomputed from the release.
        measured: figures of a table without a manifest.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether at least one claim was checked and none was refuted."""
        return bool(self.findings) and all(finding.holds for finding in self.findings)

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """The findings that do not hold."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def __repr__(self) -> str:
        claims = "".join(f"\n  refuted: {f.claim} {f.where}".rstrip() for f in self.refuted[:_REFUTED_LIMIT])
        word = "holds" if self.holds else f"{len(self.refuted)} refuted"
        return f"VerificationResult({word}, {len(self.findings)} checks){claims}"

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks, one row per check."""
        from reticent.notebook import table_html

        rows = [("holds" if f.holds else "REFUTED", f.claim, f.measured, f.required, f.where) for f in self.findings]
        heading = "Every claim holds." if self.holds else f"{len(self.refuted)} claims are refuted."
        return table_html(heading, ("", "claim", "measured", "required", "where"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "holds": self.holds,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
            "unchecked": list(self.unchecked),
            "measured": dict(self.measured),
        }


class FormCheck(Finding):
    """A check of counts or of the order of rows: its figures are not a bound that a release claims."""


NEEDS_ORIGINAL = "(needs the original)"
"""The end of unchecked claims that a comparison with the original covers."""


def none_of(claim: str, violations: int, where: str = "") -> Finding:
    """Return a finding that holds if there are no violations."""
    return Finding(claim, violations == 0, int(violations), 0, where)
