"""Elements that take data as values of attributes, cells and charts, never as text that is parsed.

`element.props("...")` parses its text, so a column called `x" innerHTML="..."` would become markup. NiceGUI also runs
the value of a key that begins with a colon as a script. Pages therefore pass only constants to `props`, `classes` and
`style`, and data through the functions here; `tests/service/test_page_props.py` checks this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from nicegui import ui
from nicegui.element import Element

E = TypeVar("E", bound=Element)
# Attributes that browsers do not interpret as markup, a script or an address.
_SAFE_ATTRIBUTES = re.compile(r"aria-[a-z]+|data-[a-z-]+|hint|label|title|placeholder|value|alt")


def set_label(element: E, label: str) -> E:
    """Set the accessible name of an element."""
    return set_attributes(element, aria_label=label)


def set_attributes(element: E, **values: str | float) -> E:
    """Set attributes to unparsed values; write `aria_label` for `aria-label`."""
    for key, value in values.items():
        name = key.replace("_", "-")
        if not _SAFE_ATTRIBUTES.fullmatch(name):
            raise ValueError(f"{name} is not an attribute that data may fill")
        element.props[name] = value
    return element


def data_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> ui.table:
    """Return a table of text that scrolls if it is wider than its page."""
    with ui.element("div").classes("r-scroll").props("tabindex=0"):
        return _table(names, rows).classes("w-full")


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]], **more: Any) -> ui.table:
    """Return a table whose columns and rows have numbers as keys, independent of their names."""
    columns = [{"name": f"c{i}", "label": str(n), "field": f"c{i}", "align": "left"} for i, n in enumerate(names)]
    table = ui.table(columns=columns, rows=number_rows(rows), row_key="row", pagination=0, **more)
    return table.props("dense flat hide-bottom")


def selectable_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> ui.table:
    """Return a table with search and selection of rows; on a phone the values appear below the first column."""
    table = _table(names, rows, selection="multiple")
    table.add_slot("header-selection", _SELECT_ALL)
    table.add_slot("body-selection", _SELECT_ROW)
    table.add_slot("body-cell-c0", _FIRST_CELL)
    return table.classes("r-columns")


def number_rows(rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows with the numeric keys of a table."""
    return [{"row": number, **{f"c{i}": str(v) for i, v in enumerate(row)}} for number, row in enumerate(rows)]


_SELECT_ALL = '<q-checkbox v-model="props.selected" dense aria-label="Select all displayed rows" />'
_SELECT_ROW = """<q-checkbox v-model="props.selected" dense :aria-label="'Select ' + props.row.c0" />"""
_FIRST_CELL = """<q-td :props="props"><div class="font-medium r-cells">{{ props.row.c0 }}</div>
<div class="r-muted r-cells r-phone">{{ props.row.c2 }}</div></q-td>"""


def notify_error(words: str) -> None:
    """Display an error at the top, where it covers no button, until the user closes it."""
    ui.notify(words, type="negative", multi_line=True, close_button="Close", timeout=0, position="top")


def uploader(label: str, *, largest: int, several: bool = False, **handlers: Any) -> ui.upload:
    """Return an upload area with a labeled button; the label must be a constant of the program."""
    if not _SAFE_LABEL.fullmatch(label):
        raise ValueError("the label of an uploader goes into a template, so it must be plain text")
    words = f"The file was not uploaded: it has more than {largest / 2**20:,.0f} MiB. Upload fewer rows, or raise --max-body."

    reject = partial(notify_error, words)
    area = ui.upload(auto_upload=True, multiple=several, max_file_size=largest, on_rejected=reject, **handlers)
    area.add_slot("header", _UPLOAD_HEADER.replace("LABEL", label))
    return area.props("flat bordered color=transparent text-color=primary").classes("w-full r-drop")


_SAFE_LABEL = re.compile(r"[A-Za-z0-9 ,.:+-]+")
_UPLOAD_HEADER = """<div class="row items-center no-wrap w-full q-pa-sm">
<q-btn flat no-caps color="primary" icon="upload_file" label="LABEL" @click="props.pickFiles" class="col" align="left" />
<q-spinner v-if="props.isUploading" size="24px" /><div class="hidden"><q-uploader-add-trigger /></div></div>"""


def chart(options: dict[str, Any]) -> ui.echart:
    """Return a chart whose tooltip draws text instead of markup."""
    return ui.echart(_prepare_options(options)).classes("w-full")


def redraw(picture: ui.echart, options: dict[str, Any]) -> None:
    """Replace the options of a chart."""
    picture.options.clear()
    picture.options.update(_prepare_options(options))
    picture.update()


def _prepare_options(options: dict[str, Any]) -> dict[str, Any]:
    _refuse_code(options)
    tooltip = {"renderMode": "richText", "trigger": "axis"} | options.get("tooltip", {})
    return options | {"tooltip": tooltip, "aria": {"enabled": True}}


def _refuse_code(value: Any) -> None:
    if isinstance(value, dict):
        if any(str(key).startswith(":") for key in value):
            raise ValueError("NiceGUI would run the value of a key that begins with a colon as a script")
        for part in value.values():
            _refuse_code(part)
    elif isinstance(value, list | tuple):
        for part in value:
            _refuse_code(part)
