"""The weights of the candidate pools: `uniform`, `empirical` and `matched`.

`matched` gives every value the inclusion probability min(1, l * p_v), so that groups offer what the stream will
consume. Values at the cap are in every group; the places they leave are shared by the others in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reticent.arrays import UInt64s
from reticent.errors import GuaranteeError

ARC = 1 << 32
"""The inclusion probability one, as the core counts it."""


def weights(pool: str, counts: Sequence[int], l: int) -> UInt64s:
    """What the core draws candidates by; refuses a domain that cannot fill a group."""
    if len(counts) < l:
        raise GuaranteeError(
            f"A group needs {l} different values and the domain has {len(counts)}; nothing was published.",
            hint="Lower stream.l, or name more values in the prior.",
        )
    if pool == "matched":
        return arcs([max(1, count) for count in counts], l)
    return np.array(counts, dtype=np.uint64)


def arcs(counts: Sequence[int], l: int) -> UInt64s:
    """Inclusion probabilities in units of 1/ARC: at most one each, exactly l together.

    >>> (arcs([6, 2, 1, 1], 2) / ARC).tolist()
    [1.0, 0.5, 0.25, 0.25]
    """
    whole = _capped(counts, l)
    free, places = [v for v in range(len(counts)) if v not in whole], l - len(whole)
    total = sum(counts[v] for v in free)
    lengths = [ARC] * len(counts)
    for value in free:
        lengths[value] = places * ARC * counts[value] // total
    short = l * ARC - sum(lengths)
    for value in sorted(free, key=lambda v: lengths[v]):
        # Rounding down leaves less than one unit per value; it goes where there is room.
        added = min(short, ARC - lengths[value])
        lengths[value] += added
        short -= added
    return np.array(lengths, dtype=np.uint64)


def _capped(counts: Sequence[int], l: int) -> set[int]:
    """The values that belong to every group."""
    whole: set[int] = set()
    while len(whole) < l:
        places, total = l - len(whole), sum(n for v, n in enumerate(counts) if v not in whole)
        more = {v for v, n in enumerate(counts) if v not in whole and places * n >= total}
        if not more:
            break
        whole |= more
    return whole
