"""Releases to attack: streams by the engines, and naive ones made by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release


def values(domain):
    return [f"v{number:02d}" for number in range(domain)]


def stream_policy(folder, *, method, l, shares, **more):
    lines = [f"{name},{round(share * 100_000)}\n" for name, share in zip(values(len(shares)), shares, strict=True)]
    (folder / "prior.csv").write_text("value,count\n" + "".join(lines))
    columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
    return Policy.from_dict(
        {
            "version": 1,
            "person": "id",
            "columns": columns,
            "prior": {"file": "prior.csv"},
            "stream": {"method": method, "l": l, **more},
        },
        base=folder,
    )


def stream(folder, *, method, n, l, shares, seed, persons=None, **more):
    """A stream of n tuples: its releases, the policy, and the input."""
    rng = np.random.default_rng(seed)
    policy = stream_policy(folder, method=method, l=l, shares=shares, **more)
    names = values(len(shares))
    who = np.arange(n) if persons is None else rng.integers(0, persons, n)
    fixed = rng.choice(len(shares), n if persons is None else persons, p=shares)
    ill = [names[v] for v in (fixed if persons is None else fixed[who])]
    table = pa.table({"id": [f"p{w}" for w in who], "age": [f"a{w}" for w in who], "ill": ill})
    engine = publisher(policy, "stream", method, rng=Rng.from_seed(seed))
    return [*engine.push(table), *engine.close()], policy, table


def generalised(rows, claims, *, quasi=("age",), rows_in=None):
    """A generalised release by hand: rows of (quasi..., ill)."""
    columns = list(zip(*rows, strict=True))
    tables = {name: pa.array(column, pa.string()) for name, column in zip((*quasi, "ill"), columns, strict=True)}
    count = rows_in or len(rows)
    return Release(
        "table",
        "generalized",
        "by hand",
        {"data": pa.table(tables)},
        Guarantee(claims, "nobody"),
        RecordCounts(count, len(rows), 0, count - len(rows)),
        "none",
    )


def anatomy(groups, claims, number=0):
    """A release in two tables by hand: per group, the quasi-identifiers of its members and its values with counts."""
    qit = [(str(g), who) for g, (members, _) in enumerate(groups) for who in members]
    st = [(str(g), value, count) for g, (_, offered) in enumerate(groups) for value, count in offered.items()]
    tables = {
        "qit": pa.table({"group": [g for g, _ in qit], "age": [who for _, who in qit]}),
        "st": pa.table({"group": [r[0] for r in st], "value": [r[1] for r in st], "count": [r[2] for r in st]}),
    }
    return Release(
        "evolving",
        "anatomy",
        "by hand",
        tables,
        Guarantee(claims, "nobody"),
        RecordCounts(len(qit), len(qit), 0, 0),
        f"none{number}",
    )
