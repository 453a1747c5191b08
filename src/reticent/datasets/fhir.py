"""The hospital as a FHIR bulk export: Patient, Encounter, Condition and Observation, one NDJSON file each."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from itertools import compress
from typing import IO, TYPE_CHECKING, Any

from reticent.datasets.policies import policy_yaml
from reticent.datasets.visits import admissions
from reticent.datasets.writers import private_file, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

KINDS = ("Patient", "Encounter", "Condition", "Observation")
_CLASS = {"emergency": "EMER", "outpatient clinic": "AMB"}

_PATIENT = (
    '{"resourceType":"Patient","id":"%s","text":{"status":"generated","div":"<div>%s</div>"},"identifier":[{"system":'
    '"urn:example:mrn","value":"%s"}],"name":[{"use":"official","text":"%s"}],"gender":"%s","birthDate":"%s",'
    '"address":[{"state":"%s","postalCode":"%s","country":"XX"}]}\n'
)
_ENCOUNTER = (
    '{"resourceType":"Encounter","id":"e%s","status":"finished","class":{"system":"http://terminology.hl7.org/CodeSystem/'
    'v3-ActCode","code":"%s"},"subject":{"reference":"Patient/%s","display":"%s"},"period":{"start":"%sT08:30:00+01:00",'
    '"end":"%sT11:00:00+01:00"},"serviceType":{"text":"%s"}}\n'
)
_CONDITION = (
    '{"resourceType":"Condition","id":"c%s","subject":{"reference":"Patient/%s"},"encounter":{"reference":"Encounter/e%s"},'
    '"code":{"coding":[{"system":"http://hl7.org/fhir/sid/icd-10","code":"%s"}]},"note":[{"text":"Seen by %s."}]}\n'
)
_OBSERVATION = (
    '{"resourceType":"Observation","id":"o%s","status":"final","subject":{"reference":"Patient/%s"},"encounter":{"reference":'
    '"Encounter/e%s"},"code":{"coding":[{"system":"http://loinc.org","code":"8480-6"}]},"valueQuantity":{"value":%d,"unit":"mm[Hg]"}}\n'
)


def write_fhir(
    folder: Path,
    n: int,
    seed: int = 0,
    *,
    visits: float | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> tuple[Path, ...]:
    """Writes n encounters with their patients, conditions and observations, and a policy; says which files."""
    paths = {kind: folder / f"{kind}.ndjson" for kind in KINDS}
    with ExitStack() as stack:
        files = {kind: stack.enter_context(private_file(path)) for kind, path in paths.items()}
        for table in admissions(n, seed, 32_768, visits):
            _write(files, table.to_pydict())
            if on_rows:
                on_rows(table.num_rows)
    write_text(policy_yaml("fhir"), folder / "policy.yaml")
    return (*paths.values(), folder / "policy.yaml")


def _write(files: dict[str, IO[bytes]], rows: dict[str, list[Any]]) -> None:
    ends = [day + timedelta(stay) for day, stay in zip(rows["admission_date"], rows["length_of_stay"], strict=True)]
    ids, names = rows["patient_id"], rows["name"]
    numbers = rows.get("visit")
    keys = [f"{person}-{number}" for person, number in zip(ids, numbers, strict=True)] if numbers else ids
    first = [number == 1 for number in numbers] if numbers else [True] * len(ids)
    classes = [_CLASS.get(route, "IMP") for route in rows["admission_route"]]
    people = zip(ids, names, ids, names, rows["sex"], rows["birth_date"], rows["region"], rows["postcode"], strict=True)
    visits = zip(keys, classes, ids, names, rows["admission_date"], ends, rows["ward"], strict=True)
    conditions = zip(keys, ids, keys, rows["diagnosis"], names, strict=True)
    pressures = [100 + stay for stay in rows["length_of_stay"]]
    _append(files["Patient"], _PATIENT, compress(people, first))
    _append(files["Encounter"], _ENCOUNTER, visits)
    _append(files["Condition"], _CONDITION, conditions)
    _append(files["Observation"], _OBSERVATION, zip(keys, ids, keys, pressures, strict=True))


def _append(file: IO[bytes], form: str, rows: Iterable[tuple[Any, ...]]) -> None:
    file.write("".join([form % row for row in rows]).encode())
