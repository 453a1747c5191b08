"""`README.txt` of a release: the codebook as a page of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

NAME = "README.txt"
_WIDTH = 100
KINDS = {"table": "a table", "evolving": "an evolving table", "series": "a series", "stream": "a stream"}


def citation(kind: str, method: str, policy_hash: str) -> str:
    """How a release is cited."""
    return f"A release of {KINDS.get(kind, kind)} by the method {method} of Reticent, policy {policy_hash[:12]}."


def readme(codebook: Mapping[str, Any]) -> str:
    """The page."""
    guarantee, records = codebook["guarantee"], codebook["records"]
    parts = [
        f"A release of {KINDS.get(codebook['kind'], codebook['kind'])}, made by the method {codebook['method']}",
        f"{records['published']:,} records. {records['suppressed']:,} suppressed, {records['held']:,} held back.",
        _section("How to read it", codebook["reading"]),
        _section("Columns", [_column(entry) for entry in codebook["columns"]]),
        _section("What is promised", [*guarantee["words"], f"against {guarantee['against']}"]),
        _section("What is not covered", guarantee["not_covered"]),
        _section("What may be concluded", codebook["may_be_concluded"]),
        _section("What may not be concluded", codebook["may_not_be_concluded"]),
        _section("How to cite it", [codebook["cite"]]),
        "The same for programs: codebook.json. To ask it: reticent ask FOLDER --value VALUE --where 'age>=60'",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, "-" * len(title), *map(_item, lines)]) if lines else ""


@lru_cache(maxsize=256)  # most of them stand on the page of every release
def _item(line: str) -> str:
    return textwrap.fill(line, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _column(entry: Mapping[str, Any]) -> str:
    words = [f"{entry['table']}: {entry['name']} ({entry['role']}, {entry['type']}"]
    words += [f", hierarchy {entry['hierarchy']}"] if "hierarchy" in entry else []
    words += [f", level {entry['level']}"] if "level" in entry else []
    tail = f" for {entry['stands_for']}" if "stands_for" in entry else ""
    return "".join(words) + ")" + tail + (f": {entry['meaning']}" if entry.get("meaning") else "")
