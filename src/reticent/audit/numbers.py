"""A fixed set of 64-bit numbers that many are looked up in at once, in constant time each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    U64 = npt.NDArray[np.uint64]

# Odd, so that it permutes the numbers: the upper bits of a product depend on all bits.
_SPREAD = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


class Numbers:
    """A table with open addresses: a number stands at its address or in one of the places behind it.

    Args:
        numbers: all different.

    Example:
        >>> numbers = Numbers(np.array([3, 5], dtype=np.uint64))
        >>> 3 in numbers, 4 in numbers, numbers.strangers(np.array([5, 6, 7], dtype=np.uint64))
        (True, False, 2)
    """

    def __init__(self, numbers: U64) -> None:
        bits = max(2, int(2 * len(numbers)).bit_length())
        self._shift = 64 - bits
        order = np.argsort(self._addresses(numbers), kind="stable")
        addresses = self._addresses(numbers)[order].astype(np.int64)
        # Each stands at its address or behind the one before it, whichever is later.
        ranks = np.arange(len(numbers))
        places = np.maximum.accumulate(addresses - ranks) + ranks
        self._reach = int((places - addresses).max(initial=0)) + 1
        size = (1 << bits) + len(numbers)
        self._numbers, self._taken = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=bool)
        self._numbers[places], self._taken[places] = numbers[order], True

    def _addresses(self, numbers: U64) -> U64:
        return (numbers * np.uint64(_SPREAD)) >> np.uint64(self._shift)

    def __contains__(self, number: int) -> bool:
        start = ((number * _SPREAD) & _WORD) >> self._shift
        return any(
            self._taken[at] and self._numbers[at] == number
            for at in range(start, min(start + self._reach, len(self._numbers)))
        )

    def strangers(self, numbers: U64) -> int:
        """How many are not in the set."""
        places = self._addresses(numbers).astype(np.int64)
        for _ in range(self._reach):
            strange = (self._numbers[places] != numbers) | ~self._taken[places]
            numbers, places = numbers[strange], np.minimum(places[strange] + 1, len(self._numbers) - 1)
            if not len(numbers):
                break
        return len(numbers)
