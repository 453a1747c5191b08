"""Naive releases to attack, in the manner of group modes that are no longer made: small on purpose, and broken on purpose."""

from __future__ import annotations

import pyarrow as pa

from reticent.release import Counts, Guarantee, Release

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
    words = Guarantee(claims or {"posterior": 1 / l}, "a reader who knows nothing but the prior")
    return Release("stream", "stream", "naive", tables, words, Counts(size, size, 0, 0), "none")
