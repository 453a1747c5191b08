"""Three worlds with known true records: Adult, a hospital with repeated visits, a feed with an outbreak."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.datasets import adult, feed, visits

OTHER = "other"


@dataclass(frozen=True)
class World:
    """Present and past records, the published fields and the hidden column."""

    name: str
    now: pa.Table
    past: pa.Table
    fields: tuple[str, ...]
    rows: tuple[str, ...]
    hidden: str
    person: str | None
    l: int


def worlds(n: int, seed: int) -> list[World]:
    out = [_hospital(n, seed), _feed(n, seed)]
    folder = adult.data_folder("adult.data")
    return out if folder is None else [_adult(adult.load_stream(folder), seed), *out]


def _adult(table: pa.Table, seed: int) -> World:
    hidden = adult.STREAM_SENSITIVE
    order = np.random.default_rng(seed).permutation(table.num_rows)
    table = table.take(pa.array(order))
    ages = [int(age) for age in table["age"].to_pylist()]
    table = table.set_column(table.column_names.index("age"), "age", pa.array(ages))
    table = table.append_column("band", pa.array([f"{age // 15}" for age in ages]))
    half = table.num_rows // 2
    fields = ("age", "sex", "race", "education", "marital-status", "workclass")
    return World("adult", table.slice(half), table.slice(0, half), fields, ("sex", "band"), hidden, None, 5)


def _hospital(n: int, seed: int) -> World:
    now, past = (_grouped(visits.generate(n, number)) for number in (seed, seed + 1000))
    now, past = _common(now, past, "diagnosis", 60)
    fields = ("year", "sex", "region", "admission_route", "length_of_stay")
    return World("hospital", now, past, fields, ("sex", "band"), "diagnosis", "patient_id", 5)


def _grouped(table: pa.Table) -> pa.Table:
    years = [int(str(day)[:4]) for day in table["birth_date"].to_pylist()]
    stays = [int(days) for days in table["length_of_stay"].to_pylist()]
    table = table.append_column("year", pa.array(years)).append_column("band", pa.array([str(y // 20) for y in years]))
    return table.set_column(table.column_names.index("length_of_stay"), "length_of_stay", pa.array(stays))


def _feed(n: int, seed: int) -> World:
    now, past = feed.generate(n, seed, outbreak="influenza"), feed.generate(n, seed + 1000)
    now, past = (_banded(table) for table in (now, past))
    now, past = _common(now, past, "diagnosis", 60)
    fields = ("age", "sex", "region", "admission_route", "day")
    return World("feed", now, past, fields, ("sex", "band"), "diagnosis", "patient_id", 5)


def _banded(table: pa.Table) -> pa.Table:
    ages = [int(age) for age in table["age"].to_pylist()]
    moments = np.array([str(moment) for moment in table["admitted"].to_pylist()], dtype="datetime64[D]")
    days = (moments - moments.min()).astype(int)
    table = table.set_column(table.column_names.index("age"), "age", pa.array(ages))
    table = table.append_column("band", pa.array([str(age // 20) for age in ages]))
    return table.append_column("day", pa.array(days))


def _common(now: pa.Table, past: pa.Table, hidden: str, most: int) -> tuple[pa.Table, pa.Table]:
    """Return the tables with the values frequent in the past by name, all others under one."""
    known = {value for value, _ in Counter(past[hidden].to_pylist()).most_common(most)}

    def renamed(table: pa.Table) -> pa.Table:
        cells = [value if value in known else OTHER for value in table[hidden].to_pylist()]
        return table.set_column(table.column_names.index(hidden), hidden, pa.array(cells))

    return renamed(now), renamed(past)
