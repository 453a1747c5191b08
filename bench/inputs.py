"""FHIR and OMOP from the source to a verified release: resources per second, and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Each step runs in a separate process to measure its own memory.
_READ = """
import json, resource, sys, time
from reticent.connectors.fhir.read import read_fhir_batches
from reticent.policy import Policy
start, began, rows = time.perf_counter(), time.process_time(), 0
for batch in read_fhir_batches(sys.argv[1], Policy.load(sys.argv[2]).fhir):
    rows += batch.num_rows
print(json.dumps({"rows": rows, "seconds": time.perf_counter() - start, "cpu": time.process_time() - began,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
_GENERATE = """
import json, resource, sys, time
from pathlib import Path
from reticent.datasets.omop import write_omop
start = time.perf_counter()
write_omop(Path(sys.argv[1]), int(sys.argv[2]), 1)
print(json.dumps({"seconds": time.perf_counter() - start,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
_RELEASE = """
import json, resource, sys, time
from pathlib import Path
from reticent.verify import verify
from reticent.connectors.inputs import read_input
from reticent.policy import Policy
from reticent.release import Release
from reticent.api import anonymize
start, policy = time.perf_counter(), Policy.load(sys.argv[2])
table = read_input(sys.argv[1], policy)
read = time.perf_counter() - start
anonymize(table, policy).to_dir(Path(sys.argv[3]))
result = verify([Release.from_dir(Path(sys.argv[3]))], policy)
print(json.dumps({"rows": table.num_rows, "table_mb": table.nbytes / 1e6, "holds": result.holds, "read_seconds": read, "seconds": time.perf_counter() - start,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Measure a million resources and a database of a million visits, or a tenth of them."""
    visits = 25_000 if quick else 250_000
    with tempfile.TemporaryDirectory() as folder:
        return {"fhir": _fhir(Path(folder), visits), "omop": _omop(Path(folder), 4 * visits)}


def _fhir(folder: Path, visits: int) -> dict[str, Any]:
    from reticent.datasets.fhir import write_fhir

    start = time.perf_counter()
    write_fhir(folder / "fhir", visits, 1)
    seconds = time.perf_counter() - start
    policy = folder / "fhir" / "policy.yaml"
    read = _step(_READ, folder / "fhir", policy)
    whole = _step(_RELEASE, folder / "fhir", policy, folder / "fhir-release")
    resources = 4 * visits
    return {
        "resources": resources,
        "megabytes": sum(file.stat().st_size for file in (folder / "fhir").iterdir()) / 1e6,
        "generate_seconds": seconds,
        "read": read | {"resources_per_second": resources / read["seconds"], "per_cpu_second": resources / read["cpu"]},
        "to_verified_release": whole,
    }


def _omop(folder: Path, visits: int) -> dict[str, Any]:
    generation = _step(_GENERATE, folder / "omop.db", visits)
    policy = folder / "omop.policy.yaml"
    figures = {
        "rows_of_the_database": 3 * visits,
        "megabytes": (folder / "omop.db").stat().st_size / 1e6,
        "generate": generation,
        "sqlite_to_verified_release": _step(_RELEASE, f"sqlite:///{folder / 'omop.db'}", policy, folder / "release"),
    }
    server = _postgres()
    if server is None:
        return figures | {"postgresql_to_verified_release": "PostgreSQL is not installed"}
    try:
        server.start()
        _fill_postgres(server.url(), visits)
        return figures | {"postgresql_to_verified_release": _step(_RELEASE, server.url(), policy, folder / "again")}
    finally:
        server.stop()


def _postgres() -> Any:
    """Return the PostgreSQL server that the tests start."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from conftest import Postgres, postgres_binaries

    binaries = postgres_binaries()
    return None if binaries is None else Postgres(binaries)


def _fill_postgres(url: str, visits: int) -> None:
    import psycopg

    from reticent.datasets.omop import INDEX, TABLES, rows

    with psycopg.connect(url) as link, link.cursor() as cursor:
        for table, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE {table} ({columns})")
        for table, values in rows(visits, 1):
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
        cursor.execute(INDEX)


def _step(code: str, *arguments: object) -> dict[str, Any]:
    import json

    command = [sys.executable, "-c", code, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
