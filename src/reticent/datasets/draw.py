"""Random draws for all generators: seeded blocks, sliced into batches, so that rows do not depend on the batch size.

Rows come in blocks of fixed length. A block depends only on the seed, the kind of data and its number. So any slicing
gives the same rows, a short table is the beginning of a long one, and memory contains one block at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from reticent.errors import PolicyError

BLOCK = 16_384
"""Rows per block: large enough for vectorized numpy, small enough that a short table is quick."""

BATCH = 131_072
"""Default rows per batch."""


def generator(seed: int, kind: str, block: int = 0) -> np.random.Generator:
    """Return the random generator for one block of one kind of data; for synthetic data only, it is not secure."""
    if seed < 0:
        raise PolicyError("The seed is negative.", hint="Give --seed 0 or more.")
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), block])


def slice_blocks(
    block: Callable[[int], pa.Table], rows: int, size: int = BATCH, length: int = BLOCK
) -> Iterator[pa.Table]:
    """Yield tables of ``size`` rows (the last may be shorter) from blocks of ``length`` rows created on demand."""
    if rows < 0 or size < 1:
        raise PolicyError("The number of rows is negative, or the batch size is below one.", hint="Check -n.")
    pending, pending_rows = [], 0
    for number in range(-(-rows // length)):
        part = block(number).slice(0, rows - number * length)
        pending.append(part)
        pending_rows += part.num_rows
        while pending_rows >= size:
            joined = pa.concat_tables(pending)
            yield joined.slice(0, size).combine_chunks()
            pending, pending_rows = [joined.slice(size)], pending_rows - size
    if pending_rows or not rows:
        yield pa.concat_tables(pending).combine_chunks() if pending else block(0).slice(0, 0)


def zipf(count: int, exponent: float = 1.0, shift: float = 2.7) -> NDArray[np.float64]:
    """Return the shares of a long tail (Zipf-Mandelbrot), largest first, with sum one."""
    weights = 1.0 / (np.arange(count) + 1 + shift) ** exponent
    return np.asarray(weights / weights.sum())


class Choice:
    """Draws a value from the distribution of each row's profile, with one binary search for all rows."""

    def __init__(self, weights: ArrayLike) -> None:
        table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        self.shares: NDArray[np.float64] = table / table.sum(axis=1, keepdims=True)
        cumulative = np.cumsum(self.shares, axis=1)
        cumulative /= cumulative[:, -1:]
        # Profile p occupies (p, p + 1] of one flat array.
        self._flat = (cumulative + np.arange(len(table))[:, None]).ravel()
        self._width = table.shape[1]
        self._last = self._width - 1 - (table[:, ::-1] > 0).argmax(axis=1)

    def draw(self, rng: np.random.Generator, profile: NDArray[np.int64] | int, count: int = 0) -> NDArray[np.int64]:
        """Draw one value per row of ``profile``; with a single profile, ``count`` values."""
        rows = np.asarray(profile) if np.ndim(profile) else np.full(count, profile)
        at = np.searchsorted(self._flat, rows + rng.random(len(rows)), side="right")
        # Rounding may move a draw past the end of its profile; clip it to a value with a share.
        return np.asarray(np.minimum(at - rows * self._width, self._last[rows]))


def strings(values: Sequence[str], codes: NDArray[np.int64]) -> pa.Array:
    """Return the values at the codes, as an Arrow string array."""
    return pa.array(values, pa.string()).take(pa.array(codes))


def numbered_ids(prefix: str, numbers: NDArray[np.int64], width: int) -> pa.Array:
    """Return strings such as P0000012: a prefix and the number with leading zeros."""
    digits = numbers[:, None] // 10 ** np.arange(width - 1, -1, -1) % 10
    text = np.empty((len(numbers), len(prefix) + width), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
    text[:, len(prefix) :] = digits + ord("0")
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * text.shape[1]
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
