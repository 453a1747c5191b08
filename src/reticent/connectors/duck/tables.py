"""One table, once, larger than memory: DuckDB counts and recodes, the search and the judge work on the counts.

Guarantee: that of `reticent.connectors.pushdown.tables`; the judge has recomputed it from the file that is published, before it has
    its name.
Not covered: a file that changes while it is read (the counts then disagree and nothing is released).
Cost: two passes over the table and one over the release; the memory that DuckDB is given, and the distinct combinations.
Reference: see `reticent.engine.table.optimal`, `mondrian` and `local`; M. Raasveldt, H. Mühleisen, "DuckDB", SIGMOD 2019.
Differences from the single machine: see `reticent.connectors.pushdown.tables`; the input and the data of the release are Parquet.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reticent.connectors.duck.rows import DuckRows, connection_settings
from reticent.connectors.pushdown.rows import RECORDS
from reticent.connectors.pushdown.tables import check_policy, search_counts
from reticent.connectors.pushdown.verifier import verify_rows
from reticent.disk import make_folder, open_new
from reticent.errors import ConnectorError, require_extra
from reticent.policy import Policy
from reticent.publication.gate import require_verification
from reticent.release import Release, folder
from reticent.release.codebook import NAME, codebook

DEFAULT_MEMORY = "2GB"
"""Of DuckDB; what Python holds comes on top."""
_DATA = "data"


def anonymize(data: str | Path, policy: Policy, output: str | Path, *, memory: str = DEFAULT_MEMORY) -> Release:
    """Releases a Parquet file into a new folder; the release that comes back has everything but the rows.

    Args:
        data: a Parquet file with exactly the columns of the policy.
        policy: roles and requirements; `table: {method: optimal}`, also what `auto` means here, `mondrian` or `local`.
        output: a folder that is not there yet. What does not fit in memory is kept beside it meanwhile, for its owner alone.
        memory: what DuckDB may use.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    data, output = Path(data), Path(output)
    folder.refuse_overwrite(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    aside = output.parent / f".{output.name}.{secrets.token_hex(6)}"
    make_folder(aside)
    try:
        return _release(data, policy, output, aside, memory)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _release(data: Path, policy: Policy, output: Path, scratch: Path, memory: str) -> Release:
    written = scratch / f"{_DATA}.parquet"
    with _connect(scratch, memory) as link:
        rows = DuckRows.of(link, data)
        check_policy(rows.columns, policy, "DuckDB")
        rows = rows.without_markers(policy.missing).normalize_persons(policy.person)
        plan = search_counts(rows, policy)
        _write(written, rows.iter_published_parts(plan.recoding))
        release = DuckRows.of(link, written)
        require_verification(verify_rows(release, plan.guarantee.claims, plan.counts, policy, plan.method))
        if (verdict := plan.verify_persons(policy)) is not None:
            require_verification(verdict)
        columns, missing = _published_labels(release, policy)
    manifest = Release(
        kind="table",
        shape="generalized",
        method=plan.method,
        tables={},
        guarantee=plan.guarantee,
        records=plan.counts,
        policy_hash=policy.hash,
        metrics=plan.metrics,
        explain=plan.explain,
    )
    book = codebook(replace(manifest, tables={_DATA: columns}), policy)
    for entry in book["columns"]:
        entry["missing"] = missing[entry["name"]]
    manifest = replace(manifest, metadata={NAME: book})
    folder.write(manifest, output, "parquet", None, ready=[written])
    return manifest


def _connect(scratch: Path, memory: str) -> Any:
    with require_extra("DuckDB is not installed", "duckdb"):
        import duckdb
    try:
        return duckdb.connect(":memory:", config=connection_settings(scratch, memory))
    except duckdb.Error:
        raise ConnectorError("DuckDB does not start with these settings.", hint="Write --memory 2GB.") from None


def _write(target: Path, parts: Iterable[pa.Table]) -> None:
    with os.fdopen(open_new(target), "wb") as file:
        writer: pq.ParquetWriter | None = None
        for part in parts:
            writer = writer or pq.ParquetWriter(file, part.schema)
            writer.write_table(part.cast(writer.schema))
        if writer is not None:
            writer.close()


class _PublishedLabels:
    """Columns of different lengths, as the codebook looks at them: names and the labels that occur."""

    def __init__(self, columns: dict[str, pa.ChunkedArray]) -> None:
        self.column_names = list(columns)
        self.column = columns.__getitem__


def _published_labels(release: DuckRows, policy: Policy) -> tuple[Any, dict[str, int]]:
    """The published labels of every column but the plain ones, and how many cells are missing."""
    columns, missing = {}, {}
    types = {field.name: field.type for field in release.schema}
    for name in release.columns:
        missing[name] = release.count_nulls(name)
        if name in policy.plain:
            columns[name] = pa.chunked_array([], types[name])
        else:
            counted = release.count_combinations([name]).drop_columns([RECORDS])
            column = counted.column(name)
            columns[name] = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return _PublishedLabels(columns), missing
