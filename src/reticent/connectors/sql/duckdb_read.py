"""DuckDB files: opened for reading, without a way to other files, to the network, or to settings that would open one."""

from __future__ import annotations

from collections.abc import Generator

import pyarrow as pa

from reticent.connectors.sql.read import plain_types, refused
from reticent.connectors.sql.url import SqlSource
from reticent.errors import ConnectorError, PolicyError, needing

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


def batches(base: SqlSource, query: str, batch_rows: int) -> Generator[pa.RecordBatch]:
    """The rows of one SELECT."""
    with needing("DuckDB needs a driver", "duckdb"):
        import duckdb
    if not base.path.is_file():
        raise ConnectorError(f"{base.name}: there is no such database.", hint="Check the path after duckdb:///.")
    with refused(base, (duckdb.Error,)), duckdb.connect(base.url, read_only=True, config=_CLOSED) as link:
        statements = link.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise PolicyError("The query is no SELECT.", hint="Write one query that gives rows.")
        reader: pa.RecordBatchReader = link.sql(query).to_arrow_reader(batch_rows)
        for batch in reader:
            yield plain_types(batch)
