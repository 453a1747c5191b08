"""One case per engine: a policy and data that fit it. A new engine adds one entry here and inherits every law."""

from __future__ import annotations

import atexit
import base64
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine import publisher_class
from reticent.engine.base import Publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.release import Release


@dataclass(frozen=True)
class Case:
    """An engine, its policy, and a table for it; `line` is a plain column that numbers the input rows."""

    kind: str
    method: str
    policy: dict[str, Any]
    table: Callable[[int, int], pa.Table]
    engine: type[Publisher] | None = None
    """A class to use instead of the registered one: the laws are tried on planted bugs with it."""
    cut: bool = False
    """Whether versions are published by `cut`."""

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.method}"

    def rules(self) -> Policy:
        return Policy.from_dict(self.policy)

    def build(self, seed: int = 1) -> Publisher:
        return self.type()(self.rules(), rng=Rng.from_seed(seed))

    def type(self) -> type[Publisher]:
        return self.engine or publisher_class(self.kind, self.method)


COLUMNS = {
    "patient": "identifier",
    "line": "plain",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "sex": "quasi",
    "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
    "ill": "sensitive",
}


def people(seed: int, n: int) -> pa.Table:
    """Persons with a canary in every identifying cell, and eight illnesses of uneven frequency."""
    rng = np.random.default_rng(seed)
    share = np.array([0.2, 0.18, 0.15, 0.12, 0.1, 0.1, 0.08, 0.07])
    return pa.table(
        {
            "patient": [f"CANARY-{base64.b32encode(rng.bytes(5)).decode()}" for _ in range(n)],
            "line": pa.array(range(n), pa.int64()),
            "age": pa.array(rng.integers(0, 90, n), pa.int64()),
            "sex": pa.array(["m" if x else "f" for x in rng.integers(0, 2, n)]),
            "zip": pa.array([f"{x:03d}" for x in rng.integers(100, 140, n)]),
            "ill": pa.array([None if x == 7 else f"illness {x}" for x in rng.choice(8, n, p=share)]),
        }
    )


def visits(seed: int, n: int) -> pa.Table:
    """The same, but everybody comes twice or more, often with another illness."""
    table, rng = people(seed, n), np.random.default_rng(seed + 1)
    names = table.column("patient").take(pa.array(rng.integers(0, max(n // 3, 1), n)))
    return table.set_column(0, "patient", names)


ILLNESSES = {"*": {f"group {g}": [f"illness {2 * g + i}" for i in range(2)] for g in range(4)}}


def streamed(**settings: Any) -> dict[str, Any]:
    """A policy for a stream; the domain of the sensitive column is known, its missing values are not."""
    columns = COLUMNS | {"ill": {"role": "sensitive", "hierarchy": {"tree": ILLNESSES}}}
    return {"version": 1, "person": "patient", "columns": columns, "stream": settings}


def repeated(model: str, m: int) -> dict[str, Any]:
    """A policy for a series: illnesses of one branch may become one another."""
    ill = {"role": "sensitive", "hierarchy": {"tree": ILLNESSES}, "updates": {"tree": 1}}
    series = {"method": model, "m": m}
    return {"version": 1, "person": "patient", "columns": COLUMNS | {"ill": ill}, "series": series}


PRIOR = Path(tempfile.mkdtemp(prefix="reticent-laws-")) / "prior.csv"
atexit.register(shutil.rmtree, PRIOR.parent, ignore_errors=True)
PRIOR.write_text(
    "sex,value,count\n"
    + "".join(f"{sex},{v},{n}\n" for sex in "mf" for v, n in [(f"illness {i}", 20 - i) for i in range(7)] + [("", 9)])
)


KERNEL = PRIOR.with_name("kernel.csv")
KERNEL.write_text("".join(f"illness {i},illness {j},{0.6 if i == j else 0.1}\n" for i in range(5) for j in range(5)))


def veiled(kernel: Path | None = None, **settings: Any) -> dict[str, Any]:
    """A policy for the veil, with a prior by sex."""
    prior: dict[str, Any] = {"file": str(PRIOR), "by": ["sex"]}
    if kernel is not None:
        prior["kernel"] = {"file": str(kernel)}
    columns = COLUMNS | {"age": {"role": "quasi", "level": 1, "hierarchy": {"intervals": [5, 10, 20, 40]}}}
    return {"version": 1, "person": "patient", "columns": columns, "privacy": {"l": 3}, "prior": prior, **settings}


def generalised(method: str) -> dict[str, Any]:
    """A policy for the engines that generalise; Mondrian suppresses nothing."""
    return {
        "version": 1,
        "person": "patient",
        "columns": COLUMNS,
        "privacy": {"k": 4, "l": 2, "t": 0.6, "suppression": 0.1},
        "table": {"method": method, "supervision": {"sample": 60}},
    }


CASES = [
    Case("table", "veil", veiled(table={"method": "veil"}), people),
    Case("series", "veil", veiled(series={"method": "veil"}), people),
    Case("evolving", "veil", veiled(evolving={"method": "veil"}), people, cut=True),
    Case(
        "table",
        "anatomy",
        {"version": 1, "person": "patient", "columns": COLUMNS, "privacy": {"l": 3, "suppression": 0.2}},
        people,
    ),
    *(
        Case("table", method, generalised(method), people)
        for method in ("auto", "optimal", "local", "mondrian", "supervised")
    ),
    *(
        Case(
            "evolving",
            method,
            {"version": 1, "person": "patient", "columns": COLUMNS, "evolving": {"method": method, "l": 3}},
            people,
        )
        for method in ("indexed", "enc", "encc", "eac", "red")
    ),
    *(
        Case("series", model, repeated(model, m), people)
        for model, m in (("m-distinct", 3), ("m-distinct*", 2), ("m-invariance", 3), ("l-diversity", 3))
    ),
    Case("stream", "veil", veiled(KERNEL, stream={"method": "veil"}), visits),
    Case("stream", "delay-free", streamed(method="delay-free", l=3), people),
    Case("stream", "castle", streamed(method="castle", delta=40) | {"privacy": {"k": 4, "l": 2}}, people),
]


def run(
    case: Case, table: pa.Table, cuts: list[int], *, seed: int = 1, restart: bool = False
) -> tuple[list[Release], Publisher]:
    """Pushes the table in pieces and closes; with `restart`, every piece meets a publisher restored from a snapshot."""
    engine = case.build(seed)
    releases: list[Release] = []
    for start, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        if restart:
            engine = case.type().restore(case.rules(), engine.snapshot())
        releases += engine.push(table.slice(start, end - start))
        if case.cut and end >= 40:  # a version of a handful of rows is refused, and rightly
            releases += engine.cut()
    if restart:
        engine = case.type().restore(case.rules(), engine.snapshot())
    releases += engine.close()
    return releases, engine
