"""Anonymize one table that is larger than memory, once: DuckDB counts and recodes; search and verifier use the counts.

Guarantee: as in `reticent.connectors.pushdown.tables`. The verifier recomputes it from the file before publication.
Not covered: a file that changes while it is read (the counts then disagree and nothing is released).
Cost: two passes over the table and one over the release; DuckDB's memory limit plus the distinct combinations.
Reference: see `reticent.engine.table.optimal`, `mondrian` and `local`; M. Raasveldt, H. Mühleisen, "DuckDB", SIGMOD
    2019.
Differences from the single machine: see `reticent.connectors.pushdown.tables`; input and released data are Parquet.
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
"""DuckDB's memory limit; Python's own memory comes on top."""
_DATA = "data"


def anonymize(data: str | Path, policy: Policy, output: str | Path, *, memory: str = DEFAULT_MEMORY) -> Release:
    """Release a Parquet file into a new folder; the returned release has everything except the rows.

    Args:
        data: a Parquet file with exactly the columns of the policy.
        policy: roles and requirements; the method is `optimal` (also used for `auto`), `mondrian` or `local`.
        output: a folder that does not exist yet. Temporary files go next to it, readable by their owner only.
        memory: DuckDB's memory limit.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    data, output = Path(data), Path(output)
    folder.refuse_overwrite(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    scratch = output.parent / f".{output.name}.{secrets.token_hex(6)}"
    make_folder(scratch)
    try:
        return _release(data, policy, output, scratch, memory)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _release(data: Path, policy: Policy, output: Path, scratch: Path, memory: str) -> Release:
    published = scratch / f"{_DATA}.parquet"
    with _connect(scratch, memory) as link:
        rows = DuckRows.of(link, data)
        check_policy(rows.columns, policy, "DuckDB")
        rows = rows.without_markers(policy.missing).normalize_persons(policy.person)
        plan = search_counts(rows, policy)
        _write(published, rows.iter_published_parts(plan.recoding))
        release = DuckRows.of(link, published)
        require_verification(verify_rows(release, plan.guarantee.claims, plan.counts, policy, plan.method))
        if (result := plan.verify_persons(policy)) is not None:
            require_verification(result)
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
    entries = codebook(replace(manifest, tables={_DATA: columns}), policy)
    for entry in entries["columns"]:
        entry["missing"] = missing[entry["name"]]
    manifest = replace(manifest, metadata={NAME: entries})
    folder.write(manifest, output, "parquet", None, ready=[published])
    return manifest


def _connect(scratch: Path, memory: str) -> Any:
    with require_extra("DuckDB is not installed", "duckdb"):
        import duckdb
    try:
        return duckdb.connect(":memory:", config=connection_settings(scratch, memory))
    except duckdb.Error:
        raise ConnectorError(
            "DuckDB does not start with these settings.", hint="Set --memory to a size such as 2GB."
        ) from None


def _write(target: Path, parts: Iterable[pa.Table]) -> None:
    with os.fdopen(open_new(target), "wb") as file:
        writer: pq.ParquetWriter | None = None
        for part in parts:
            writer = writer or pq.ParquetWriter(file, part.schema)
            writer.write_table(part.cast(writer.schema))
        if writer is not None:
            writer.close()


class _PublishedLabels:
    """Stand-in for a table whose columns differ in length; the codebook reads its names and labels."""

    def __init__(self, columns: dict[str, pa.ChunkedArray]) -> None:
        self.column_names = list(columns)
        self.column = columns.__getitem__


def _published_labels(release: DuckRows, policy: Policy) -> tuple[Any, dict[str, int]]:
    """Return the published labels of every column that is not plain, and the number of missing cells per column."""
    columns, missing = {}, {}
    types = {field.name: field.type for field in release.schema}
    for name in release.columns:
        missing[name] = release.count_nulls(name)
        if name in policy.plain:
            columns[name] = pa.chunked_array([], types[name])
        else:
            labels = release.count_combinations([name]).drop_columns([RECORDS])
            column = labels.column(name)
            columns[name] = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return _PublishedLabels(columns), missing
