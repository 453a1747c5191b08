"""A live stream under the veil: an answer per window, in memory of one window, however long the stream is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from reticent.errors import PolicyError
from reticent.read.answer import Answer
from reticent.read.load import Parts, shape_of
from reticent.read.received import OneOrMore, Received
from reticent.read.shape.veil import Veiled
from reticent.read.wire import flatten, iter_items, table_of


def follow(
    lines: Iterable[str],
    codebook: Mapping[str, Any],
    values: OneOrMore,
    *,
    every: int = 1000,
    where: OneOrMore = (),
    interval: float = 0.95,
) -> Iterator[Answer]:
    """Counts the values in each window of so many records, as the windows fill.

    Args:
        lines: the stream, line by line, as it comes.
        codebook: what stands beside the stream.
        values: to count, as of `Received.count`.
        every: records of a window; the last may hold fewer.
        where: conditions.
        interval: level of the confidence intervals.
    """
    veil = codebook.get("veil")
    if not veil:
        raise PolicyError("Only streams under the veil can be followed.", hint="Read the stream's file as a whole.")
    records = (flatten(item) for item in iter_items(lines) if item.get("type") == "record")
    last: Veiled | None = None
    while window := list(islice(records, every)):
        parts = Parts("veil", "stream", {"data": table_of(window, codebook)}, veil, codebook)
        shape = shape_of(parts, None)
        assert isinstance(shape, Veiled)  # noqa: S101 - the parts say so
        if last is not None:
            shape.veil.reuse_channels(last.veil)
        last = shape
        yield Received(shape, parts, str(veil["sensitive"])).count(values, where, interval=interval)
