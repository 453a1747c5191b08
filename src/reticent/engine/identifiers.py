"""What is done to direct identifiers before any engine sees them: keyed pseudonyms, date shift, combined columns.

Guarantee: without the key file nobody can compute a person's pseudonym or shift, or link pseudonyms made with different
keys (HMAC-SHA-256, 128 bits kept). All dates of one person move together, so the spans between them stay.

Not covered: a shift alone hides no order of events and no span; generalise dates as well. A pseudonym that repeats links
the records of a person, and k and l speak of records: such a table is refused.

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
"""Stands between the parts of a combined value."""


def prepare(table: pa.Table, policy: Policy, secret: bytes | None = None) -> pa.Table:
    """The table as engines may see it: markers read as missing, columns combined, one name per person, identifiers replaced, dates shifted.

    `secret` is that of a shift without a key file; where it is not given, one of this process.
    """
    table = without_markers(table, policy.missing)
    for name, column in policy.columns.items():
        if column.combine is not None:
            table = _combine(table, name, column.combine)
    for who in (policy.person, policy.household):
        if who is not None and who in table.column_names:
            table = table.set_column(table.column_names.index(who), who, normalize_names(table.column(who)))
    for name, column in policy.columns.items():
        identifier = column.transform
        if identifier is None or identifier.drop or name not in table.column_names:
            continue
        at = table.column_names.index(name)
        if identifier.pseudonym is not None:
            changed = _pseudonyms(table.column(name), Keys.load(policy.path(identifier.pseudonym)))
        else:
            changed = _shift_dates(table, policy, name, secret)
        table = table.set_column(at, name, changed)
    return table


def refuse_unfit(policy: Policy, kind: str, method: str) -> None:
    """Refuses what a method, which need not be the policy's own, cannot keep: pseudonyms that link releases, shifts that differ, other forms of l, one record of each person."""
    if policy.tables is not None:
        raise PolicyError("The policy is for several tables.", hint="Linked tables are released once, by anonymize.")
    l = policy.privacy.l
    if kind != "table" or method in ("anatomy", "veil"):
        refuse_overall_demands(policy)
    if kind != "table" and l is not None and l.kind in ("entropy", "recursive"):
        raise PolicyError(
            f"privacy.l: {l.kind} diversity is kept by table methods only, not by releases of the kind {kind}.",
            hint="Write l: {distinct: ...} for this kind of release.",
        )
    one = policy.persons is not None and policy.persons.records != "all"
    if one and (kind == "stream" or (kind == "evolving" and method != "veil")):
        raise PolicyError(
            f"person.records: this method of the kind {kind} releases every record of a person.",
            hint="Take records out, or publish a table or an evolving table under the veil.",
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
            raise PolicyError(f"columns.{name}: a stream cannot shift dates.", hint="Give it the role identifier.")
        if kind != "table" and identifier.key is None:
            raise PolicyError(
                f"columns.{name}: a shift without a key file would differ from release to release.",
                hint="Write {shift: 30, key: study.key}.",
            )
    if column.combine is not None and kind == "stream":
        raise PolicyError(
            f"columns.{name}: a stream takes its columns as they come.", hint="Combine them before the stream."
        )


def refuse_overall_demands(policy: Policy) -> None:
    """Refuses demands on all classes together, for releases that do not keep them."""
    if policy.privacy.overall:
        raise PolicyError(
            f"privacy.{policy.privacy.overall[0]} is kept by table methods that generalise, not by this one.",
            hint="Take it out of the policy, or write table: {method: local}.",
        )


def refuse_pseudonym_repeats(table: pa.Table, policy: Policy) -> None:
    """Refuses a whole table in which a pseudonym occurs twice: it would link the records of a person."""
    for name, column in policy.columns.items():
        if column.transform is None or column.transform.pseudonym is None:
            continue
        cells = table.column(name).drop_null()
        again = len(cells) - pc.count_distinct(cells).as_py()
        if again:
            raise GuaranteeError(
                f"columns.{name}: {again:,} pseudonyms would repeat and link the records of a person.",
                hint="Give the column the role identifier, or pseudonymise a column that names single records.",
            )


def policy_exclusions(policy: Policy) -> tuple[str, ...]:
    """What a bound does not say of plain columns, and where several are sensitive; part of the release's own words."""
    sentences = []
    if policy.plain:
        names = ", ".join(policy.plain[:3]) + (f" and {len(policy.plain) - 3} more" if len(policy.plain) > 3 else "")
        sentences.append(f"a reader who knows what a column that is released as it is says of a person ({names})")
    if len(policy.sensitive) > 1:
        sentences.append("a reader who knows one sensitive value of a person and infers another from it")
    if any(column.combine for column in policy.columns.values()):
        sentences.append("each part of a combined value alone: the bound is for the combination")
    return tuple(sentences)


def pseudonym(value: str, keys: Keys) -> str:
    """The pseudonym of one value: the name of the key, and 128 bits of a keyed hash."""
    digest = hmac.digest(keys.secret, b"pseudonym\0" + value.encode(), "sha256")
    return f"{keys.current}-{base64.b32encode(digest[:16]).decode().rstrip('=').lower()}"


def shift_days(person: str, secret: bytes, most: int) -> int:
    """How far a person's dates move: from -most to most, never 0, each as likely as any other."""
    digest = hmac.digest(secret, b"shift\0" + person.encode(), "sha256")
    # 128 bits: the bias of the remainder is far below anything one could measure.
    step = int.from_bytes(digest[:16], "big") % (2 * most)
    return step - most if step < most else step - most + 1


def _pseudonyms(column: pa.ChunkedArray, keys: Keys) -> pa.Array:
    cells = column.cast(pa.string()).combine_chunks().dictionary_encode()
    words = pa.array([pseudonym(value, keys) for value in cells.dictionary.to_pylist()], pa.string())
    return words.take(cells.indices)


def _shift_dates(table: pa.Table, policy: Policy, name: str, secret: bytes | None) -> pa.Array:
    identifier = policy.columns[name].transform
    assert identifier is not None  # noqa: S101 - the caller looked
    assert identifier.shift is not None  # noqa: S101
    assert policy.person is not None  # noqa: S101 - the policy was checked
    # Never by a key that came later: two shifts of one date, in two releases, have little in common but the date.
    secret = Keys.load(policy.path(identifier.key)).first if identifier.key else secret or _session_secret(policy)
    if policy.person not in table.column_names:
        raise DataError(f"The data has no column '{policy.person}', so no date can be shifted.")
    people = table.column(policy.person).cast(pa.string()).combine_chunks().dictionary_encode()
    if people.null_count:
        raise DataError(
            f"{people.null_count:,} records have no person, so their dates cannot be shifted.",
            hint="Fill the person column, or leave those records out.",
        )
    moves = np.array(
        [shift_days(person, secret, identifier.shift) for person in people.dictionary.to_pylist()], dtype=np.int64
    )
    days = _parse_days(table.column(name), name)
    moved = days + moves[people.indices.to_numpy()].astype("timedelta64[D]")
    return pa.array(moved, pa.date32(), from_pandas=True)


_SESSION_SECRETS: dict[str, bytes] = {}


def _session_secret(policy: Policy) -> bytes:
    """One key per process and policy: batches of one table agree, and nothing is left when the process ends."""
    return _SESSION_SECRETS.setdefault(policy.hash, secrets.token_bytes(32))


def _parse_days(column: pa.ChunkedArray, name: str) -> Any:
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return column.cast(pa.date32(), safe=False).to_numpy().astype("datetime64[D]")
    words = column.cast(pa.string()).combine_chunks().dictionary_encode()
    days = [_parse_day(cell) for cell in words.dictionary.to_pylist()]
    strange = pc.sum(pc.is_in(words.indices, pa.array([i for i, day in enumerate(days) if day is None], pa.int32())))
    if strange.as_py():
        raise DataError(
            f"columns.{name}: {strange.as_py():,} cells are no dates and cannot be shifted.", hint="Write YYYY-MM-DD."
        )
    return pa.array(days, pa.date32()).take(words.indices).to_numpy(zero_copy_only=False).astype("datetime64[D]")


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
                f"columns.{name}: combine names the column '{part}' that the data does not have.",
                hint="Correct the name.",
            )
    cells = [pc.fill_null(table.column(part).cast(pa.string()), "") for part in parts]
    whole = pc.binary_join_element_wise(*cells, SEPARATOR)
    return table.drop_columns(list(parts)).append_column(name, whole)
