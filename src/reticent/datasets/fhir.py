"""The hospital as a FHIR export: Patient, Encounter, Condition and Observation, as NDJSON files or Bundles, in R4 or R5.

With courses there are several conditions per encounter, procedures, drugs, families and deaths.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from itertools import compress
from pathlib import Path
from typing import IO, Any

from reticent.datasets import courses
from reticent.datasets.policies import policy_yaml
from reticent.datasets.visits import admissions
from reticent.datasets.writers import RowCallback, private_file, write_text

KINDS = ("Patient", "Encounter", "Condition", "Observation")
COURSES = ("Procedure", "MedicationRequest", "RelatedPerson")
_CLASS = {"emergency": "EMER", "outpatient clinic": "AMB"}

_TEMPLATES = dict(
    zip(
        (*KINDS, *COURSES),
        Path(__file__).with_suffix(".ndjson").read_text("utf-8").splitlines(keepends=True),
        strict=True,
    )
)
"""The R4 resource of each kind, with a gap for each value."""
# Replacements from R4 to R5.
_R5 = (
    (
        '"class":{"system":"http://terminology.hl7.org/CodeSystem/v3-ActCode","code":"%s"}',
        '"class":[{"coding":[{"code":"%s"}]}]',
    ),
    ('"period":', '"actualPeriod":'),
    ('"status":"finished"', '"status":"completed"'),
    ('"serviceType":{"text":"%s"}', '"serviceType":[{"concept":{"text":"%s"}}]'),
    ('"medicationCodeableConcept":{"coding":[{"code":"%s"}]}', '"medication":{"concept":{"coding":[{"code":"%s"}]}}'),
    ('"note":', '"clinicalStatus":{"coding":[{"code":"active"}]},"note":'),
)
_PER_BUNDLE = 4096


def write_fhir(
    folder: Path,
    n: int,
    seed: int = 0,
    *,
    visits: float | None = None,
    form: Form | None = None,
    on_rows: RowCallback = None,
) -> tuple[Path, ...]:
    """Write n encounters with their patients, conditions and observations, and a policy; return the paths."""
    form = form or Form()
    kinds = (*KINDS, *COURSES) if form.courses else KINDS
    size = _PER_BUNDLE if form.bundles else 32_768
    paths: list[Path] = []
    with ExitStack() as stack:
        files: dict[str, IO[bytes]] = {}
        if not form.bundles:
            paths = [folder / f"{kind}.ndjson" for kind in kinds]
            files = {kind: stack.enter_context(private_file(path)) for kind, path in zip(kinds, paths, strict=True)}
        for number, table in enumerate(admissions(n, seed, size, visits), 1):
            rows = table.to_pydict()
            texts = _resources(rows if not form.courses else courses.move_together(rows, seed), seed, form)
            if form.bundles:
                paths.append(_bundle(folder / f"bundle-{number:04d}.json", texts))
            for kind, file in files.items():
                file.write("".join(texts[kind]).encode())
            if on_rows:
                on_rows(table.num_rows)
    write_text(policy_yaml("fhir-linked" if form.courses else "fhir"), folder / "policy.yaml")
    return (*paths, folder / "policy.yaml")


@dataclass(frozen=True)
class Form:
    """The form of an export: as Bundles, in R5, with courses."""

    bundles: bool = False
    r5: bool = False
    courses: bool = False


def _bundle(path: Path, texts: dict[str, list[str]]) -> Path:
    entries = ",\n".join('{"resource":' + text.rstrip() + "}" for part in texts.values() for text in part)
    with private_file(path) as file:
        file.write(('{"resourceType":"Bundle","type":"collection","entry":[\n' + entries + "\n]}\n").encode())
    return path


def _resources(rows: dict[str, list[Any]], seed: int, form: Form) -> dict[str, list[str]]:
    """Return the text of every resource of these rows, by type."""
    ends = [day + timedelta(stay) for day, stay in zip(rows["admission_date"], rows["length_of_stay"], strict=True)]
    ids, names = rows["patient_id"], rows["name"]
    numbers = rows.get("visit")
    keys = [f"{person}-{number}" for person, number in zip(ids, numbers, strict=True)] if numbers else ids
    first = [number == 1 for number in numbers] if numbers else [True] * len(ids)
    classes = [_CLASS.get(route, "IMP") for route in rows["admission_route"]]
    died = [_death(key, seed) if form.courses else "" for key in ids]
    people = zip(
        ids, names, ids, names, rows["sex"], rows["birth_date"], died, rows["region"], rows["postcode"], strict=True
    )
    visits = zip(keys, classes, ids, names, rows["admission_date"], ends, rows["ward"], strict=True)
    conditions = zip(keys, ids, keys, rows["diagnosis"], names, strict=True)
    pressures = [100 + stay for stay in rows["length_of_stay"]]
    texts = {
        "Patient": _fill("Patient", compress(people, first), form),
        "Encounter": _fill("Encounter", visits, form),
        "Condition": _fill("Condition", conditions, form),
        "Observation": _fill("Observation", zip(keys, ids, keys, pressures, strict=True), form),
    }
    return _with_courses(texts, rows, keys, seed, form) if form.courses else texts


def _death(key: str, seed: int) -> str:
    day = courses.person(key, seed).died
    return "" if day is None else f'"deceasedDateTime":"{day}",'


def _with_courses(
    texts: dict[str, list[str]], rows: dict[str, list[Any]], keys: list[str], seed: int, form: Form
) -> dict[str, list[str]]:
    lists: dict[str, list[tuple[Any, ...]]] = {"Condition": [], "Procedure": [], "MedicationRequest": []}
    for key, person, name, visit in zip(
        keys, rows["patient_id"], rows["name"], courses.visits(rows, seed), strict=True
    ):
        for kind, codes, last in (
            ("Condition", visit.further, (name,)),
            ("Procedure", visit.procedures, (name,)),
            ("MedicationRequest", visit.drugs, ()),
        ):
            lists[kind] += [(f"{key}-{place}", person, key, code, *last) for place, code in enumerate(codes)]
    family = [key for key in dict.fromkeys(rows["patient_id"]) if courses.person(key, seed).family]
    return texts | {
        "Condition": texts["Condition"] + _fill("Condition", lists["Condition"], form),
        "Procedure": _fill("Procedure", lists["Procedure"], form),
        "MedicationRequest": _fill("MedicationRequest", lists["MedicationRequest"], form),
        "RelatedPerson": _fill("RelatedPerson", [(key, key, key) for key in family], form),
    }


def _fill(kind: str, rows: Iterable[tuple[Any, ...]], form: Form) -> list[str]:
    text = _TEMPLATES[kind]
    for old, new in _R5 if form.r5 else ():
        text = text.replace(old, new) if old != '"note":' or kind == "Condition" else text
    return [text % row for row in rows]
