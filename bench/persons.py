"""Persons instead of records: the cost of counting persons for each table method, with three admissions per person.

Every release passes the gate, so the verifier has compared it with its input. `python -m bench.persons` prints the
table.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from reticent import anonymize
from reticent.datasets import visits
from reticent.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

METHODS = ("auto", "optimal", "local", "mondrian", "supervised", "anatomy")
COLUMNS: dict[str, Any] = {
    "patient_id": "identifier",
    "visit": "identifier",
    "name": "identifier",
    "birth_date": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year", "decade"]}},
    "sex": "quasi",
    "region": "quasi",
    "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "admission_route": "quasi",
    "admission_date": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "length_of_stay": {"role": "quasi", "hierarchy": {"intervals": [[1, 3, 7, 14, 28], [7, 28]]}},
    "ward": "identifier",
    "diagnosis": {"role": "sensitive", "hierarchy": {"icd10": True}},
}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return seconds, loss and suppressed records of every method, by records and by persons."""
    table = visits.generate(6_000 if quick else 60_000, 1, mean=3)
    return {
        method: {counting: released(table, method, counting) for counting in ("records", "persons")}
        for method in METHODS
    }


def released(table: pa.Table, method: str, counting: str) -> dict[str, Any]:
    """Make one release, verified by the gate."""
    privacy = {"l": 3, "suppression": 0.05} if method == "anatomy" else {"k": 5, "l": 3, "suppression": 0.05}
    rules = {"version": 1, "columns": COLUMNS, "privacy": privacy, "table": {"method": method}}
    policy = Policy.from_dict(rules | ({"person": "patient_id"} if counting == "persons" else {}))
    start = time.perf_counter()
    release = anonymize(table, policy, seed=1)
    return {
        "seconds": time.perf_counter() - start,
        "made by": release.method,
        "loss": release.metrics.get("loss", release.metrics.get("information_loss")),
        "suppressed": release.records.suppressed,
        "stopped": release.explain.get("stopped", not release.explain.get("optimal", True)),
        "tried": release.explain.get("tried"),
    }


def main() -> None:
    """Print the figures row by row."""
    table = visits.generate(60_000, 1, mean=3)
    print("| method | counting | seconds | loss | suppressed |\n|---|---|---:|---:|---:|", flush=True)
    for method in METHODS:
        for counting in ("records", "persons"):
            row = released(table, method, counting)
            name = f"{method} ({row['made by']})" if method == "auto" else method
            stopped = ", stopped" if row["stopped"] else ""
            cells = (name, counting, f"{row['seconds']:.0f}{stopped}", f"{row['loss']:.3f}", f"{row['suppressed']:,}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
