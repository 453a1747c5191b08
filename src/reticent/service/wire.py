"""Records as they come over HTTP: NDJSON or Arrow into a table."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from reticent.connectors.files import check_finite
from reticent.engine.stream.records import native
from reticent.errors import DataError
from reticent.service.problems import ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.policy import Policy

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
_SCALARS = {str, int, float, bool, type(None)}
_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def media_type(header: str | None) -> str:
    """The type alone, without parameters."""
    return (header or "").partition(";")[0].strip().lower()


def records(body: bytes, kind: str, policy: Policy) -> pa.Table:
    """A batch with exactly the columns of the policy."""
    if kind == NDJSON:
        return from_ndjson(body, list(policy.columns))
    if kind == ARROW:
        table = from_arrow(body)
        policy.check_columns(table.column_names)
        return table
    raise ServiceError(415, "content-type", f"Records are sent as {NDJSON} or {ARROW}.", "Set Content-Type.")


def from_arrow(body: bytes) -> pa.Table:
    """An Arrow IPC stream; its buffers are checked before anything reads them."""
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        raise DataError("The body is not a sound Arrow stream.", hint="Write it with pyarrow.ipc.new_stream.") from None
    names = table.column_names
    if len(set(names)) < len(names):
        raise DataError("Two columns have the same name.", hint="Rename one of them.")
    nested = [field for field in table.schema if pa.types.is_nested(field.type)]
    if nested or not table.num_rows:
        raise DataError("Records are rows of single values, at least one.", hint="Flatten nested columns.")
    check_finite(table, name="the body")
    try:
        return pa.table({name: native(table.column(name)) for name in names})
    except pa.ArrowException:
        raise DataError("A column has a type that cannot be released.", hint="Use text and numbers.") from None


def from_ndjson(body: bytes, names: list[str]) -> pa.Table:
    """One flat JSON object per line; a field that is absent is null, a field without a role is refused."""
    lines = [line for line in body.split(b"\n") if line and not line.isspace()]
    if not lines:
        raise DataError("There are no records in the body.", hint="Write one JSON object per line.")
    found = _parse(lines)
    try:
        # The usual case at a fraction of the time: every record has every field and no other.
        if set(map(len, found)) == {len(names)} and len(names) > 1:
            columns = zip(*map(itemgetter(*names), found), strict=True)
            return pa.table({name: _column(name, column) for name, column in zip(names, columns, strict=True)})
    except KeyError:
        pass
    allowed = set(names)
    for number, record in enumerate(found, 1):
        if not record.keys() <= allowed:
            raise DataError(f"Line {number}: a field without a role in the policy.", hint="Leave it out.")
    return pa.table({name: _column(name, [record.get(name) for record in found]) for name in names})


def _parse(lines: list[bytes]) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = orjson.loads(b"[" + b",".join(lines) + b"]")
    except orjson.JSONDecodeError:
        found = []
    # A line with a comma of its own would shift the lines after it.
    if len(found) == len(lines) and set(map(type, found)) == {dict}:
        return found
    return [_record(line, number) for number, line in enumerate(lines, 1)]


def _record(line: bytes, number: int) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise DataError(f"Line {number}: not valid JSON.", hint="Write one JSON object per line.") from None
    if type(record) is not dict:
        raise DataError(f"Line {number}: not a JSON object.", hint="Write one JSON object per line.")
    return record


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    kinds = set(map(type, values))
    if not kinds <= _SCALARS:
        raise DataError(f"Field '{name}' is nested in some lines.", hint="Flatten it to one value per field.")
    kinds.discard(type(None))
    if len(kinds) > 1:
        if kinds != {int, float}:
            values = [v if v is None or isinstance(v, str) else orjson.dumps(v).decode() for v in values]
            kinds = {str}
        else:
            kinds = {float}
    try:
        return pa.array(values, type=_TYPES[kinds.pop()] if kinds else pa.string())
    except (pa.ArrowException, OverflowError):
        raise DataError(f"Field '{name}' holds a number too large to keep.", hint="Write it as text.") from None
