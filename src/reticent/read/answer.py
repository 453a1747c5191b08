"""Answer: estimates with intervals, as a table, text, HTML or SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.errors import ConnectorError, PolicyError
from reticent.frames import pandas_of, polars_of
from reticent.notebook import image_html, table_html

FIGURES = ("estimate", "low", "high")
_ROWS = 40
"""Lines that a terminal or a notebook shows."""


@dataclass(frozen=True, repr=False)
class Answer:
    """The answer of a release to a question.

    Attributes:
        table: the columns of `by`, then `estimate`, `low`, `high` (and `change` in a series).
        question: the question in words.
        interval: level of the intervals.
        notes: further information that the recipient needs to interpret the estimates.
    """

    table: pa.Table
    question: str
    interval: float
    notes: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return the answers as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """Return the answers as a pandas frame."""
        return pandas_of(self.table)

    def to_polars(self) -> Any:
        """Return the answers as a polars frame."""
        return polars_of(self.table)

    def to_list(self) -> list[dict[str, Any]]:
        """Return one dict per group."""
        return list(self.table.to_pylist())

    @property
    def estimate(self) -> float:
        """The estimate of an answer without groups."""
        return float(self.table.column("estimate")[0].as_py())

    @property
    def low(self) -> float:
        """The lower end of the interval of an answer without groups."""
        return float(self.table.column("low")[0].as_py())

    @property
    def high(self) -> float:
        """The upper end of the interval of an answer without groups."""
        return float(self.table.column("high")[0].as_py())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        lines = [self.question, *_align_columns([self.table.column_names, *self._cells()])]
        lines += [f"... {len(self) - _ROWS} more"] if len(self) > _ROWS else []
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in self.notes)
        plot = image_html(self._draw()) if 1 < len(self) <= _ROWS else ""
        return table_html(self.question, self.table.column_names, self._cells()) + plot + notes

    def _cells(self) -> list[list[str]]:
        rows = self.table.slice(0, _ROWS).to_pylist()
        digits = 4 if self.question.startswith("Share") else 1
        return [[_format_cell(name, cell, digits) for name, cell in row.items()] for row in rows]

    def plot(self, file: str | Path) -> Path:
        """Write an SVG plot: a dot and an interval per group, or a line over the windows of a series."""
        path = Path(file)
        if path.suffix.lower() not in ("", ".svg"):
            raise PolicyError("Plots can only be written as SVG.", hint=f"Name the file {path.stem}.svg.")
        try:
            path.write_text(self._draw(), encoding="utf-8")
        except OSError as error:
            raise ConnectorError(
                f"Cannot write the plot to {path} ({error.strerror}).",
                hint="Give a file in an existing, writable folder.",
            ) from None
        return path

    def _draw(self) -> str:
        from reticent.read.plot import dots, line

        draw = line if "change" in self.table.column_names else dots
        return draw(self.question, self.table.to_pylist())


def _format_cell(name: str, cell: Any, digits: int) -> str:
    if cell is None:
        return "(missing)"
    if name == "change":
        return "change" if cell else ""
    if isinstance(cell, float) and name in FIGURES:
        return f"{cell:,.{digits}f}"
    return str(cell)


def _align_columns(rows: list[list[str]]) -> list[str]:
    """Pad the cells of each column to one width; align numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    right = [name in FIGURES for name in rows[0]]
    return [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in rows
    ]
