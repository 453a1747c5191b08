"""Parse a database URL into its location and query. Its password never appears in a message."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from reticent.errors import PolicyError

_POSTGRES = ("postgresql", "postgres")
_FILE_DIALECTS = ("sqlite", "duckdb")
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")


@dataclass(frozen=True)
class SqlSource:
    """A database and a query; `url` is not in the repr, because it may contain a password."""

    dialect: str
    name: str
    url: str = field(repr=False)
    query: str | None = None
    table: str | None = None

    @property
    def path(self) -> Path:
        """The file of a SQLite or DuckDB database."""
        return Path(self.url)


def is_sql(source: object) -> bool:
    """Return whether a source is the URL of a database."""
    return isinstance(source, str) and source.partition("://")[0].lower() in (*_POSTGRES, *_FILE_DIALECTS)


def parse_url(source: str) -> SqlSource:
    """Parse a URL.

    >>> parse_url("sqlite:///omop.db?table=person").query
    'SELECT * FROM person'
    """
    parts = urlsplit(source)
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    query, table = settings.pop("query", None), settings.pop("table", None)
    if query is not None and table is not None:
        raise PolicyError("The URL has both a query and a table.", hint="Keep one of them.")
    if table is not None:
        if not _NAME.match(table):
            raise PolicyError(
                "The table name in the URL has special characters.", hint="Write ?table=name or ?table=schema.name."
            )
        query = f"SELECT * FROM {table}"  # noqa: S608 - a plain name, checked above
    dialect = parts.scheme.lower()
    if dialect in _FILE_DIALECTS:
        if parts.netloc or len(parts.path) < 2:
            raise PolicyError(f"A {dialect} URL needs three slashes and a file.", hint=f"Write {dialect}:///file.db.")
        file = unquote(parts.path[1:])
        return SqlSource(dialect, file, file, query, table)
    url = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(settings), ""))
    return SqlSource("postgresql", parts.path.lstrip("/") or dialect, url, query, table)
