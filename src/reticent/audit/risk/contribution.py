"""Contribution of each quasi-identifier to the risk: mean risk with this column alone, and without it.

Cost: one grouping per quasi-identifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from reticent.verify.groups import codes, number_rows


@dataclass(frozen=True)
class Contribution:
    """The contribution of one quasi-identifier to the risk.

    Attributes:
        column: name of the quasi-identifier.
        distinct: number of distinct published values.
        alone: mean prosecutor risk if this column were the only quasi-identifier.
        without: mean prosecutor risk if this column were dropped.
        share: share of the total risk that dropping this column removes.
    """

    column: str
    distinct: int
    alone: float
    without: float
    share: float


def contributions(quasi: pa.Table) -> list[Contribution]:
    """Return the contribution of every quasi-identifier of a published table, largest first."""
    names = quasi.column_names
    whole = _mean(quasi, names)
    rows = []
    for name in names:
        without = _mean(quasi, [other for other in names if other != name])
        rows.append(
            Contribution(
                name, len(codes(quasi[name])[1]), _mean(quasi, [name]), without, 1 - without / whole if whole else 0.0
            )
        )
    return sorted(rows, key=lambda contribution: -contribution.share)


def _mean(quasi: pa.Table, names: list[str]) -> float:
    if not quasi.num_rows:
        return 0.0
    return float((number_rows(quasi, names)[1] if names else 1) / quasi.num_rows)
