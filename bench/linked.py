"""A hospital in and out in its own standard: R4 Bundles, R5 NDJSON, OMOP; then a million resources in and out."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Each step runs in a process of its own, so that its memory is its own.
_HEAD = """
import json, sys, time
from pathlib import Path
from reticent import Policy, anonymize, verify
from reticent.connectors.linked import read_tables
from reticent.connectors.fhir.write import write_fhir_release
from reticent.connectors.omop import write_omop_release
from reticent.datasets.fhir import Form, write_fhir
from reticent.datasets.omop import write_omop
source, policy, folder = sys.argv[1:4]
start, began, told = time.perf_counter(), time.process_time(), {}
"""
_TAIL = """
# Not ru_maxrss: it begins with what the process that started this one had.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps(told | {"seconds": time.perf_counter() - start, "cpu": time.process_time() - began,
                         "peak_mb": int(peak.split()[1]) / 1024}))
"""
_STEPS = {
    "make r4": "write_fhir(Path(source), int(policy), 1, visits=4, form=Form(bundles=True, courses=True))",
    "make r5": "write_fhir(Path(source), int(policy), 1, visits=4, form=Form(r5=True, courses=True))",
    "make omop": "write_omop(Path(source), int(policy), 1, visits=4, further=True)",
    "read": "told = {'rows': sum(t.num_rows for t in read_tables(source, Policy.load(policy))[0].values())}",
    "release": """
release = anonymize(source, Policy.load(policy))
told = {"rows_out": dict(release.explain["rows_out"]), "metrics": dict(release.metrics)}
release.to_dir(Path(folder))
""",
    "verify": "told = {'holds': verify(source, Policy.load(policy)).holds}",
    "write fhir": "told = {'resources': sum(write_fhir_release(Path(source), Path(folder)).values())}",
    "write omop": "told = {'rows': sum(write_omop_release(Path(source), Path(folder)).values())}",
}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Measures 10,000 patients with 40,000 encounters in each standard, and a million resources; or a tenth of them."""
    visits = 4_000 if quick else 40_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "patients": visits // 4,
            "encounters": visits,
            **{standard: _hospital(folder / standard, standard, visits) for standard in ("r4", "r5", "omop")},
            "a million resources": _million(folder / "million", 4 * visits),
        }


def _hospital(folder: Path, standard: str, visits: int) -> dict[str, Any]:
    folder.mkdir()
    data, url, policy = _made(folder, standard, visits)
    out = folder / ("out.db" if standard == "omop" else "out.json" if standard == "r4" else "out")
    kind = "omop" if standard == "omop" else "fhir"
    steps = {
        "release": _step("release", url, policy, folder / "release"),
        "verify": _step("verify", folder / "release", policy, "-"),
        "write": _step(f"write {kind}", folder / "release", "-", out),
    }
    return {"megabytes": _size(data) / 1e6, **steps, "parsed": _parsed(out, standard) if standard != "omop" else None}


def _made(folder: Path, standard: str, visits: int) -> tuple[Path, str, Path]:
    data = folder / ("in.db" if standard == "omop" else "in")
    _step(f"make {standard}", data, visits, "-")
    if standard == "omop":
        return data, f"sqlite:///{data}", data.with_suffix(".policy.yaml")
    return data, str(data), data / "policy.yaml"


def _million(folder: Path, visits: int) -> dict[str, Any]:
    """In and out by themselves, and the release between them."""
    folder.mkdir()
    data, url, policy = _made(folder, "r5", visits)
    read = _step("read", url, policy, "-")
    release = _step("release", url, policy, folder / "release")
    write = _step("write fhir", folder / "release", "-", folder / "out")
    return {"megabytes": _size(data) / 1e6, "read": read, "release": release, "write": write}


def _parsed(out: Path, standard: str) -> dict[str, int]:
    """What another library says of the output: counted per type, the first of each type validated."""
    from collections import Counter

    if standard == "r4":
        from fhir.resources.R4B import get_fhir_model_class as model

        found = [entry["resource"] for entry in json.loads(out.read_bytes())["entry"]]
    else:
        from fhir.resources import get_fhir_model_class as model

        found = [json.loads(line) for file in out.iterdir() for line in file.read_text().splitlines()]
    counts: Counter[str] = Counter()
    for resource in found:
        kind = resource["resourceType"]
        counts[kind] += 1
        if counts[kind] <= 2000:
            model(kind).model_validate(resource)
    return dict(counts)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _step(name: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-c", _HEAD + _STEPS[name] + _TAIL, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
