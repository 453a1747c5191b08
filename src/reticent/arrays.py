"""Names of numpy array types for annotations, and a faster `np.unique`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Integers = NDArray[np.integer]
UInt8s = NDArray[np.uint8]
UInt16s = NDArray[np.uint16]
UInt32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]
Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Bools = NDArray[np.bool_]


def distinct(numbers: Int64s) -> Int64s:
    """Return the distinct numbers in ascending order. `np.unique` hashes them, which takes ten times as long if most are distinct."""
    ordered = np.sort(numbers)
    return ordered[np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])]
