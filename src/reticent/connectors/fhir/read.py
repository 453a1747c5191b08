"""From resources to rows: spread by patient, then join each part by reference.

An encounter takes the columns of its patient, and of each further type the first resource with a value. Its conditions
give a row each, where they differ in what is read of them. What cannot be joined is counted and said.
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

# Bytes of NDJSON per part: the text cells kept of them are a small share of this.
_PART = 128 << 20
_MOST_PARTS = 64
LOG = logging.getLogger(__name__)
Row = tuple[str | None, ...]


def read_fhir(source: str | Path, mapping: FhirSettings) -> pa.Table:
    """The whole export as one table; see `read_fhir_batches`."""
    return pa.Table.from_batches(list(read_fhir_batches(source, mapping)))


def read_fhir_batches(
    source: str | Path, mapping: FhirSettings, *, batch_rows: int = 65536, parts: int | None = None
) -> Generator[pa.RecordBatch]:
    """One row per encounter and diagnosis, as text columns named by the mapping; joined in so many parts, by the size of the files.

    Raises:
        DataError: something is no resource, versions are mixed, or there is no encounter.
    """
    paths = mapping.paths
    columns_of = {entity: [name for name, column in paths.items() if column.resource == entity] for entity in RESOURCES}
    with ExitStack() as stack:
        many = parts or _part_count(files_of(source))
        spills = {
            entity: stack.enter_context(Spill(len(names) + 2, many))
            for entity, names in columns_of.items()
            if names or entity == "Encounter"
        }
        take = {entity: [getter(paths[name]) for name in columns_of[entity]] for entity in spills}
        said = _partition(source, spills, take, many)
        for entity in (entity for entity, spill in spills.items() if spill.empty and entity != "Encounter"):
            LOG.warning("%s has no %s: the columns %s are empty.", source, entity, ", ".join(columns_of[entity]))
        seen = 0
        for part in range(many):
            tables = {entity: spill.rows(part) for entity, spill in spills.items()}
            rows = _join(tables, columns_of, list(paths), said, several=mapping.diagnoses == "all")
            while some := list(islice(rows, batch_rows)):
                seen += len(some)
                yield text_batch(some, list(paths))
    log_warnings(source, said)
    if not seen:
        raise DataError(f"{source} has no Encounter.", hint="Export Patient, Encounter and Condition together.")


def _part_count(files: list[Path | str]) -> int:
    """One part while all fits easily, else as many as keep each near one size; packed files count for more."""
    sizes = [Path(file).stat().st_size * (12 if str(file).endswith(".gz") else 1) for file in files if file != "-"]
    return max(1, min(_MOST_PARTS, -(-sum(sizes) // _PART)))


def keys_of(resource: dict[str, Any]) -> tuple[str | None, str | None]:
    """The patient and the encounter that a resource belongs to; its own id where it is one of them."""
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
    """The resources of the types that `take` names, with their patient and encounter, and what it takes out of each.

    Raises:
        DataError: versions are mixed, an id is none, or a value has parts; by the place in the export.
    """
    versions: Counter[str] = Counter()
    for place, resource in iter_export(source):
        kind = resource["resourceType"]
        if kind not in take:
            continue
        try:
            keys = keys_of(resource)
        except ValueError:
            raise DataError(f"{place}: a {kind} has an id that is no text.", hint="Export it again.") from None
        version = version_of(resource)
        if version is not None:
            versions[version] += 1
            if len(versions) > 1:
                raise DataError(
                    f"{place}: a {kind} is written as {version}, what came before it as {'R5' if version == 'R4' else 'R4'}.",
                    hint="Export all resources in one version of FHIR.",
                )
        try:
            cells = [get(resource) for get in take[kind]]
        except DataError as error:
            raise DataError(f"{place}: a {kind}. {error}", hint=error.hint) from None
        yield resource, keys, cells


NO_PATIENT = "{} without a patient: left out"
NO_ID = "{} without an id: left out"
UNKNOWN_PATIENT = "{} whose patient is not in the export: the patient's columns are empty"
NO_ENCOUNTER = "{} of no encounter: left out"
FURTHER_CONDITIONS = "further conditions of an encounter: left out"
LINKED_PATIENT = "Patient with a link to another who may be the same person: counted as a person of their own"
DUPLICATE_ID = "{} with an id that came before: left out"


def _partition(source: str | Path, spills: dict[str, Spill], take: dict[str, list[Getter]], parts: int) -> Counter[str]:
    said: Counter[str] = Counter()
    for resource, (patient, visit), cells in iter_resources(source, take):
        entity = resource["resourceType"]
        said[LINKED_PATIENT] += entity == "Patient" and "link" in resource
        if patient is None or (visit is None and entity != "Patient"):
            words = NO_ENCOUNTER if patient is not None else NO_ID if entity == "Patient" else NO_PATIENT
            said[words.format(entity)] += 1
            continue
        part = zlib.crc32((patient or "").encode()) % parts if parts > 1 else 0
        spills[entity].add(part, (patient, visit, *cells))
    return said


def log_warnings(source: str | Path, warning_counts: Counter[str]) -> None:
    """Warns of what was found and could not be used, by type and number."""
    for words, count in sorted((+warning_counts).items()):
        LOG.warning("%s: %s %s.", source, f"{count:,}", words)


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
    nobody, nothing = (None,) * len(columns_of["Patient"]), [(None,) * len(columns_of["Condition"])]
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
        ill = conditions.get(row[:2], nothing)
        if not several:
            warning_counts[FURTHER_CONDITIONS] += len(ill) - 1
            ill = ill[:1]
        head = row[2:] + patients.get(row[0], nobody)
        tail = [cell for values, blank in zip(first, blanks, strict=True) for cell in values.get(row[:2], blank)]
        for condition in ill:
            whole = (*head, *condition, *tail)
            yield tuple([whole[place] for place in places])


def _conditions(rows: Iterator[Row]) -> dict[Row, list[Row]]:
    """Per patient and encounter what is read of the conditions, each once, in the order of the export."""
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
