"""Identifiers that seem to name persons, and whether they repeat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from reticent.policy.column_word import plain_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def repeated_identifier(table: pa.Table, names: Sequence[str]) -> tuple[str, int] | None:
    """An identifier that seems to name persons and repeats, and how many records are further ones of somebody."""
    for name in person_columns(names):
        cells = table.column(name).drop_null()
        further = len(cells) - pc.count_distinct(cells).as_py()
        if further:
            return name, further
    return None


def person_columns(names: Sequence[str]) -> list[str]:
    """Names of identifiers that may tell one person from another, the surest first."""
    strong = [
        n
        for n in names
        if re.search(
            r"(patient|paciente|person|subj|member|mrn|nhs|insur|versicherten|bene_?id|enroll?_?id|^(pid|eid|pat|pt)(_|id|nr|no|$)"
            r"|^(ipp|nip|nir|kvnr|bsn|dni|nhc)$)",
            plain_word(n),
        )
        and not re.search("name", plain_word(n))
    ]
    weak = [n for n in names if re.search(r"(^|_)(id|key|number|nr|no)$|nummer$", plain_word(n))]
    return list(dict.fromkeys(strong + weak))
