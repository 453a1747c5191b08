"""What a release reports about itself: what changed, who was held back and why, how the risk is spread. Counts only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.engine.series.grouping import HELD

if TYPE_CHECKING:
    from reticent.engine.series.grouping import Grouping
    from reticent.engine.series.history import History
    from reticent.engine.series.risk_limit import People
    from reticent.engine.series.sug import Risk


def changes(history: History, people: People) -> dict[str, int]:
    """External updates (inserted, left, returned) and internal ones, against the last published versions."""
    number = history.locate(people.hashes)
    old = number >= 0
    last = history.heads[number[old]]
    latest = history.release == history.releases
    before = history.release[last]
    return {
        "inserted": int((~old).sum()),
        "left": int(latest.sum() - (before == history.releases).sum()),
        "returned": int((before < history.releases).sum()),
        "sensitive": int((history.value[last] != people.values[old]).sum()),
        "quasi": int((history.traits[number[old]] != people.traits[old]).sum()),
    }


def reasons(grouping: Grouping) -> dict[str, int]:
    """How many rows are held back for which reason."""
    counts = np.bincount(grouping.held, minlength=len(HELD))
    return {name: int(n) for name, n in zip(HELD[1:], counts[1:], strict=True) if n}


def distribution(risk: Risk) -> dict[str, Any]:
    """The spread of the largest share of any candidate, over persons."""
    marks = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
    found = np.quantile(risk.worst, marks)
    return {f"{mark:.0%}": round(float(x), 6) for mark, x in zip(marks, found, strict=True)}
