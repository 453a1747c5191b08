"""Write a release as tables of a database: all tables and the manifest in one transaction, or nothing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from reticent.connectors.files.atomic import system_errors
from reticent.connectors.sql.url import is_sql, parse_url
from reticent.disk import open_new
from reticent.errors import ConnectorError, PolicyError
from reticent.read.load import parts_of
from reticent.release.codebook import apply_types
from reticent.release.folder import read

_ROWS = 10_000
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,40}$")


def write_release(folder: Path, url: str, *, name: str = "release") -> tuple[str, ...]:
    """Write each table of a release folder or stream file as `name_table`, and its manifest; return the names."""
    if not _NAME.match(name):
        raise PolicyError("--name has special characters.", hint="Use letters, digits and _.")
    manifest, parts, documents = _read_stream(folder) if folder.is_file() else read(folder)
    codebook = documents.get("codebook", {})
    parts = {part: apply_types(data, codebook.get("columns", ())) for part, data in parts.items()}
    engine = sa.create_engine(_engine_url(url))
    catalog = sa.MetaData()
    tables = {sa.Table(f"{name}_{part}", catalog, *_columns(data)): data for part, data in parts.items()}
    manifest_table = sa.Table(f"{name}_manifest", catalog, sa.Column("manifest", sa.Text, nullable=False))
    try:
        with engine.begin() as link:
            existing = set(sa.inspect(link).get_table_names()) & set(catalog.tables)
            if existing:
                raise ConnectorError(f"The table '{min(existing)}' already exists.", hint="Choose another --name.")
            catalog.create_all(link)
            for table, data in tables.items():
                for batch in data.to_batches(max_chunksize=_ROWS):
                    if batch.num_rows:
                        link.execute(sa.insert(table), batch.to_pylist())
            manifest |= {"metadata": documents}
            link.execute(sa.insert(manifest_table), [{"manifest": json.dumps(manifest, sort_keys=True)}])
    except sa.exc.SQLAlchemyError as error:
        # Its message quotes the rows.
        raise ConnectorError(
            f"The database rejected the release ({type(error).__name__}); nothing was written.",
            hint="Check the URL and the permissions.",
        ) from None
    finally:
        engine.dispose()
    return tuple(catalog.tables)


def _read_stream(file: Path) -> tuple[dict[str, Any], dict[str, pa.Table], dict[str, Any]]:
    """Read a stream's file as the tables of a release."""
    parts = parts_of(file)
    files = {f"{name}.csv": "" for name in parts.tables}
    documents = {"codebook": dict(parts.codebook)} | ({"veil": dict(parts.veil)} if parts.veil else {})
    return {"shape": parts.shape, "kind": parts.kind, "files": files}, dict(parts.tables), documents


def _engine_url(url: str) -> sa.URL:
    if not is_sql(url):
        raise PolicyError(
            "The target is not a supported database.",
            hint="Write to postgresql://... or sqlite:///file.db, to fhir:FOLDER, or to omop:FILE.db.",
        )
    base = parse_url(url)
    if base.dialect not in ("sqlite", "postgresql"):
        raise PolicyError(
            f"Reticent cannot write releases to {base.dialect}.",
            hint="Write to postgresql:// or sqlite:///, or use the release folder.",
        )
    if base.dialect == "sqlite":
        if not base.path.exists():  # a new database is readable by its owner only, as every output file
            with system_errors(f"{base.path} cannot be written", "Check the folder and its permissions."):
                os.close(open_new(base.path))
        return sa.URL.create("sqlite", database=base.url)
    return sa.make_url(base.url).set(drivername="postgresql+psycopg")


def _columns(data: pa.Table) -> list[sa.Column[Any]]:
    def column_type(data_type: pa.DataType) -> type[sa.types.TypeEngine[Any]]:
        if pa.types.is_integer(data_type):
            return sa.BigInteger
        if pa.types.is_floating(data_type):
            return sa.Double
        if pa.types.is_boolean(data_type):
            return sa.Boolean
        if pa.types.is_date(data_type):
            return sa.Date
        return sa.DateTime if pa.types.is_timestamp(data_type) else sa.Text

    return [sa.Column(field.name, column_type(field.type)) for field in data.schema]
