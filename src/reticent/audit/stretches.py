"""Which labels may stand for which values, as stretches of the values in order.

A range is one stretch, however many values it holds: what all ranges hold, pair by pair, would be too much to list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.audit.cover import listed, spans
from reticent.audit.groups import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.audit.arrays import Codes, Flags
    from reticent.policy import Policy

    Texts = Sequence[str | None]


@dataclass(frozen=True, repr=False)
class Stretches:
    """Per label the stretches of values that it may stand for; no two of one label meet.

    Attributes:
        rank: the place of every value in the order.
        first: where the stretches of each label begin, and where the last ones end.
        low, high: the ranks that each stretch holds.
    """

    rank: Codes
    first: Codes
    low: Codes
    high: Codes

    @classmethod
    def covering(cls, values: Texts, labels: Texts, policy: Policy, column: str) -> Stretches:
        """Values and what is published of them: themselves, nodes above them, sets, ranges."""
        width, ranges = max(1, len(labels)), spans(values, labels)
        main = 0 if (ranges.order == 0).any() else 1  # ranges of the other kind, which are few beside, are listed
        whole, rest = ranges.of(main), ranges.of(1 - main)
        keys = np.concatenate([listed(values, labels, policy, column), rest.keys(width)])
        rank = _ranks(ranges.orders[main], len(values))
        at = rank[keys // width]
        parts = [keys % width, whole.label], [at, whole.low], [at + 1, whole.high]
        return cls._of(rank, len(labels), *(np.concatenate(part) for part in parts))

    @classmethod
    def same(cls, values: Texts, labels: Texts) -> Stretches:
        """Values that are published as they are."""
        own, shown = shared(pa.array(values, pa.string()), pa.array(labels, pa.string()))
        known = np.flatnonzero(shown < len(own))  # different values: their numbers come first
        return cls.listed(shown[known], known, own, len(shown))

    @classmethod
    def listed(cls, value: Codes, label: Codes, rank: Codes, labels: int) -> Stretches:
        """Pairs, told one by one; the fewer stretches, the better the order."""
        return cls._of(rank, labels, label, rank[value], rank[value] + 1)

    @classmethod
    def _of(cls, rank: Codes, labels: int, label: Codes, low: Codes, high: Codes) -> Stretches:
        """Stretches of a label that touch become one."""
        some = low < high
        label, low, high = label[some], low[some], high[some]
        width = len(rank) + 1
        order = np.argsort(label * width + low, kind="stable")
        begin, end = (label * width + low)[order], np.maximum.accumulate((label * width + high)[order])
        opens = np.append(True, begin[1:] > end[:-1])[: len(begin)]
        closes = np.append(opens[1:], True)[: len(begin)]
        begin, end = begin[opens], end[closes]
        first = np.searchsorted(begin, np.arange(labels + 1) * width)
        return cls(rank, first, begin % width, end - begin // width * width)

    def hold(self, value: Codes, label: Codes) -> Flags:
        """Pair by pair, whether the label may stand for the value."""
        if not len(self.low):
            return np.zeros(len(value), dtype=np.bool_)
        width, whose = len(self.rank) + 1, np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        begin, end, key = whose * width + self.low, whose * width + self.high, label * width + self.rank[value]
        at = np.searchsorted(begin, key, side="right") - 1
        return np.asarray((at >= 0) & (key < end[at]))

    def chance(self, values: Codes, labels: Codes) -> float:
        """How likely one of these values is to fit one of these labels."""
        below = np.append(0, np.cumsum(np.bincount(self.rank[values], minlength=int(self.high.max(initial=0)))))
        inside = np.append(0, np.cumsum(below[self.high] - below[self.low]))
        fits = inside[self.first[1:]] - inside[self.first[:-1]]
        return float(fits[labels].sum()) / max(1, len(values) * len(labels))


def _ranks(order: Codes, size: int) -> Codes:
    """The place of every value; those without one come last."""
    rest = np.ones(size, dtype=np.bool_)
    rest[order] = False
    rank = np.empty(size, dtype=np.int64)
    rank[np.append(order, np.flatnonzero(rest))] = np.arange(size)
    return rank
