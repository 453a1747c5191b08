"""Build rows from resources: split by patient, then join each part by reference.

An encounter gets the columns of its patient and, for each further type, the first resource with a value. Each condition
that differs in the columns read gives one row. Resources that cannot be joined are counted and reported.
"""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.connectors.fhir.paths import Getter, getter, reference_to, version_of
from reticent.connectors.fhir.resources import files_of, iter_export
from reticent.connectors.fhir.spill import Spill, text_batch
from reticent.errors import DataError
from reticent.policy.settings.inputs import RESOURCES, FhirSettings

# Bytes of NDJSON per part; the cells in memory are a small share of them.
_PART = 128 << 20
_MOST_PARTS = 64
LOG = logging.getLogger(__name__)
Row = tuple[str | None, ...]


def read_fhir(source: str | Path, mapping: FhirSettings) -> pa.Table:
    """Read the whole export as one table; see `read_fhir_batches`."""
    return pa.Table.from_batches(list(read_fhir_batches(source, mapping)))


def read_fhir_batches(
    source: str | Path, mapping: FhirSettings, *, batch_rows: int = 65536, parts: int | None = None
) -> Generator[pa.RecordBatch]:
    """Yield one row per encounter and diagnosis, as text columns named by the mapping.

    Raises:
        DataError: a record is not a resource, FHIR versions are mixed, or there is no encounter.
    """
    paths = mapping.paths
    columns_of = {entity: [name for name, column in paths.items() if column.resource == entity] for entity in RESOURCES}
    with ExitStack() as stack:
        part_total = parts or _part_count(files_of(source))
        spills = {
            entity: stack.enter_context(Spill(len(names) + 2, part_total))
            for entity, names in columns_of.items()
            if names or entity == "Encounter"
        }
        take = {entity: [getter(paths[name]) for name in columns_of[entity]] for entity in spills}
        warning_counts = _partition(source, spills, take, part_total)
        for entity in (entity for entity, spill in spills.items() if spill.empty and entity != "Encounter"):
            LOG.warning("%s has no %s: the columns %s are empty.", source, entity, ", ".join(columns_of[entity]))
        row_count = 0
        for part in range(part_total):
            tables = {entity: spill.rows(part) for entity, spill in spills.items()}
            rows = _join(tables, columns_of, list(paths), warning_counts, several=mapping.diagnoses == "all")
            while chunk := list(islice(rows, batch_rows)):
                row_count += len(chunk)
                yield text_batch(chunk, list(paths))
    log_warnings(source, warning_counts)
    if not row_count:
        raise DataError(f"{source} has no Encounter.", hint="Export Patient, Encounter and Condition together.")


