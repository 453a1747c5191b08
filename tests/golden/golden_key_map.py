"""The map from old public names to new ones, applied to recorded values before they are compared."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden_files import STORE

SECTIONS = (
    "json_keys", "stream_keys", "column_names", "file_names", "store_tables", "store_columns", "values", "labels",
)  # fmt: skip

_OF_FILE = "(sha256 of "


@dataclass(frozen=True)
class KeyMap:
    """Pairs of old and new names by section; see key_map.toml."""

    sections: Mapping[str, Mapping[str, Any]]

    @classmethod
    def load(cls, path: Path) -> KeyMap:
        sections = tomllib.loads(path.read_text())
        assert not set(sections) - set(SECTIONS), f"unknown sections: {set(sections) - set(SECTIONS)}"
        return cls({name: sections.get(name, {}) for name in SECTIONS})

    def __bool__(self) -> bool:
        return any(self.sections.values())

    def file(self, path: str) -> str:
        """The path of a file under its new name."""
        folder, slash, name = path.rpartition("/")
        return f"{folder}{slash}{self.sections['file_names'].get(name, name)}"

    def value(self, name: str, recorded: Any) -> Any:
        """A decoded file as it should be now: JSON, rows of a CSV, lines of a stream, a store, or text."""
        base = name.rpartition("/")[2]
        if name.endswith(".csv"):
            return self._rows(recorded)
        if name == STORE:
            return {self._store_table(table): self._store_rows(table, rows) for table, rows in recorded.items()}
        if name.endswith(".ndjson"):
            return [self._json(line, (base,), "stream_keys") for line in recorded]
        return self._json(recorded, (base,), "json_keys")

    def _rows(self, rows: list[list[str]]) -> list[list[str]]:
        head, *cells = rows
        names, values = self.sections["column_names"], self.sections["values"]
        mapped = [[str(values.get(f"{of}={cell}", cell)) for of, cell in zip(head, row, strict=True)] for row in cells]
        return [[names.get(name, name) for name in head], *mapped]

    def _store_table(self, table: str) -> str:
        return self.sections["store_tables"].get(table, table)

    def _store_rows(self, table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = self.sections["store_columns"]
        return [
            {
                names.get(f"{table}.{column}", names.get(column, column)): self._json(
                    cell, (table, column), "json_keys"
                )
                for column, cell in row.items()
            }
            for row in rows
        ]

    def _json(self, value: Any, path: tuple[str, ...], section: str) -> Any:
        if isinstance(value, dict):
            return {
                self._key(key, (*path, key), section): self._json(item, (*path, key), section)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._json(item, path, section) for item in value]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        for candidate in (f"{path[-1]}={text}", *([value] if isinstance(value, str) else [])):
            if candidate in self.sections["values"]:
                return self.sections["values"][candidate]
        return self._text(value) if isinstance(value, str) else value

    def _key(self, key: str, path: tuple[str, ...], section: str) -> str:
        for name in _suffixes(path):
            if name in self.sections[section]:
                return self.sections[section][name]
        for other in ("column_names", "file_names"):
            if key in self.sections[other]:
                return self.sections[other][key]
        return key

    def _text(self, text: str) -> str:
        if text.startswith(_OF_FILE):
            return f"{_OF_FILE}{self.file(text[len(_OF_FILE) : -1])})"
        for old, new in sorted(self.sections["labels"].items(), key=lambda pair: -len(pair[0])):
            text = text.replace(old, new)
        return text


def _suffixes(path: tuple[str, ...]) -> Iterator[str]:
    """`a.json:b.c`, then `b.c`, then `c`."""
    file, *keys = path
    yield f"{file}:{'.'.join(keys)}"
    for start in range(len(keys)):
        yield ".".join(keys[start:])
