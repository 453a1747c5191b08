"""A small simulator of the veil: the channel as the design describes it, written without the code under test."""

import numpy as np
import pytest

SLOT_LENGTH = 1 << 40


def segment_lengths(shares, l):
    """Segments in whole units that sum to l slots; the largest takes the rounding error."""
    out = np.floor(np.asarray(shares, dtype=float) * l * SLOT_LENGTH).astype(np.int64)
    out[np.argmax(out)] += l * SLOT_LENGTH - out.sum()
    return out.astype(np.uint64)


def publish(rng, true_values, strata, segments, permutations):
    """Candidates of each record: the values at a random point of the true value's segment and the same place of every other slot."""
    lengths = segments.astype(np.int64)
    l = int(lengths[0].sum() // SLOT_LENGTH)
    out = np.empty((len(true_values), l), dtype=np.int32)
    chosen = rng.integers(len(permutations), size=len(true_values))
    for stratum in np.unique(strata):
        for number, line in enumerate(permutations):
            at = np.flatnonzero((strata == stratum) & (chosen == number))
            ends = np.cumsum(lengths[stratum][line])
            place = np.empty(len(line), dtype=np.int64)
            place[line] = np.arange(len(line))
            mine = lengths[stratum][true_values[at]]
            offset = (rng.random(len(at)) * mine).astype(np.int64)
            point = np.where(
                mine > 0, ends[place[true_values[at]]] - mine + offset, rng.integers(SLOT_LENGTH, size=len(at))
            )
            points = (point % SLOT_LENGTH)[:, None] + np.arange(l) * SLOT_LENGTH
            out[at] = np.sort(line[np.searchsorted(ends, points, side="right")], axis=1)
    return out


@pytest.fixture
def simulate():
    return publish


@pytest.fixture
def segments_of():
    return segment_lengths
