"""What is published and stored, as files that can be committed and compared.

Not compared as they are, each by name:

- Times of the clock (an ISO time of UTC), the folder of the run, and by their keys `seconds` (how long it took) and `versions`
  (of Python, PyArrow and Reticent).
- The `digest` and `chain` of a row of a store, its `secret` and the digest of its `head`: codes under a random key.
- SHA-256 digests: a symbol stands for each, since the bytes that it is of are compared themselves, or, for the hash of a policy and
  the digest of the veil's settings, stand in `digests.json`, which is compared while the key map is empty.
- Figures that a command prints, to twelve digits.
- Bytes of Parquet, which change with PyArrow: types and rows are compared.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MACHINE = ("seconds", "versions")
TIME = re.compile(rb"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
STORE = "store.json"
KEYED = ("digest", "chain")
_SHORT = 12
"""As a README shows the hash of a policy."""
_PREFIX = re.compile(rf"\b[0-9a-f]{{{_SHORT}}}\b")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def release_files(folder: Path) -> dict[str, bytes]:
    """The files of a release folder as they are compared."""
    return {name: content for path in sorted(folder.iterdir()) for name, content in [published(path)]}


def published(path: Path) -> tuple[str, bytes]:
    """The name and the bytes of a published file as they are compared."""
    if path.suffix == ".parquet":
        return f"{path.name}.json", _dump(parquet_rows(path))
    content = path.read_bytes()
    if path.name == "audit.json":
        return path.name, rounded(normalized_json(content))
    if path.suffix == ".json":
        return path.name, normalized_json(content)
    return path.name, content


def normalized_json(content: bytes) -> bytes:
    """JSON in the style that it has, with what the clock and the machine say taken out."""
    value = json.loads(content)
    style = next(style for style in _STYLES if json.dumps(value, **style).encode() == content.rstrip(b"\n"))
    text = json.dumps(_normalized(value), **style).encode()
    return text + content[len(content.rstrip(b"\n")) :]


_STYLES: tuple[dict[str, Any], ...] = (
    {},
    {"indent": 1},
    {"indent": 2},
    {"ensure_ascii": False},
    {"indent": 2, "ensure_ascii": False},
    {"separators": (",", ":"), "ensure_ascii": False},
)


def _normalized(value: Any, *, machine: bool = False) -> Any:
    if isinstance(value, dict):
        return {key: _normalized(item, machine=machine or key in MACHINE) for key, item in value.items()}
    if isinstance(value, list):
        return [_normalized(item, machine=machine) for item in value]
    return "(machine)" if machine else value


def rounded(content: bytes) -> bytes:
    """Figures for people to twelve digits: the order in which threads add shows in the last ones."""
    return json.dumps(json.loads(content, parse_float=lambda text: float(f"{float(text):.12g}"))).encode()


def without_place(content: bytes, folder: Path) -> bytes:
    """A file without times and without the folder it was made in."""
    return TIME.sub(b"(time)", content.replace(str(folder).encode(), b"(folder)"))


def parquet_rows(path: Path) -> dict[str, Any]:
    """Types and rows of a Parquet file."""
    table = pq.read_table(path)
    rows = [list(map(_plain, row)) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    return {"columns": {field.name: str(field.type) for field in table.schema}, "rows": rows}


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, bool | int | float | str) else str(cell)


def store_content(path: Path) -> bytes:
    """The rows of every table of a store, sorted; blobs as what is in them, or as digests."""
    tables: dict[str, list[dict[str, Any]]] = {}
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        for name in names:
            if name.startswith("sqlite_"):
                continue
            rows = [_store_row(dict(row)) for row in connection.execute(f"SELECT * FROM {name}")]  # noqa: S608
            tables[name] = sorted(rows, key=json.dumps)
    connection.close()
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"
        for name, rows in tables.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _store_row(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("name") == "secret":
        return {"name": "secret", "value": "(random)"}
    return {name: _cell(cell) for name, cell in row.items() if name not in KEYED}


def _cell(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return _blob(cell)
    if isinstance(cell, str) and cell.startswith("{"):
        return _normalized(json.JSONDecoder().raw_decode(cell)[0])  # of the head, all but its digest
    return cell


def _blob(data: bytes) -> Any:
    """JSON as it is, a header of JSON with what stands behind it, or a digest."""
    try:
        return _normalized(json.loads(data)) if data[:1] in (b"{", b"[") else _digest(data)
    except ValueError:
        pass
    return _digest(data)


def _digest(data: bytes) -> Any:
    """Headers are found by their length before them, whatever they say."""
    for start in range(4, min(32, len(data))):
        for size in (8, 4):
            length = int.from_bytes(data[start - size : start], "little") if start >= size else 0
            if data[start : start + 1] == b"{" and 2 <= length <= len(data) - start:
                head = json.loads(data[start : start + length])
                parts = _parts(head, data[start + length :])
                return {"head": head, "parts": parts}
    if re.fullmatch(rb"[0-9a-f]{64}", data):
        return data.decode()
    return f"{len(data)} bytes {hashlib.blake2b(data, digest_size=12).hexdigest()}"


def _parts(head: Mapping[str, Any], rest: bytes) -> list[Any]:
    """What stands behind a header, cut where a list of the header says."""
    for value in head.values():
        sizes = [item[-1] for item in value if isinstance(item, list)] if isinstance(value, list) else []
        if sizes and all(isinstance(size, int) for size in sizes) and sum(sizes) == len(rest):
            value[:] = [item[:-1] for item in value]  # a size changes with a name
            ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
            return [_part(rest[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
    return [_digest(rest)] if rest else []


def _part(data: bytes) -> Any:
    try:
        table = pa.ipc.open_stream(data).read_all()
    except (pa.ArrowInvalid, OSError):
        return _digest(data)
    rows = json.dumps([column.to_pylist() for column in table.columns], default=str).encode()
    return {
        "columns": table.column_names,
        "rows": table.num_rows,
        "cells": hashlib.blake2b(rows, digest_size=12).hexdigest(),
    }


def symbolic(files: Mapping[str, bytes], known: Mapping[str, str]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files with a symbol for every SHA-256 digest, and the symbols; `known` names those of bytes that are compared."""
    symbols = dict(known)

    def symbol(match: re.Match[str]) -> str:
        return symbols.setdefault(match[0], f"(digest {len(symbols) - len(known) + 1})")

    texts = {name: DIGEST.sub(symbol, content.decode()) for name, content in sorted(files.items())}
    short = {digest[:_SHORT]: f"{name[:-1]}, short)" for digest, name in symbols.items()}
    whole = {name: _PREFIX.sub(lambda match: short.get(match[0], match[0]), text) for name, text in texts.items()}
    digests = {name: digest for digest, name in symbols.items() if digest not in known}
    return {name: text.encode() for name, text in whole.items()}, digests


def decoded(name: str, content: bytes) -> Any:
    """A file as values: JSON, lines of JSON, rows of a CSV, or text."""
    text = content.decode()
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith(".ndjson"):
        return list(map(json.loads, text.splitlines()))
    return list(csv.reader(io.StringIO(text))) if name.endswith(".csv") else text


def comparable(name: str, value: Any) -> Any:
    """Values under other names: the numbers of digests and the order of a store's rows follow from names."""
    if name == STORE:
        value = {table: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) for table, rows in value.items()}
    return json.loads(re.sub(r"\(digest \d+", "(digest", json.dumps(value)))


def _dump(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"
