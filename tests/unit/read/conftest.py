"""A small simulator of the veil: the channel as the design describes it, written without the code under test."""

import numpy as np
import pytest

ONE = 1 << 40


def stretches_of(shares, l):
    """Whole stretches that sum to l ONE; the largest takes what rounding leaves."""
    out = np.floor(np.asarray(shares, dtype=float) * l * ONE).astype(np.int64)
    out[np.argmax(out)] += l * ONE - out.sum()
    return out.astype(np.uint64)


def publish(rng, truth, rows, stretches, orders):
    """Candidates of each record: a point in the truth's stretch, its U, and the values at U, U + ONE, ..."""
    lengths = stretches.astype(np.int64)
    l = int(lengths[0].sum() // ONE)
    out = np.empty((len(truth), l), dtype=np.int32)
    order = rng.integers(len(orders), size=len(truth))
    for row in np.unique(rows):
        for number, line in enumerate(orders):
            at = np.flatnonzero((rows == row) & (order == number))
            ends = np.cumsum(lengths[row][line])
            place = np.empty(len(line), dtype=np.int64)
            place[line] = np.arange(len(line))
            mine = lengths[row][truth[at]]
            offset = (rng.random(len(at)) * mine).astype(np.int64)
            point = np.where(mine > 0, ends[place[truth[at]]] - mine + offset, rng.integers(ONE, size=len(at)))
            points = (point % ONE)[:, None] + np.arange(l) * ONE
            out[at] = np.sort(line[np.searchsorted(ends, points, side="right")], axis=1)
    return out


@pytest.fixture
def simulate():
    return publish


@pytest.fixture
def stretched():
    return stretches_of
