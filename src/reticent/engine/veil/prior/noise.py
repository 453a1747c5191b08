"""Noise on counts: the two-sided geometric mechanism.

Guarantee (to each person of the past, against an attacker who sees the counts and knows all other records): with one record per
person, changing one record moves two counts by one, so noise of scale 2 / epsilon makes the table epsilon-differentially private.

Not covered: a person with several records; which values and strata the table has, unless they were fixed before.

Cost: two draws per count.

Reference: A. Ghosh, T. Roughgarden and M. Sundararajan, Universally utility-maximizing privacy mechanisms, STOC 2009.

Differences from the paper: draws are cut off where they have a probability of 2^-64, and their bounds are rounded to 53 bits.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from reticent.arrays import Int64s

# A count below this many scales is as likely noise as a record.
FLOOR_SCALES = 4


def noise_scale(epsilon: float | None) -> float:
    """Return the scale of the noise: 2 / epsilon; 0 where the past is public."""
    return 0.0 if epsilon is None else 2 / epsilon


def add_noise(counts: Int64s, epsilon: float | None, rng: np.random.Generator) -> Int64s:
    """Add noise to counts; none if epsilon is None (the past is public).

    Example:
        >>> add_noise(np.array([5, 0]), None, np.random.default_rng(1)).tolist()
        [5, 0]
    """
    if epsilon is None:
        return counts.copy()
    # The state of numpy's generator can be computed from enough of its output, so only a hash of its output is used.
    return counts + two_sided_geometric(rng.bytes(32), counts.size, 1 / noise_scale(epsilon)).reshape(counts.shape)


def two_sided_geometric(key: bytes, size: int, rate: float) -> Int64s:
    """Draw integers around 0 whose probability falls by exp(-rate) per step on both sides, from a secret key.

    An attacker who knows all other records sees the noise itself. It comes from a cryptographic stream, so the noise that is seen
    discloses nothing about the rest.

    Example:
        >>> two_sided_geometric(b"a key", 4, 0.5).tolist() == two_sided_geometric(b"a key", 4, 0.5).tolist()
        True
    """
    stream = hashlib.shake_256(b"two-sided geometric" + key).digest(16 * size)
    uniform = (np.frombuffer(stream, dtype="<u8").astype(np.float64) + 1.0) * math.ldexp(1.0, -64)
    # The difference of two geometric numbers, each by inversion of a uniform one.
    up, down = np.floor(-np.log(np.minimum(uniform, 1.0)) / rate).astype(np.int64).reshape(2, size)
    return np.asarray(up - down)


def noise_floor(epsilon: float | None) -> float:
    """Return the value below which a noisy count means nothing."""
    return FLOOR_SCALES * noise_scale(epsilon)
