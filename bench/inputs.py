"""FHIR and OMOP from the source to a verified release: resources per second, and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Each step runs in a process of its own, so that its memory is its own.
_READ = """
import json, resource, sys, time
from reticent.connectors.fhir import read_fhir_batches
from reticent.policy import Policy
start, began, rows = time.perf_counter(), time.process_time(), 0
for batch in read_fhir_batches(sys.argv[1], Policy.load(sys.argv[2]).fhir):
    rows += batch.num_rows
print(json.dumps({"rows": rows, "seconds": time.perf_counter() - start, "cpu": time.process_time() - began,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
_RELEASE = """
import json, resource, sys, time
from pathlib import Path
from reticent.audit import verify
from reticent.connectors.inputs import read_input
from reticent.policy import Policy
from reticent.release import Release
from reticent.tables import anonymize
start, policy = time.perf_counter(), Policy.load(sys.argv[2])
table = read_input(sys.argv[1], policy)
read = time.perf_counter() - start
anonymize(table, policy).to_dir(Path(sys.argv[3]))
verdict = verify([Release.from_dir(Path(sys.argv[3]))], policy)
print(json.dumps({"rows": table.num_rows, "holds": verdict.holds, "read_seconds": read, "seconds": time.perf_counter() - start,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def run(quick: bool = False) -> dict[str, Any]:
    """Measures a million resources, or a tenth of them."""
    visits = 25_000 if quick else 250_000
    with tempfile.TemporaryDirectory() as folder:
        return {"fhir": _fhir(Path(folder), visits), "omop": _omop(Path(folder), visits)}


def _fhir(folder: Path, visits: int) -> dict[str, Any]:
    from reticent.datasets.fhir import write_fhir

    start = time.perf_counter()
    write_fhir(folder / "fhir", visits, 1)
    made = time.perf_counter() - start
    policy = folder / "fhir" / "policy.yaml"
    read = _step(_READ, folder / "fhir", policy)
    whole = _step(_RELEASE, folder / "fhir", policy, folder / "fhir-release")
    resources = 4 * visits
    return {
        "resources": resources,
        "megabytes": sum(file.stat().st_size for file in (folder / "fhir").iterdir()) / 1e6,
        "generate_seconds": made,
        "read": read | {"resources_per_second": resources / read["seconds"], "per_cpu_second": resources / read["cpu"]},
        "to_verified_release": whole,
    }


def _omop(folder: Path, visits: int) -> dict[str, Any]:
    from reticent.datasets.omop import write_omop

    file, policy = write_omop(folder / "omop.db", visits, 1)
    whole = _step(_RELEASE, f"sqlite:///{file}", policy, folder / "omop-release")
    return {"rows_of_the_database": 3 * visits, "to_verified_release": whole}


def _step(code: str, *arguments: object) -> dict[str, Any]:
    import json

    command = [sys.executable, "-c", code, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
