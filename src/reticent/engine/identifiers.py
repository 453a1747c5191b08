"""Transform direct identifiers before any engine sees them: keyed pseudonyms, date shifts, combined columns.

Guarantee: an attacker without the key file cannot compute a person's pseudonym or shift, or link pseudonyms of different
keys (HMAC-SHA-256, 128 bits). All dates of one person move together, so the intervals between them stay.

Not covered: a shift alone hides neither the order of events nor intervals; generalize dates as well. A repeated pseudonym links
the records of a person, and k and l count records: such a table is refused.

Cost: one HMAC per distinct value.

Reference: H. Krawczyk, M. Bellare, R. Canetti, "HMAC: keyed-hashing for message authentication", RFC 2104, 1997.
"""

from __future__ import annotations

import base64
import datetime as dt
import hmac
import secrets
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.encode.columns import normalize_names
from reticent.engine.keys import Keys
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.policy import Column, Policy
from reticent.policy.cells import without_markers

SEPARATOR = " | "
"""Separates the parts of a combined value."""


def prepare(table: pa.Table, policy: Policy, secret: bytes | None = None) -> pa.Table:
    """Prepare a table for an engine: missing markers, combined columns, canonical person names, identifiers, date shifts.

    `secret` keys a shift without a key file; the default is a secret of this process.
    """
    table = without_markers(table, policy.missing)
    for name, column in policy.columns.items():
        if column.combine is not None:
            table = _combine(table, name, column.combine)
    for key in (policy.person, policy.household):
        if key is not None and key in table.column_names:
            table = table.set_column(table.column_names.index(key), key, normalize_names(table.column(key)))
    for name, column in policy.columns.items():
        identifier = column.transform
        if identifier is None or identifier.drop or name not in table.column_names:
            continue
        at = table.column_names.index(name)
        if identifier.pseudonym is not None:
            new_column = _pseudonyms(table.column(name), Keys.load(policy.path(identifier.pseudonym)))
        else:
            new_column = _shift_dates(table, policy, name, secret)
        table = table.set_column(at, name, new_column)
    return table


def refuse_unfit(policy: Policy, kind: str, method: str) -> None:
    """Refuse a policy that a method does not support: linking pseudonyms, changing shifts, other l, one record per person."""
    if policy.tables is not None:
        raise PolicyError("The policy is for several tables.", hint="Release linked tables with `reticent anonymize`.")
    l = policy.privacy.l
    if kind != "table" or method in ("anatomy", "veil"):
        refuse_overall_demands(policy)
    if kind != "table" and l is not None and l.kind in ("entropy", "recursive"):
        raise PolicyError(
            f"privacy.l: only table methods support {l.kind} diversity, not releases of kind {kind}.",
            hint="Write l: {distinct: ...} for this kind of release.",
        )
    single_record = policy.persons is not None and policy.persons.records != "all"
    if single_record and (kind == "stream" or (kind == "evolving" and method != "veil")):
        raise PolicyError(
            f"person.records: this method of kind {kind} releases every record of a person.",
            hint="Remove records, or publish a table or an evolving table under the veil.",
        )
    for name, column in policy.columns.items():
        _refuse_column(name, column, kind)


def _refuse_column(name: str, column: Column, kind: str) -> None:
    identifier = column.transform
    if identifier is not None and identifier.pseudonym is not None and kind != "table":
        raise PolicyError(
            f"columns.{name}: a pseudonym would link the releases of a person.",
            hint="Give the column the role identifier, or release one table once.",
        )
    if identifier is not None and identifier.shift is not None:
        if kind == "stream":
            raise PolicyError(f"columns.{name}: a stream cannot shift dates.", hint="Use the role identifier.")
        if kind != "table" and identifier.key is None:
            raise PolicyError(
                f"columns.{name}: a shift without a key file would differ from release to release.",
                hint="Write {shift: 30, key: study.key}.",
            )
    if column.combine is not None and kind == "stream":
        raise PolicyError(
            f"columns.{name}: a stream cannot combine columns.", hint="Combine the columns before the stream."
        )


def refuse_overall_demands(policy: Policy) -> None:
    """Refuse requirements on all classes together, for methods that do not support them."""
    if policy.privacy.overall:
        raise PolicyError(
            f"privacy.{policy.privacy.overall[0]}: only table methods that generalize support this.",
            hint="Remove it from the policy, or write table: {method: local}.",
        )


def refuse_pseudonym_repeats(table: pa.Table, policy: Policy) -> None:
    """Refuse a table in which a pseudonym repeats: it would link the records of a person."""
    for name, column in policy.columns.items():
        if column.transform is None or column.transform.pseudonym is None:
            continue
        cells = table.column(name).drop_null()
        repeats = len(cells) - pc.count_distinct(cells).as_py()
        if repeats:
            raise GuaranteeError(
                f"columns.{name}: {repeats:,} pseudonyms would repeat and link the records of a person.",
                hint="Give the column the role identifier, or pseudonymize a column with one value per record.",
            )


