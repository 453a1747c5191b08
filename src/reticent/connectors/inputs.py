"""Read DATA of the command line as a table: a file, a FHIR export, or a database URL."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from reticent.connectors.files import first_of, read_batches, read_head, read_table
from reticent.connectors.sql.read import read_sql, read_sql_batches
from reticent.connectors.sql.url import is_sql, parse_url
from reticent.errors import ConnectorError, DataError
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.policy.settings.inputs import FhirSettings, Hl7Settings, SqlSettings

DEFAULT_FHIR = FhirSettings(mapping="encounters")


def read_input(data: str, policy: Policy | None = None) -> pa.Table:
    """Read all data as one table; the policy maps resources and databases to columns and lists missing-value markers.

    Raises:
        DataError: the data is missing, corrupt, or not a table.
        ConnectorError: a database cannot be read.
    """
    return without_markers(_decode_dictionaries(_read(data, policy)), policy.missing if policy is not None else ())


def _decode_dictionaries(table: pa.Table) -> pa.Table:
    """Return the table with plain values in place of dictionaries (categories of other programs)."""
    for place, name in enumerate(table.column_names):
        kind = table.schema.field(place).type
        if pa.types.is_dictionary(kind):
            table = table.set_column(place, name, table.column(place).cast(kind.value_type))
    return table


def _read(data: str, policy: Policy | None) -> pa.Table:
    if "://" in data and is_sql(data):
        return read_sql(data, policy.sql.statement if policy is not None and policy.sql is not None else None)
    if is_fhir(data):
        from reticent.connectors.fhir.read import read_fhir

        return read_fhir(data, DEFAULT_FHIR if policy is None or policy.fhir is None else policy.fhir)
    if is_hl7(data):
        raise DataError(f"{data} contains HL7 messages, which are released as a stream.", hint="Use reticent stream.")
    return read_table(data)


def is_hl7(data: str) -> bool:
    """Return whether the data is a file of HL7 v2 messages."""
    path = Path(data)
    if "://" in data or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16).lstrip(b"\x0b\r\n ").startswith(b"MSH")


def count_values(data: str, column: str, missing: Sequence[str] = ()) -> dict[str | None, int]:
    """Count each value of a column in all the data; all markers in `missing` count as null."""
    if is_sql(data) or is_fhir(data):
        batches: Iterable[pa.RecordBatch] = read_input(data).to_batches()
    else:
        batches = read_hl7(data).to_batches() if is_hl7(data) else read_batches(data, columns=[column])
    counts: Counter[str | None] = Counter()
    for batch in batches:
        for entry in batch.column(column).value_counts().to_pylist():
            cell = entry["values"]
            counts[None if cell is None or str(cell) in missing else str(cell)] += entry["counts"]
    return dict(counts)


def read_hl7(data: str) -> pa.Table:
    """Read a file of HL7 v2 messages with the built-in mapping; skip messages that cannot be read."""
    from reticent.connectors.hl7 import Hl7Lines
    from reticent.publication.records import RecordReader

    columns = dict.fromkeys(Hl7Settings(mapping="adt").paths, "quasi")
    reader = RecordReader(Policy.from_dict({"version": 1, "hl7": "adt", "columns": columns}))
    batch, _ = Hl7Lines(reader).read(Path(data).read_bytes(), last=True)
    if not batch.table.num_rows:
        raise DataError(f"{data}: no message is an admission.", hint="Provide a file of ADT^A01 or ADT^A04 messages.")
    return batch.table


def read_input_head(data: str, rows: int) -> pa.Table:
    """Read the first rows, and little more of a source that can be read in order; HL7 messages too."""
    if is_hl7(data):
        return read_hl7(data).slice(0, rows)
    if is_sql(data):
        return _sql_head(data, rows)
    if is_fhir(data):
        from reticent.connectors.fhir.read import read_fhir_batches

        return first_of(read_fhir_batches(data, DEFAULT_FHIR), rows)
    return read_head(data, rows)


def _sql_head(data: str, rows: int) -> pa.Table:
    source = parse_url(data)
    try:
        return first_of(read_sql_batches(data, SqlSettings(mapping="omop").statement), rows)
    except ConnectorError:
        if source.query is not None:
            raise
        raise ConnectorError(
            f"{source.name}: the database cannot be reached, or is not an OMOP database.",
            hint="Add ?table=NAME or ?query=SELECT... to the URL to choose the data. From OMOP, the tables person, visit_occurrence, "
            "condition_occurrence, location and concept are read.",
        ) from None


def policy_section_of(data: str) -> str | None:
    """Return the policy line that makes a suggested policy read the data the same way."""
    if is_sql(data):
        return "sql: omop" if parse_url(data).query is None else None
    if is_hl7(data):
        return "hl7: adt"
    return "fhir: encounters" if is_fhir(data) else None


_HEAD = 4096


def is_fhir(source: str | Path) -> bool:
    """Return whether a source is a folder of NDJSON files or Bundles, or a file that begins with a resource."""
    if str(source) == "-":
        return False
    path = Path(source)
    if path.is_dir():
        names = {file: file.name.lower() for file in sorted(path.iterdir())}
        return any(
            ".ndjson" in name or (name.endswith((".json", ".json.gz")) and file.is_file() and _is_resource(file))
            for file, name in names.items()
        )
    return path.is_file() and _is_resource(path)


def _is_resource(path: Path) -> bool:
    is_gzip = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path) if is_gzip else path.open("rb") as file:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return head.startswith(b"{") and b'"resourceType"' in head
