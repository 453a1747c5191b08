"""What an operator sees of the truths that are not offered: their share, with noise, and an alarm when it is large.

Each record is counted in one look only, so that all looks together cost epsilon once. Looks come after a thousand records, then
whenever as many have come as in all looks before, up to a million.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.engine.veil.prior.noise import two_sided
from reticent.engine.veil.veiling import MOST_UNSEEN

if TYPE_CHECKING:
    from reticent import _core

LOG = logging.getLogger(__name__)
_FIRST, _MOST = 1_000, 1_000_000


class Watch:
    """Counts what is not offered, with noise under a key; `epsilon` is what all looks together may tell of a record."""

    def __init__(self, key: bytes, epsilon: float) -> None:
        self._key, self._epsilon = key, epsilon
        self._lost = self._size = self._looks = 0
        self._until = _FIRST
        self._eta: float | None = None

    @property
    def figures(self) -> dict[str, float]:
        """The share at the last look, and whether it is too large; nothing before the first look."""
        return {} if self._eta is None else {"eta": self._eta, "alarm": float(self._eta > MOST_UNSEEN)}

    def take(self, seen: _core.veil.Seen) -> None:
        """Counts records, in the order they came; how they are cut into batches changes nothing."""
        size, lost = len(seen), seen.lost
        while self._size + size >= self._until:
            size -= self._until - self._size
            before = lost
            lost = int(np.count_nonzero(~seen.offered[len(seen) - size :]))
            self._lost += before - lost
            self._look()
        self._lost += lost
        self._size += size

    def _look(self) -> None:
        seed = hashlib.blake2b(str(self._looks).encode(), key=self._key, digest_size=32).digest()
        # One record moves the count by one: noise of scale 1 / epsilon.
        noise = int(two_sided(seed, 1, self._epsilon)[0])
        self._eta = round(min(max((self._lost + noise) / self._until, 0.0), 1.0), 6)
        if self._eta > MOST_UNSEEN:
            LOG.warning(
                "the stream drifts: %.1f %% of the values are not among their candidates; the prior lacks them, or persons came back "
                "with other values than the kernel leads to (without one: with any other)",
                100 * self._eta,
            )
        self._looks += 1
        self._lost = self._size = 0
        self._until = min(_FIRST << (self._looks - 1), _MOST)

    def state(self) -> dict[str, Any]:
        """For a snapshot."""
        return {"lost": self._lost, "size": self._size, "looks": self._looks, "until": self._until, "eta": self._eta}

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from a snapshot."""
        self._lost, self._size, self._looks = state["lost"], state["size"], state["looks"]
        self._until, self._eta = state["until"], state["eta"]
