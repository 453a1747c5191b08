"""From resources to rows: spread by patient, then join each part by reference.

An encounter takes the columns of its patient, of its first condition in the order of the export, and of each mapped
observation the first with a value. An encounter without a patient or a condition keeps nulls there.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa

from reticent.connectors.fhir.paths import getter, key_of
from reticent.connectors.fhir.resources import files_of, resources
from reticent.connectors.fhir.spill import Spill
from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reticent.policy.settings.inputs import FhirSettings

# Bytes of NDJSON per part: the text cells kept of them are a small share of this.
_PART = 128 << 20
_MOST_PARTS = 64
LOG = logging.getLogger(__name__)
Row = tuple[str | None, ...]


def is_fhir(source: str | Path) -> bool:
    """Whether a source is a folder of NDJSON files or a file whose first line is a resource."""
    if str(source) == "-":
        return False
    path = Path(source)
    if path.is_dir():
        return any(".ndjson" in file.name.lower() for file in path.iterdir())
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"{") and b'"resourceType"' in head


def read_fhir(source: str | Path, mapping: FhirSettings) -> pa.Table:
    """The whole export as one table; see `read_fhir_batches`."""
    batches = list(read_fhir_batches(source, mapping))
    return pa.Table.from_batches(batches)


def read_fhir_batches(
    source: str | Path, mapping: FhirSettings, *, batch_rows: int = 65536, parts: int | None = None
) -> Iterator[pa.RecordBatch]:
    """One row per encounter, as text columns named by the mapping.

    Args:
        source: a folder of NDJSON files, or one file with all resources.
        mapping: the policy's `fhir` section.
        batch_rows: most rows of a batch.
        parts: number of pieces the join is done in; chosen by the size of the files when not given.

    Raises:
        DataError: a line is no resource, or there is no encounter.
    """
    paths = mapping.paths
    files = files_of(source)
    columns_of = {entity: [name for name, column in paths.items() if column.resource == entity] for entity in _KEYS}
    schema = pa.schema([(name, pa.string()) for name in paths])
    with ExitStack() as stack:
        many = parts or _parts(files)
        spills = {
            entity: stack.enter_context(Spill(len(names) + _KEYS[entity][0], many))
            for entity, names in columns_of.items()
            if names or entity == "Encounter"
        }
        take = {entity: [getter(paths[name]) for name in columns_of[entity]] for entity in spills}
        for file in files:
            _spread(file, spills, take, many)
        for entity in (entity for entity, spill in spills.items() if spill.empty and entity != "Encounter"):
            LOG.warning("%s has no %s: the columns %s are empty.", source, entity, ", ".join(columns_of[entity]))
        seen = 0
        for part in range(many):
            rows = _joined({entity: spill.rows(part) for entity, spill in spills.items()}, columns_of, list(paths))
            for batch in _batches(rows, schema, batch_rows):
                seen += batch.num_rows
                yield batch
    if not seen:
        raise DataError(f"{source} has no Encounter.", hint="Export Patient, Encounter and Condition together.")


def _parts(files: list[Path | str]) -> int:
    """One part while all fits easily, else as many as keep each near one size; packed files count for more."""
    sizes = [Path(file).stat().st_size * (12 if str(file).endswith(".gz") else 1) for file in files if file != "-"]
    return max(1, min(_MOST_PARTS, -(-sum(sizes) // _PART)))


def _patient(resource: dict[str, Any]) -> tuple[str | None, ...]:
    return (resource.get("id"),)


def _encounter(resource: dict[str, Any]) -> tuple[str | None, ...]:
    return _reference(resource, "subject"), resource.get("id")


def _of_encounter(resource: dict[str, Any]) -> tuple[str | None, ...]:
    return _reference(resource, "subject"), _reference(resource, "encounter")


def _reference(resource: dict[str, Any], name: str) -> str | None:
    node = resource.get(name)
    return key_of(node.get("reference")) if type(node) is dict else None


# How many keys a row of each type begins with (the patient first), and how they are found.
_KEYS: dict[str, tuple[int, Callable[[dict[str, Any]], tuple[str | None, ...]]]] = {
    "Encounter": (2, _encounter),
    "Patient": (1, _patient),
    "Condition": (2, _of_encounter),
    "Observation": (2, _of_encounter),
}


def _spread(file: Path | str, spills: dict[str, Spill], take: dict[str, list[Any]], parts: int) -> None:
    for resource in resources(file):
        entity = resource["resourceType"]
        if entity not in spills:
            continue
        keys = _KEYS[entity][1](resource)
        if any(type(key) is not str and key is not None for key in keys):
            raise DataError(f"{file}: a {entity} has an id that is no text.", hint="Export the resources again.")
        if entity != "Encounter" and keys[-1] is None:
            continue  # belongs to no encounter
        part = crc32((keys[0] or "").encode()) % parts if parts > 1 else 0
        spills[entity].add(part, keys + tuple([get(resource) for get in take[entity]]))


def _joined(rows: dict[str, Iterator[Row]], columns_of: dict[str, list[str]], order: list[str]) -> Iterator[Row]:
    patients = {row[0]: row[1:] for row in rows.get("Patient", iter(()))}
    conditions: dict[str | None, Row] = {}
    for row in rows.get("Condition", iter(())):
        if any(row[2:]):
            conditions.setdefault(row[1], row[2:])
    observed = _first_values(rows.get("Observation", iter(())))
    names = columns_of["Encounter"] + columns_of["Patient"] + columns_of["Condition"] + columns_of["Observation"]
    places = [names.index(name) for name in order]
    none: dict[str, Row] = {entity: (None,) * len(columns_of[entity]) for entity in columns_of}
    for row in rows["Encounter"]:
        whole = (
            row[2:]
            + patients.get(row[0], none["Patient"])
            + conditions.get(row[1], none["Condition"])
            + tuple(observed.get(row[1], none["Observation"]))
        )
        yield tuple([whole[place] for place in places])


def _first_values(rows: Iterator[Row]) -> dict[str | None, list[str | None]]:
    values: dict[str | None, list[str | None]] = {}
    for row in rows:
        cells = values.setdefault(row[1], [None] * (len(row) - 2))
        for i, cell in enumerate(row[2:]):
            if cells[i] is None:
                cells[i] = cell
    return values


def _batches(rows: Iterator[Row], schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    from itertools import islice

    while held := list(islice(rows, size)):
        columns = zip(*held, strict=True)
        yield pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=schema)