def policy_exclusions(policy: Policy) -> tuple[str, ...]:
    """Return what the guarantee excludes for plain, several sensitive and combined columns; the release states it."""
    sentences = []
    if policy.plain:
        names = ", ".join(policy.plain[:3]) + (f" and {len(policy.plain) - 3} more" if len(policy.plain) > 3 else "")
        sentences.append(f"an attacker who knows what a plain (unchanged) column says about a person ({names})")
    if len(policy.sensitive) > 1:
        sentences.append("an attacker who knows one sensitive value of a person and infers another from it")
    if any(column.combine for column in policy.columns.values()):
        sentences.append("each part of a combined value alone: the bound is for the combination")
    return tuple(sentences)


def pseudonym(value: str, keys: Keys) -> str:
    """Return the pseudonym of one value: the name of the key, and 128 bits of a keyed hash."""
    digest = hmac.digest(keys.secret, b"pseudonym\0" + value.encode(), "sha256")
    return f"{keys.current}-{base64.b32encode(digest[:16]).decode().rstrip('=').lower()}"


def shift_days(person: str, secret: bytes, most: int) -> int:
    """Return how many days a person's dates move: from -most to most, never 0, uniformly."""
    digest = hmac.digest(secret, b"shift\0" + person.encode(), "sha256")
    # 128 bits make the bias of the remainder negligible.
    step = int.from_bytes(digest[:16], "big") % (2 * most)
    return step - most if step < most else step - most + 1


def _pseudonyms(column: pa.ChunkedArray, keys: Keys) -> pa.Array:
    cells = column.cast(pa.string()).combine_chunks().dictionary_encode()
    pseudonyms = pa.array([pseudonym(value, keys) for value in cells.dictionary.to_pylist()], pa.string())
    return pseudonyms.take(cells.indices)


def _shift_dates(table: pa.Table, policy: Policy, name: str, secret: bytes | None) -> pa.Array:
    transform = policy.columns[name].transform
    assert transform is not None  # noqa: S101 - only called for a shifted column
    assert transform.shift is not None  # noqa: S101
    assert policy.person is not None  # noqa: S101 - the policy was checked
    # Always the first key: with two shifts of one date in two releases, an attacker could narrow the date down.
    secret = Keys.load(policy.path(transform.key)).first if transform.key else secret or _session_secret(policy)
    if policy.person not in table.column_names:
        raise DataError(f"The data have no column '{policy.person}', so no date can be shifted.", hint="Add it.")
    people = table.column(policy.person).cast(pa.string()).combine_chunks().dictionary_encode()
    if people.null_count:
        raise DataError(
            f"{people.null_count:,} records have no person, so their dates cannot be shifted.",
            hint="Fill in the person column, or remove these records.",
        )
    moves = np.array(
        [shift_days(person, secret, transform.shift) for person in people.dictionary.to_pylist()], dtype=np.int64
    )
    days = _parse_days(table.column(name), name)
    moved = days + moves[people.indices.to_numpy()].astype("timedelta64[D]")
    return pa.array(moved, pa.date32(), from_pandas=True)


_SESSION_SECRETS: dict[str, bytes] = {}


def _session_secret(policy: Policy) -> bytes:
    """Return one key per process and policy: batches of one table agree, and the key is lost when the process ends."""
    return _SESSION_SECRETS.setdefault(policy.hash, secrets.token_bytes(32))


def _parse_days(column: pa.ChunkedArray, name: str) -> Any:
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return column.cast(pa.date32(), safe=False).to_numpy().astype("datetime64[D]")
    dates = column.cast(pa.string()).combine_chunks().dictionary_encode()
    days = [_parse_day(cell) for cell in dates.dictionary.to_pylist()]
    invalid = pc.sum(pc.is_in(dates.indices, pa.array([i for i, day in enumerate(days) if day is None], pa.int32())))
    if invalid.as_py():
        raise DataError(
            f"columns.{name}: {invalid.as_py():,} cells are not dates and cannot be shifted.", hint="Write YYYY-MM-DD."
        )
    return pa.array(days, pa.date32()).take(dates.indices).to_numpy(zero_copy_only=False).astype("datetime64[D]")


def _parse_day(cell: str) -> dt.date | None:
    try:
        return dt.datetime.fromisoformat(cell).date()
    except ValueError:
        return None


def _combine(table: pa.Table, name: str, parts: tuple[str, ...]) -> pa.Table:
    if name in table.column_names and name not in parts:
        return table  # combined already
    for part in parts:
        if part not in table.column_names:
            raise PolicyError(
                f"columns.{name}: combine names the column '{part}', which the data do not have.",
                hint="Correct the name in combine.",
            )
    cells = [pc.fill_null(table.column(part).cast(pa.string()), "") for part in parts]
    combined = pc.binary_join_element_wise(*cells, SEPARATOR)
    return table.drop_columns(list(parts)).append_column(name, combined)
