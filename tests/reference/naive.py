"""Naive releases to attack, in the manner of group modes that are no longer made: small on purpose, and broken on purpose."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pyarrow as pa

from reticent.audit.attack import Evidence
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.verify.published import read_release, text_table

OTHER = "other"


def designs(prior, l):
    """Classes of l values of about the same frequency; `other` stands for what the prior lacks, in the rarest class."""
    names = [*sorted(prior, key=lambda name: -prior[name]), OTHER]
    whole = max(len(names) // l, 1)
    classes = [names[at * l : (at + 1) * l] for at in range(whole)]
    classes[-1] += names[whole * l :]
    return {name: tuple(sorted(one)) for one in classes for name in one}


def sealed(table, prior, l, *, sensitive="ill", claims=None):
    """Groups opened by records: who finds no free seat of its value in a group of its class opens one."""
    design, names = designs(prior, l), [n for n in table.column_names if n not in ("id", sensitive)]
    seats, groups, members = {}, [], []
    for place, value in enumerate(table[sensitive].to_pylist()):
        name = value if value in design else OTHER
        if not seats.get(name):
            for other in design[name]:
                seats.setdefault(other, []).append(len(groups))
            groups.append(design[name])
        members.append((str(seats[name].pop(0)), place))
    offers = [(str(number), value) for number, values in enumerate(groups) for value in values]
    shown = {name: table[name].cast(pa.string()) for name in names}
    tables = {
        "group": pa.table(
            {"group": [g for g, _ in offers], "value": [v for _, v in offers], "count": ["1"] * len(offers)}
        ),
        "tuple": pa.table({"group": [g for g, _ in members], "seq": [str(at) for _, at in members], **shown}),
    }
    size = table.num_rows
    words = Guarantee(claims or {"posterior": 1 / l}, "an attacker who knows nothing but the prior")
    return Release("stream", "stream", "naive", tables, words, RecordCounts(size, size, 0, 0), "none")


VALUES, AGES = 30, 90


def world(n, seed, *, shares=None):
    """Persons whose illness depends on age and sex, or (with shares) on nothing."""
    rng = np.random.default_rng(seed)
    sex, age, place = rng.integers(0, 2, n), rng.integers(0, AGES, n), np.arange(VALUES)
    slope = 1.5 * np.sin(place * 1.7) * (age[:, None] / 45 - 1) + 0.8 * np.cos(place * 2.9) * (2 * sex[:, None] - 1)
    odds = np.exp(slope) / (place + 4) if shares is None else np.broadcast_to(shares, (n, VALUES))
    running = np.cumsum(odds, axis=1)
    value = (running < rng.random((n, 1)) * running[:, -1:]).sum(axis=1).clip(max=VALUES - 1)
    return pa.table(
        {
            "id": [f"{seed}-{i}" for i in range(n)],
            "ticket": [f"t{i}" for i in range(n)],
            "sex": np.array(["m", "f"])[sex],
            "age": age,
            "ill": [f"v{v:02}" for v in value],
        }
    )


def with_value(table, places, value):
    """The same persons, some of them with another value."""
    ill = table["ill"].to_pylist()
    for place in places:
        ill[place] = value
    return table.set_column(table.column_names.index("ill"), "ill", pa.array(ill))


def counted(table):
    """Value -> count."""
    return dict(Counter(table["ill"].to_pylist()))


def policy(folder, past, l, *, by=True, **sections):
    """A policy with a prior of the past, by sex and decade of age or for everybody; a ticket identifies each record."""
    decade = [f"[{a // 10 * 10}, {a // 10 * 10 + 10})" for a in past["age"].to_pylist()]
    cells = zip(past["sex"].to_pylist(), decade, past["ill"].to_pylist(), strict=True)
    rows = Counter(cells) if by else {(value,): count for value, count in counted(past).items()}
    head = ["sex", "age"] if by else []
    with (folder / "prior.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*head, "value", "count"])
        out.writerows([*cell, count] for cell, count in sorted(rows.items()))
    columns = {
        "id": "identifier",
        "ticket": "plain",
        "sex": "quasi",
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 30]}},
        "ill": "sensitive",
    }
    data = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": l}, "prior": {"file": "prior.csv"}}
    return Policy.from_dict(data | {"table": {"method": "veil"}} | sections, base=folder)


def veiled(table, rules, seed=3):
    """The table under the veil, by the engine."""
    return publisher(rules, "table", "veil", rng=Rng.from_seed(seed)).release(table)


def evidence(releases, rules, original, **more):
    """What an attacker has: some releases, the policy and the original."""
    shown = tuple(read_release(release, str(at)) for at, release in enumerate(releases))
    return Evidence(shown, rules, text_table(original), key=b"k", rng=np.random.default_rng(1), **more)
