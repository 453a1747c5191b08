"""Data never becomes markup or the text of props: the pages are read, and what they do is tried with hostile names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest.importorskip("nicegui")
from nicegui import ui
from nicegui.client import Client
from nicegui.page import page

from reticent.service import pages
from reticent.service.pages import safe_elements

PARSED = {
    "props",
    "classes",
    "style",
    "add_head_html",
    "add_body_html",
    "add_css",
    "add_slot",
    "run_javascript",
    "html",
}
PARSED |= {"markdown", "add_scss", "add_sass", "mermaid", "on_js"}
ONLY_SAFE = {"echart", "table", "aggrid", "plotly", "interactive_image", "chat_message"}
HOSTILE = 'age" innerHTML="<img src=x onerror=window.ran=1>" :title="window.ran=1'


def constant(node: ast.expr) -> bool:
    """Text of the programme itself: a literal, a constant of a module, or a choice between two such."""
    if isinstance(node, ast.IfExp):
        return constant(node.body) and constant(node.orelse)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def faults(source: str, *, where: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("_props", "innerHTML"):
            found.append(f"{where}:{node.lineno} {node.attr}")
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name, given = node.func.attr, [*node.args, *(word.value for word in node.keywords)]
        if name in PARSED and not all(map(constant, given)):
            found.append(f"{where}:{node.lineno} {name}")
        if name in ONLY_SAFE:
            found.append(f"{where}:{node.lineno} {name}")
        if any(word.arg == "js_handler" for word in node.keywords):
            found.append(f"{where}:{node.lineno} js_handler")
    return found


def test_no_page_parses_data():
    folder = Path(pages.__file__).parent
    files = [file for file in sorted(folder.rglob("*.py")) if file.name != "safe_elements.py"]
    assert len(files) > 5
    assert [fault for file in files for fault in faults(file.read_text(), where=file.name)] == []


@pytest.mark.parametrize(
    "line",
    [
        "x.props(f'aria-label={name}')",
        "x.props('aria-label=' + name)",
        "x.props(name)",
        "x.classes('a' if y else name)",
        "ui.html(f'<b>{name}</b>')",
        "ui.echart({})",
        "x._props['a'] = name",
        "x.on('click', js_handler=name)",
    ],
)
def test_the_reader_of_pages_finds_what_it_looks_for(line):
    assert faults(line, where="x")


def test_a_name_stays_a_value():
    with Client(page("")):
        button = safe_elements.set_label(ui.button("x"), HOSTILE)
        table = safe_elements.data_table([HOSTILE, ":title"], [[HOSTILE, 1]])
    assert button.props["aria-label"] == HOSTILE
    assert not {"innerHTML", ":title"} & set(button.props)
    assert [column["label"] for column in table.columns] == [HOSTILE, ":title"]
    assert {key for row in table.rows for key in row} == {"row", "c0", "c1"}


@pytest.mark.parametrize("name", ["innerHTML", "onclick", "href", "src", "style", ":title", "v_html"])
def test_no_value_fills_an_attribute_that_acts(name):
    with Client(page("")), pytest.raises(ValueError):
        safe_elements.set_attributes(ui.button("x"), **{name: "1"})


def test_a_chart_runs_no_name():
    with Client(page("")), pytest.raises(ValueError):
        safe_elements.chart({"series": [{":formatter": "window.ran=1"}]})
