"""A release as tables of a database: all of them and its manifest in one transaction, or nothing."""

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
    """Writes every table of a release folder, or of a stream's file, as `name_table`, and its manifest as `name_manifest`; says which tables."""
    if not _NAME.match(name):
        raise PolicyError("The name of the tables is no plain name.", hint="Use letters, digits and _.")
    about_release, parts, documents = _read_stream(folder) if folder.is_file() else read(folder)
    codebook = documents.get("codebook", {})
    parts = {part: apply_types(data, codebook.get("columns", ())) for part, data in parts.items()}
    engine = sa.create_engine(_engine_url(url))
    catalogue = sa.MetaData()
    tables = {sa.Table(f"{name}_{part}", catalogue, *_columns(data)): data for part, data in parts.items()}
    about = sa.Table(f"{name}_manifest", catalogue, sa.Column("manifest", sa.Text, nullable=False))
    try:
        with engine.begin() as link:
            taken = set(sa.inspect(link).get_table_names()) & set(catalogue.tables)
            if taken:
                raise ConnectorError(f"The table '{min(taken)}' exists.", hint="Give another --name.")
            catalogue.create_all(link)
            for table, data in tables.items():
                for batch in data.to_batches(max_chunksize=_ROWS):
                    if batch.num_rows:
                        link.execute(sa.insert(table), batch.to_pylist())
            about_release |= {"metadata": documents}
            link.execute(sa.insert(about), [{"manifest": json.dumps(about_release, sort_keys=True)}])
    except sa.exc.SQLAlchemyError as error:
        # Its message carries the rows it was given.
        raise ConnectorError(
            f"The database refused the release: {type(error).__name__}; nothing was written.",
            hint="Check the address and the rights.",
        ) from None
    finally:
        engine.dispose()
    return tuple(catalogue.tables)


def _read_stream(file: Path) -> tuple[dict[str, Any], dict[str, pa.Table], dict[str, Any]]:
    """A stream's file as the tables of a release."""
    parts = parts_of(file)
    files = {f"{name}.csv": "" for name in parts.tables}
    documents = {"codebook": dict(parts.codebook)} | ({"veil": dict(parts.veil)} if parts.veil else {})
    return {"shape": parts.shape, "kind": parts.kind, "files": files}, dict(parts.tables), documents


def _engine_url(url: str) -> sa.URL:
    if not is_sql(url):
        raise PolicyError(
            "The address is none of a database that is known here.",
            hint="Write to postgresql://... or sqlite:///file.db, to fhir:FOLDER, or to omop:FILE.db.",
        )
    base = parse_url(url)
    if base.dialect not in ("sqlite", "postgresql"):
        raise PolicyError(
            f"Releases are not written to {base.dialect}.",
            hint="Write to postgresql:// or sqlite:///, or use the folder.",
        )
    if base.dialect == "sqlite":
        if not base.path.exists():  # a new database belongs to its owner alone, as every file does that is written here
            with system_errors(f"{base.path} cannot be written", "Check the folder and its permissions."):
                os.close(open_new(base.path))
        return sa.URL.create("sqlite", database=base.url)
    return sa.make_url(base.url).set(drivername="postgresql+psycopg")


def _columns(data: pa.Table) -> list[sa.Column[Any]]:
    def column_type(of: pa.DataType) -> type[sa.types.TypeEngine[Any]]:
        if pa.types.is_integer(of):
            return sa.BigInteger
        if pa.types.is_floating(of):
            return sa.Double
        if pa.types.is_boolean(of):
            return sa.Boolean
        if pa.types.is_date(of):
            return sa.Date
        return sa.DateTime if pa.types.is_timestamp(of) else sa.Text

    return [sa.Column(field.name, column_type(field.type)) for field in data.schema]
