"""What the judge says: one finding per claim, and the verdict over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

_REFUTED_LIMIT = 10
"""Refuted claims that a repr lists."""


@dataclass(frozen=True)
class Finding:
    """One claim, recomputed.

    Attributes:
        claim: what was checked, in plain words.
        holds: whether the recomputed figure meets the requirement.
        measured: the recomputed figure: the worst group's, or a count of offences.
        required: what the claim or the policy asks for.
        where: the place: release, column, number of groups that fail. Never a cell value.
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
        findings: every check, in the order it was made.
        notes: what a reader should know and is not itself a claim, such as a reference distribution's origin.
        unchecked: claims that cannot be recomputed from what was released.
        measured: of a table without a manifest, what holds of it whatever is asked.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether something was checked and nothing was refuted."""
        return bool(self.findings) and all(finding.holds for finding in self.findings)

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """The findings that do not hold."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def __repr__(self) -> str:
        claims = "".join(f"\n  refuted: {f.claim} {f.where}".rstrip() for f in self.refuted[:_REFUTED_LIMIT])
        word = "holds" if self.holds else f"{len(self.refuted)} refuted"
        return f"Verdict({word}, {len(self.findings)} checks){claims}"

    def _repr_html_(self) -> str:
        """What a notebook shows: one row per check."""
        from reticent.notebook import table_html

        rows = [("holds" if f.holds else "REFUTED", f.claim, f.measured, f.required, f.where) for f in self.findings]
        heading = "Every claim holds." if self.holds else f"{len(self.refuted)} claims are refuted."
        return table_html(heading, ("", "claim", "measured", "required", "where"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "holds": self.holds,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
            "unchecked": list(self.unchecked),
            "measured": dict(self.measured),
        }


def none_of(claim: str, violations: int, where: str = "") -> Finding:
    """A finding that holds when an offence was found nowhere."""
    return Finding(claim, violations == 0, int(violations), 0, where)
