"""Reads streams: one JSON object per line, either groups before their tuples or single records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.errors import DataError
from reticent.read.load import Parts, read_codebook

STREAM_FIELDS = ("seq", "stratum", "event", "person")


def from_stream_file(path: Path) -> Parts:
    """Read a stream file; the codebook is next to it or in its first line."""
    with path.open(encoding="utf-8") as lines:
        return from_lines(_iter_complete_lines(lines), read_codebook(path))


def _iter_complete_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield all lines except an incomplete last one: the stream may still be written."""
    for line in lines:
        if line.endswith("\n") or line.rstrip().endswith("}"):
            yield line


def from_lines(lines: Iterable[str], codebook: Mapping[str, Any]) -> Parts:
    """Convert the lines of a stream to tables."""
    groups: list[tuple[str, Any, int]] = []
    rows: list[dict[str, Any]] = []
    book = dict(codebook)
    for item in iter_items(lines):
        kind = item.get("type")
        if kind == "codebook":
            book = {**item, **book}
        elif kind == "group":
            groups += [(item["group"], value, count) for value, count in item["candidates"]]
        elif kind in ("tuple", "record"):
            rows.append(flatten(item))
    if not rows:
        raise DataError("The stream has no records.", hint="Give the file that `reticent stream --to` wrote.")
    if "candidate 1" in rows[0] and "veil" not in book:
        raise DataError(
            "The stream's codebook is missing; it contains the parameters of the veil.",
            hint="Put FILE.codebook.json, which `reticent stream` wrote, next to the stream file.",
        )
    data = table_of(rows, book)
    if groups:
        listed = pa.table([*zip(*groups, strict=True)], names=["group", "value", "count"])
        return Parts("anatomy", "stream", {"qit": data, "st": listed}, codebook=book)
    shape = "veil" if "veil" in book else "generalized"
    return Parts(shape, "stream", {"data": data}, book.get("veil"), _with_sensitive(book))


def iter_items(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield each line as an object."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError:
            item = None
        if not isinstance(item, dict):
            raise DataError(
                f"Line {number} of the stream is not a JSON object.", hint="Get the file again; it may be incomplete."
            )
        yield item


def flatten(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return one record as cells by column name."""
    cells = {name: item[name] for name in (*STREAM_FIELDS, "group") if name in item}
    cells |= item.get("quasi", {}) | item.get("plain", {})
    if "sensitive" in item:
        cells["sensitive"] = item["sensitive"]
    for slot, value in enumerate(item.get("candidates", ()), 1):
        cells[f"candidate {slot}"] = value
    return cells


def table_of(rows: list[dict[str, Any]], codebook: Mapping[str, Any]) -> pa.Table:
    """Convert records to a table; candidate columns are named after the sensitive column."""
    veil = codebook.get("veil") or {}
    names = dict.fromkeys(name for row in rows[:1000] for name in row)
    columns = {}
    for name in names:
        shown = f"{veil.get('sensitive', 'sensitive')}_{name.split()[1]}" if name.startswith("candidate ") else name
        columns[shown] = _column([row.get(name) for row in rows])
    return pa.table(columns)


def _column(cells: list[Any]) -> pa.Array:
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # numbers mixed with intervals
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _with_sensitive(codebook: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the sensitive column for CASTLE, whose records always call it `sensitive`."""
    return codebook if "veil" in codebook else {**codebook, "sensitive": "sensitive"}
