"""A release from the database that `reticent export` filled."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from reticent.errors import ConnectorError, PolicyError
from reticent.read.load import Parts, from_manifest

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,40}$")


def from_database(url: str, name: str) -> Parts:
    """Reads `NAME_manifest` and the tables beside it."""
    try:
        import sqlalchemy as sa
    except ImportError:
        raise ConnectorError("Reading a database needs SQLAlchemy.", hint="pip install sqlalchemy") from None
    if not _NAME.match(name):
        raise PolicyError("The name of the tables is no plain name.", hint="Use letters, digits and _.")
    try:
        engine = sa.create_engine(sa.make_url(url.replace("postgresql://", "postgresql+psycopg://", 1)))
        with engine.connect() as link:
            manifest = json.loads(link.execute(sa.text(f"SELECT manifest FROM {name}_manifest")).scalar_one())  # noqa: S608 - a plain name
            documents = manifest.get("documents", {})
            files = [file.rsplit(".", 1)[0] for file in manifest["files"] if file.endswith((".csv", ".parquet"))]
            tables = {part: _table(link, sa, f"{name}_{part}") for part in files}
        engine.dispose()
    except (sa.exc.SQLAlchemyError, ValueError, KeyError):
        raise ConnectorError(
            f"The database holds no release called '{name}' that can be read.",
            hint="Give the URL and the --name that `reticent export` was given.",
        ) from None
    return from_manifest(manifest, tables, documents)


def _table(link: Any, sa: Any, name: str) -> pa.Table:
    rows = link.execute(sa.text(f'SELECT * FROM "{name}"'))  # noqa: S608 - built from a plain name
    names = list(rows.keys())
    columns = list(zip(*rows.fetchall(), strict=True)) or [()] * len(names)
    return pa.table({column: pa.array(cells) for column, cells in zip(names, columns, strict=True)})
