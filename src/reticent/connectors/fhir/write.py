"""Write a release as FHIR, in the version of the input: a folder of NDJSON or one Bundle, completely or not at all.

Resources are built from the cells of the release and a closed list of elements; the input is not opened. A column
whose path is not on the list is skipped with a warning. A released table is split: each row becomes a patient, an
encounter and its further resources, with candidates as lists.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson
import pyarrow as pa

from reticent.connectors.fhir.code_systems import ICD10
from reticent.connectors.fhir.elements import ElementSetter, setter
from reticent.connectors.fhir.resource_templates import KINDS, complete, definitions, provenance, template
from reticent.connectors.files.atomic import system_errors
from reticent.disk import make_folder, open_new, staged_path
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.release.folder import read, refuse_overwrite

LOG = logging.getLogger(__name__)
_ROWS = 8192
_ADDRESS = b"https://release.invalid/fhir"


def write_fhir_release(folder: Path, target: Path, policy: Policy | None = None) -> dict[str, int]:
    """Write a release made from FHIR to a new folder of NDJSON, or to a new Bundle if the file name ends in .json.

    The release consists of linked tables, or of one table (generalized or veiled) under a policy whose `fhir` section
    maps columns to elements. Return the number of resources written per type.
    """
    manifest, tables, documents = read(folder)
    layout = documents.get("linked", {})
    grouped = "data" not in tables or "group" in tables["data"].column_names
    if policy is not None and policy.fhir is not None and not grouped:
        tables, layout = flat_tables(tables["data"], policy)
    if layout.get("standard") != "fhir":
        raise PolicyError(
            f"{folder} was not made from FHIR.",
            hint="Release a FHIR export under a policy with tables: fhir, or pass the policy of a table that has fhir:.",
        )
    refuse_overwrite(target)
    counts: dict[str, int] = {}
    version, codebook = layout["version"], documents["codebook"]
    with _open_output(target) as write:
        for kind, paths in layout["tables"].items():
            if kind not in KINDS:
                LOG.warning("%s is skipped: Reticent cannot write this resource type.", kind)
                continue
            counts[kind] = 0
            systems = _systems(kind, codebook) | layout.get("systems", {})
            for block in _iter_resources(kind, paths, tables[kind], systems, version):
                write(kind, block)
                counts[kind] += len(block)
        for resource in (provenance(manifest, codebook, counts), *definitions(version)):
            write(resource["resourceType"], [(resource["id"], orjson.dumps(resource))])
    return {kind: count for kind, count in counts.items() if count}


def _systems(kind: str, codebook: Mapping[str, Any]) -> dict[str, str]:
    """Return the code systems implied by the hierarchies of a table's columns."""
    return {
        entry.get("source_column", entry["name"]): ICD10
        for entry in codebook["columns"]
        if entry["table"] in (kind, "data") and entry.get("hierarchy") == "icd10"
    }


def _iter_resources(
    kind: str, paths: Mapping[str, str], table: pa.Table, systems: Mapping[str, str], version: str
) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the resources of one table with their ids, in blocks of a few thousand."""
    puts: dict[str, ElementSetter] = {}
    for name, path in paths.items():
        put = setter(path, version, systems.get(name))
        if put is None:
            LOG.warning("The column '%s' has no element in %s and is skipped.", name, kind)
        else:
            puts[name] = put
    number = 0
    for batch in table.to_batches(max_chunksize=_ROWS):
        persons = batch.column("person").to_pylist()
        visits = batch.column("visit").to_pylist() if "visit" in table.column_names else [None] * len(persons)
        cells = [batch.column(name).to_pylist() for name in puts]
        block = []
        for row, (person, visit) in enumerate(zip(persons, visits, strict=True)):
            number += 1
            resource = template(kind, version, person, visit)
            resource["id"] = {"Patient": person, "Encounter": visit}.get(kind) or f"{kind.lower()}-{number}"
            for put, column in zip(puts.values(), cells, strict=True):
                cell = column[row]
                put(resource, tuple(cell) if type(cell) is list else cell)
            complete(resource, version)
            block.append((resource["id"], orjson.dumps(resource)))
        yield block


@contextmanager
def _open_output(target: Path) -> Iterator[Any]:
    """Give a function that writes resources of a type; the target appears only if the block ends without error."""
    form = _open_bundle if target.suffix.lower() == ".json" else _open_folder
    with system_errors(f"{target} cannot be written", "Check free space and permissions."):
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged_path(target) as draft:
            with form(draft) as write:
                yield write
            if target.exists():
                target.rmdir()  # empty: otherwise refuse_overwrite has stopped


@contextmanager
def _open_folder(draft: Path) -> Iterator[Any]:
    make_folder(draft)
    files: dict[str, IO[bytes]] = {}

    def write(kind: str, resources: list[tuple[str, bytes]]) -> None:
        if kind not in files:
            files[kind] = os.fdopen(open_new(draft / f"{kind}.ndjson"), "wb")
        files[kind].write(b"".join([text + b"\n" for _, text in resources]))

    try:
        yield write
    finally:
        for file in files.values():
            file.close()


@contextmanager
def _open_bundle(draft: Path) -> Iterator[Any]:
    has_entries = False
    with os.fdopen(open_new(draft), "wb") as file:

        def write(kind: str, resources: list[tuple[str, bytes]]) -> None:
            nonlocal has_entries
            entries = [
                b'{"fullUrl":"%s/%s/%s","resource":%s}' % (_ADDRESS, kind.encode(), key.encode(), text)
                for key, text in resources
            ]
            if entries:
                file.write((b",\n" if has_entries else b"") + b",\n".join(entries))
                has_entries = True

        file.write(b'{"resourceType":"Bundle","type":"collection","entry":[\n')
        yield write
        file.write(b"\n]}\n")


def flat_tables(data: pa.Table, policy: Policy) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Split a released table into one table per resource type, and return the path of each column.

    Rows of one person share a Patient only if the release itself links them by a column `person`.
    """
    assert policy.fhir is not None  # noqa: S101 - the caller has checked
    rows = range(1, data.num_rows + 1)
    persons = data["person"] if "person" in data.column_names else pa.array([f"p{row}" for row in rows])
    links = {"person": persons, "visit": pa.array([f"v{row}" for row in rows])}
    tables = {"Patient": {"person": persons}, "Encounter": dict(links)}
    paths: dict[str, dict[str, str]] = {"Patient": {}, "Encounter": {}}
    for name, column in policy.fhir.paths.items():
        cells = _cells(data, name)
        if cells is not None:
            tables.setdefault(column.resource, dict(links))[name] = cells
            paths.setdefault(column.resource, {})[name] = column.write_path
    out = {kind: pa.table(columns) for kind, columns in tables.items()}
    out["Patient"] = _first_rows(out["Patient"])
    return out, {"standard": "fhir", "version": "R4", "tables": paths}


def _cells(data: pa.Table, name: str) -> pa.Array | pa.ChunkedArray | None:
    """Return a column of the release; a veiled column as lists of candidates."""
    if name in data.column_names:
        return data[name]
    slots = [
        column
        for column in data.column_names
        if column.rpartition("_")[0] == name and column[len(name) + 1 :].isdigit()
    ]
    if not slots:
        return None
    return pa.array([list(row) for row in zip(*(data[slot].to_pylist() for slot in slots), strict=True)])


def _first_rows(patients: pa.Table) -> pa.Table:
    """Return the first row of each person."""
    first: dict[str, int] = {}
    for row, person in enumerate(patients["person"].to_pylist()):
        first.setdefault(person, row)
    return patients.take(pa.array(list(first.values()), pa.int64()))
