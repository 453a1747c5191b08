"""What each quasi-identifier contributes: uniqueness and mean risk by it alone, and without it.

Cost: one grouping per quasi-identifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from reticent.verify.groups import codes, number_rows


@dataclass(frozen=True)
class Contribution:
    """One quasi-identifier's part in the risk.

    Attributes:
        column: its name.
        distinct: different published values.
        alone: mean prosecutor risk if it were the only quasi-identifier.
        without: mean prosecutor risk if it were dropped.
        share: part of the whole risk that dropping it takes away.
    """

    column: str
    distinct: int
    alone: float
    without: float
    share: float


def contributions(quasi: pa.Table) -> list[Contribution]:
    """Every quasi-identifier of a published table, the heaviest first."""
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
    return sorted(rows, key=lambda one: -one.share)


def _mean(quasi: pa.Table, names: list[str]) -> float:
    if not quasi.num_rows:
        return 0.0
    return float((number_rows(quasi, names)[1] if names else 1) / quasi.num_rows)
