"""Linked tables in each standard: R4 Bundles, R5 NDJSON, OMOP, from input to output; then a million resources."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

# Each step runs in a separate process to measure its own memory.
_HEAD = """
import json, sys, time
from pathlib import Path
from reticent import Policy, anonymize, audit, verify
from reticent.connectors.linked import read_tables
from reticent.connectors.fhir.write import write_fhir_release
from reticent.connectors.omop import write_omop_release
from reticent.datasets.fhir import Form, write_fhir
from reticent.datasets.omop import write_omop
source, policy, folder = sys.argv[1:4]
start, began, figures = time.perf_counter(), time.process_time(), {}
"""
_TAIL = """
# Not ru_maxrss: it starts at the usage of the parent process.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps(figures | {"seconds": time.perf_counter() - start, "cpu": time.process_time() - began,
                         "peak_mb": int(peak.split()[1]) / 1024}))
"""
_STEPS = {
    "make r4": "write_fhir(Path(source), int(policy), 1, visits=4, form=Form(bundles=True, courses=True))",
    "make r5": "write_fhir(Path(source), int(policy), 1, visits=4, form=Form(r5=True, courses=True))",
    "make omop": "write_omop(Path(source), int(policy), 1, visits=4, further=True)",
    "read": "told = {'rows': sum(t.num_rows for t in read_tables(source, Policy.load(policy))[0].values())}",
    "release": """
release = anonymize(source, Policy.load(policy))
figures = {"published_rows": dict(release.explain["rows_out"]), "metrics": dict(release.metrics)}
release.to_dir(Path(folder))
""",
    "whole": """
write = write_omop_release if source.startswith("sqlite") else write_fhir_release
release = anonymize(source, Policy.load(policy))
figures = {"published_rows": dict(release.explain["rows_out"])}
release.to_dir(Path(folder))
figures |= {"written": sum(write(Path(folder), Path(folder + ".out")).values())}
""",
    "verify": "told = {'holds': verify(source, Policy.load(policy)).holds}",
    "attack": """
outcome = next(one for one in audit(source, Policy.load(policy), seed=1).outcomes if one.attack == "linked-tables")
figures = {"persons": outcome.tried, "highest": outcome.highest, "bound": outcome.claim, **outcome.figures}
""",
    "write fhir": "told = {'resources': sum(write_fhir_release(Path(source), Path(folder)).values())}",
    "write omop": "told = {'rows': sum(write_omop_release(Path(source), Path(folder)).values())}",
}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Measure 10,000 patients with 40,000 encounters in each standard, and a million resources; or a tenth of them."""
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
        "attack": _step("attack", folder / "release", policy, "-"),
        "write": _step(f"write {kind}", folder / "release", "-", out),
    }
    checks = _omop(out) if standard == "omop" else _parsed(out, standard)
    return {"megabytes": _size(data) / 1e6, **steps, **checks, "canaries": _canaries(data, [out, folder / "release"])}


def _made(folder: Path, standard: str, visits: int) -> tuple[Path, str, Path]:
    data = folder / ("in.db" if standard == "omop" else "in")
    _step(f"make {standard}", data, visits, "-")
    if standard == "omop":
        return data, f"sqlite:///{data}", data.with_suffix(".policy.yaml")
    return data, str(data), data / "policy.yaml"


def _million(folder: Path, visits: int) -> dict[str, Any]:
    """Measure reading and writing alone, the release between them, and everything in one process."""
    folder.mkdir()
    data, url, policy = _made(folder, "r5", visits)
    read = _step("read", url, policy, "-")
    release = _step("release", url, policy, folder / "release")
    write = _step("write fhir", folder / "release", "-", folder / "out")
    whole = _step("whole", url, policy, folder / "again")
    resources = sum(text.count(b"\n") for text in map(Path.read_bytes, data.glob("*.ndjson")))
    sizes = {"megabytes": _size(data) / 1e6, "resources": resources}
    return {**sizes, "read": read, "release": release, "write": write, "whole": whole}


def _parsed(out: Path, standard: str) -> dict[str, Any]:
    """Validate the output with another library: valid resources per type, repeated ids and dangling references."""
    if standard == "r4":
        from fhir.resources.R4B import get_fhir_model_class as model

        resources = [entry["resource"] for entry in json.loads(out.read_bytes())["entry"]]
    else:
        from fhir.resources import get_fhir_model_class as model

        resources = [json.loads(line) for file in out.iterdir() for line in file.read_text().splitlines()]
    valid: Counter[str] = Counter()
    for resource in resources:
        model(resource["resourceType"]).model_validate(resource)
        valid[resource["resourceType"]] += 1
    ids = {f"{one['resourceType']}/{one['id']}" for one in resources}
    home = {f"Encounter/{one['id']}": one["subject"] for one in resources if one["resourceType"] == "Encounter"}
    lost = sum(
        one[name]["reference"] not in ids for one in resources for name in ("subject", "encounter") if name in one
    )
    lost += sum("encounter" in one and home.get(one["encounter"]["reference"]) != one["subject"] for one in resources)
    return {"valid": dict(valid), "named_twice": len(resources) - len(ids), "lost_references": lost}


def _omop(out: Path) -> dict[str, Any]:
    """Check the database with another library: rows per table, columns, and rows with dangling keys."""
    from sqlalchemy import MetaData, create_engine, func, select, text

    engine = create_engine(f"sqlite:///{out}")
    model = MetaData()
    model.reflect(engine)
    lost = 0
    with engine.connect() as link:
        rows = {
            name: link.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in model.tables.items()
        }
        for table in model.tables.values():
            for key in table.foreign_keys:
                asked = select(func.count()).select_from(table).where(key.parent.is_not(None))
                lost += link.execute(asked.where(key.parent.not_in(select(key.column)))).scalar_one()
        lost += len(link.execute(text("PRAGMA foreign_key_check")).all())
    return {"rows": rows, "lost_references": lost}


def _canaries(data: Path, places: list[Path]) -> dict[str, int]:
    """Count words of the input that no output may contain (ids, names, notes), and how many were found."""
    import sqlite3

    if data.is_dir():
        text = b"".join(file.read_bytes() for file in data.iterdir() if file.suffix != ".yaml")
        values = re.findall(rb'"(?:id|value|text)":"([^"]{4,})"', text)
        words = {word.rstrip(b".") for word in values} | {b"Seen", b"Done", b"<div>", b"mrn"}
    else:
        link = sqlite3.connect(data)
        words = {str(cell).encode() for (cell,) in link.execute("SELECT person_source_value FROM person")}
        link.close()
    files = [file for place in places for file in (place.iterdir() if place.is_dir() else [place])]
    tokens = set().union(*(re.findall(rb"[A-Za-z0-9<>_-]+(?: [A-Za-z0-9_-]+)*", file.read_bytes()) for file in files))
    single = {part for token in tokens for part in token.split()}
    return {"planted": len(words), "found": len(words & (tokens | single))}


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _step(name: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-c", _HEAD + _STEPS[name] + _TAIL, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
