"""DATA as the command line names it: a file, a FHIR export, or the URL of a database; always a table in the end."""

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
    """The whole of the data as one table; `policy` says how resources and databases become one, and what is missing.

    Raises:
        DataError: the data is missing, damaged, or not a table.
        ConnectorError: a database refuses.
    """
    return without_markers(_decode_dictionaries(_read(data, policy)), policy.missing if policy is not None else ())


def _decode_dictionaries(table: pa.Table) -> pa.Table:
    """The table without dictionaries, as categories of other programs are written: what counts are the values."""
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
        raise DataError(f"{data} holds HL7 messages, which are released as a stream.", hint="Use reticent stream.")
    return read_table(data)


def is_hl7(data: str) -> bool:
    """Whether the data is a file of HL7 v2 messages."""
    path = Path(data)
    if "://" in data or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16).lstrip(b"\x0b\r\n ").startswith(b"MSH")


def count_values(data: str, column: str, missing: Sequence[str] = ()) -> dict[str | None, int]:
    """How often each value of a column stands in the whole of the data; markers of a missing one count as one."""
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
    """The records of a file of HL7 v2 messages by the ready mapping; what cannot be read is left out."""
    from reticent.connectors.hl7 import Hl7Lines
    from reticent.publication.records import RecordReader

    columns = dict.fromkeys(Hl7Settings(mapping="adt").paths, "quasi")
    reader = RecordReader(Policy.from_dict({"version": 1, "hl7": "adt", "columns": columns}))
    batch, _ = Hl7Lines(reader).read(Path(data).read_bytes(), last=True)
    if not batch.table.num_rows:
        raise DataError(f"{data}: no message is an admission.", hint="Give a file of ADT^A01 or ADT^A04 messages.")
    return batch.table


def read_input_head(data: str, rows: int) -> pa.Table:
    """The first rows, and little more of the source than that where it can be read in order; HL7 messages too."""
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
            f"{source.name}: the database cannot be reached, or is no OMOP database.",
            hint="Add ?table=NAME or ?query=SELECT... to the URL to say what to read. Of OMOP the tables person, visit_occurrence, "
            "condition_occurrence, location and concept are read.",
        ) from None


def policy_section_of(data: str) -> str | None:
    """The line a guessed policy needs so that the data can be read again the same way."""
    if is_sql(data):
        return "sql: omop" if parse_url(data).query is None else None
    if is_hl7(data):
        return "hl7: adt"
    return "fhir: encounters" if is_fhir(data) else None


_HEAD = 4096


def is_fhir(source: str | Path) -> bool:
    """Whether a source is a folder of NDJSON files or Bundles, or a file that begins with a resource."""
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
    packed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return head.startswith(b"{") and b'"resourceType"' in head