def _part_count(files: list[Path | str]) -> int:
    """Return one part for a small export, else several of about equal size; compressed files count 12 times."""
    sizes = [Path(file).stat().st_size * (12 if str(file).endswith(".gz") else 1) for file in files if file != "-"]
    return max(1, min(_MOST_PARTS, -(-sum(sizes) // _PART)))


def keys_of(resource: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the patient and the encounter of a resource; its own id if it is a Patient or an Encounter."""
    kind, own = resource["resourceType"], resource.get("id")
    if own is not None and type(own) is not str:
        raise ValueError("id")
    if kind == "Patient":
        return own, None
    patient = reference_to(resource.get("subject", resource.get("patient")), "Patient")
    if kind == "Encounter":
        return patient, own
    return patient, reference_to(resource.get("encounter", resource.get("context")), "Encounter")


def iter_resources(
    source: str | Path, take: Mapping[str, list[Getter]]
) -> Iterator[tuple[dict[str, Any], tuple[str | None, str | None], list[str | None]]]:
    """Yield each resource of the types in `take` with its patient, its encounter and the values taken from it.

    Raises:
        DataError: versions are mixed, an id is not text, or a value has parts; the message names the place.
    """
    versions: Counter[str] = Counter()
    for place, resource in iter_export(source):
        kind = resource["resourceType"]
        if kind not in take:
            continue
        try:
            keys = keys_of(resource)
        except ValueError:
            raise DataError(f"{place}: a {kind} has an id that is not text.", hint="Export it again.") from None
        version = version_of(resource)
        if version is not None:
            versions[version] += 1
            if len(versions) > 1:
                raise DataError(
                    f"{place}: a {kind} uses {version}, but earlier resources use {'R5' if version == 'R4' else 'R4'}.",
                    hint="Export all resources in the same version of FHIR.",
                )
        try:
            cells = [get(resource) for get in take[kind]]
        except DataError as error:
            raise DataError(f"{place}: a {kind}. {error}", hint=error.hint) from None
        yield resource, keys, cells


NO_PATIENT = "{} without a patient: skipped"
NO_ID = "{} without an id: skipped"
UNKNOWN_PATIENT = "{} whose patient is not in the export: the patient's columns are empty"
NO_ENCOUNTER = "{} without an encounter: skipped"
FURTHER_CONDITIONS = "further conditions of an encounter: skipped"
LINKED_PATIENT = "Patient linked to another Patient who may be the same person: counted as separate persons"
DUPLICATE_ID = "{} with a repeated id: skipped"


def _partition(source: str | Path, spills: dict[str, Spill], take: dict[str, list[Getter]], parts: int) -> Counter[str]:
    warning_counts: Counter[str] = Counter()
    for resource, (patient, visit), cells in iter_resources(source, take):
        entity = resource["resourceType"]
        warning_counts[LINKED_PATIENT] += entity == "Patient" and "link" in resource
        if patient is None or (visit is None and entity != "Patient"):
            warning = NO_ENCOUNTER if patient is not None else NO_ID if entity == "Patient" else NO_PATIENT
            warning_counts[warning.format(entity)] += 1
            continue
        part = zlib.crc32((patient or "").encode()) % parts if parts > 1 else 0
        spills[entity].add(part, (patient, visit, *cells))
    return warning_counts


def log_warnings(source: str | Path, warning_counts: Counter[str]) -> None:
    """Log how many resources could not be used, by reason."""
    for warning, count in sorted((+warning_counts).items()):
        LOG.warning("%s: %s %s.", source, f"{count:,}", warning)


def _join(
    rows: dict[str, Iterator[Row]],
    columns_of: dict[str, list[str]],
    columns: list[str],
    warning_counts: Counter[str],
    *,
    several: bool,
) -> Iterator[Row]:
    patients: dict[str | None, Row] = {}
    for row in rows.get("Patient", iter(())):
        warning_counts[DUPLICATE_ID.format("Patient")] += row[0] in patients
        patients.setdefault(row[0], row[2:])
    conditions = _conditions(rows.get("Condition", iter(())))
    others = [kind for kind in RESOURCES if kind not in ("Encounter", "Patient", "Condition") and columns_of[kind]]
    first = [_first_values(rows.get(kind, iter(()))) for kind in others]
    blanks = [(None,) * len(columns_of[kind]) for kind in others]
    no_patient, no_condition = (None,) * len(columns_of["Patient"]), [(None,) * len(columns_of["Condition"])]
    names = [name for kind in ("Encounter", "Patient", "Condition", *others) for name in columns_of[kind]]
    places = [names.index(name) for name in columns]
    visits: set[str | None] = set()
    for row in rows["Encounter"]:
        if row[1] in visits:
            warning_counts[DUPLICATE_ID.format("Encounter")] += 1
            continue
        visits.add(row[1])
        if columns_of["Patient"] and row[0] not in patients:
            warning_counts[UNKNOWN_PATIENT.format("Encounter")] += 1
        diagnoses = conditions.get(row[:2], no_condition)
        if not several:
            warning_counts[FURTHER_CONDITIONS] += len(diagnoses) - 1
            diagnoses = diagnoses[:1]
        head = row[2:] + patients.get(row[0], no_patient)
        tail = [cell for values, blank in zip(first, blanks, strict=True) for cell in values.get(row[:2], blank)]
        for condition in diagnoses:
            whole = (*head, *condition, *tail)
            yield tuple([whole[place] for place in places])


def _conditions(rows: Iterator[Row]) -> dict[Row, list[Row]]:
    """Return the distinct conditions of each patient and encounter, in the order of the export."""
    conditions: dict[Row, list[Row]] = {}
    for row in rows:
        if any(row[2:]):
            several = conditions.setdefault(row[:2], [])
            if row[2:] not in several:
                several.append(row[2:])
    return conditions


def _first_values(rows: Iterator[Row]) -> dict[Row, list[str | None]]:
    values: dict[Row, list[str | None]] = {}
    for row in rows:
        cells = values.setdefault(row[:2], [None] * (len(row) - 2))
        for i, cell in enumerate(row[2:]):
            if cells[i] is None:
                cells[i] = cell
    return values
