"""Answers for each window of a live veiled stream, in the memory of one window."""

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
    """Count the values in each window of `every` records, as soon as the window is full.

    Args:
        lines: the lines of the stream, as they arrive.
        codebook: the codebook of the stream.
        values: the values to count, as in `Received.count`.
        every: records per window; the last window may have fewer.
        where: conditions.
        interval: level of the confidence intervals.
    """
    veil = codebook.get("veil")
    if not veil:
        raise PolicyError("Only veiled streams can be followed.", hint="Read the whole stream file instead.")
    records = (flatten(item) for item in iter_items(lines) if item.get("type") == "record")
    last: Veiled | None = None
    while window := list(islice(records, every)):
        parts = Parts("veil", "stream", {"data": table_of(window, codebook)}, veil, codebook)
        shape = shape_of(parts, None)
        assert isinstance(shape, Veiled)  # noqa: S101 - parts have the shape veil
        if last is not None:
            shape.veil.reuse_channels(last.veil)
        last = shape
        yield Received(shape, parts, str(veil["sensitive"])).count(values, where, interval=interval)
