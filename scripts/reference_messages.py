"""List every message that a user can see, from the source: errors, hints, commands, help, studio, reports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parent.parent
SOURCE = TOP / "src" / "reticent"

ERRORS, SAID, HELP, STUDIO, GUARANTEES, REPORTS, OTHERS = (
    "Errors",
    "Sentences of commands",
    "Help and descriptions",
    "Studio",
    "Guarantees",
    "Reports",
    "Other texts",
)
SECTIONS = {
    ERRORS: "What is refused, and after `->` what to do about it.",
    SAID: "Results, progress and warnings on standard error.",
    HELP: "Of commands, options and settings.",
    STUDIO: "Labels, notices and tables of the pages.",
    GUARANTEES: "The sentences that releases, reports and the studio share.",
    REPORTS: "Of the audit, the report for a board, and notebooks.",
    OTHERS: "Checks of the verifier, reasons of dead letters, answers of the service, notes.",
}
_SPEAKING = {"say", "echo", "working", "step", "warn", "notify", "progress", "prompt", "confirm", "secho"}
_SILENT = {
    "classes",
    "style",
    "props",
    "compile",
    "text",
    "execute",
    "getLogger",
    "debug",
    "fromisoformat",
    "strftime",
    "key",
    "veil_key",
}
_DATA = ("datasets", "reproduce")
"""Packages whose texts are data and figures of papers; only their errors are listed."""
_CODE = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|WITH|PRAGMA|COPY|BEGIN|SET|ATTACH|FROM|<)\b|^[^A-Za-z]*$|[\\^$]\S*[*+?)]|\n.*[{};]$"
)
_WORDS = re.compile(r"[A-Za-z]{2,}.*\s.*[A-Za-z]{2,}|^[A-Z][a-z]+[.!?]$", re.DOTALL)


class Message(NamedTuple):
    """A text with its section and its module."""

    section: str
    module: str
    text: str


def messages_page(note: str) -> str:
    """Return all messages as one text."""
    found = sorted({*_source(), *_sign_in(), *_commands(), *_settings(), *_core()})
    lines = [
        f"# Messages\n\n{note}",
        "Every message that a user can meet, one per line, after the module that it comes from. `{name}` stands for what is filled in.\n",
    ]
    for section, about in SECTIONS.items():
        lines += [f"## {section}\n", f"{about}\n", "```text"]
        seen: set[str] = set()
        for message in (one for one in found if one.section == section):
            if message.text not in seen:
                lines.append(f"{message.module}: {message.text}")
            seen.add(message.text)
        lines += ["```\n"]
    return "\n".join(lines)


def _source() -> Iterator[Message]:
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        yield from _Walk(module).read(ast.parse(path.read_text(encoding="utf-8")))


class _Walk:
    """Walks a module from the top; a text that is part of another one is listed once."""

    def __init__(self, module: str) -> None:
        self._module, self._area = module, module.partition(".")[0]
        self._taken: set[int] = set()

    def read(self, tree: ast.Module) -> Iterator[Message]:
        self._taken |= {id(node) for node in _never_shown(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield from self._error(node.exc)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from self._call(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                yield from self._message(self._usual(), node)

    def _error(self, call: ast.Call) -> Iterator[Message]:
        hint = next((keyword.value for keyword in call.keywords if keyword.arg == "hint"), None)
        texts = [argument for argument in call.args if rendered(argument) and " " in rendered(argument)]
        if hint is None and len(texts) > 1:
            hint = texts[1]
        if not texts or last_name(call.func) in ("AssertionError", "StopIteration"):
            return
        words, then = rendered(texts[0]), rendered(hint) if hint is not None else ""
        self._taken |= {id(node) for part in [texts[0], *([hint] if hint else [])] for node in ast.walk(part)}
        yield Message(ERRORS, self._module, f"{words} -> {then}" if then else words)

    def _call(self, call: ast.Call) -> Iterator[Message]:
        name = last_name(call.func)
        if name in _SILENT:
            self._taken |= {id(node) for argument in call.args for node in ast.walk(argument)}
            return
        for keyword in call.keywords:
            if keyword.arg in ("help", "description"):
                yield from self._message(HELP, keyword.value, always=True)
        label = self._module.startswith("service.pages")
        for argument in call.args:
            if name in _SPEAKING:
                yield from self._message(SAID if self._area != "service" else STUDIO, argument, always=True)
            elif label and rendered(argument)[:1].isupper():
                yield from self._message(STUDIO, argument, always=True)

    def _usual(self) -> str:
        if self._module == "release.wording":
            return GUARANTEES
        if self._module.startswith("service.pages"):
            return STUDIO
        return {"report": REPORTS, "notebook": REPORTS, "cli": SAID}.get(self._area, OTHERS)

    def _message(self, section: str, node: ast.expr, *, always: bool = False) -> Iterator[Message]:
        text = rendered(node)
        if id(node) in self._taken or not text:
            return
        if not always and (self._area in _DATA or not _WORDS.search(text) or _CODE.search(text)):
            return
        self._taken |= {id(part) for part in ast.walk(node)}
        if re.search(r"[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", text)):
            yield Message(section, self._module, text)


def _never_shown(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield docstrings, keys, types, indices, compared values and parts of texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        elif isinstance(node, ast.Dict):
            yield from (key for key in node.keys if isinstance(key, ast.Constant))
        elif isinstance(node, ast.Subscript):
            yield from ast.walk(node.slice)
        elif isinstance(node, ast.Compare):
            yield from (part for part in [node.left, *node.comparators] if isinstance(part, ast.Constant))
        elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield from ast.walk(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield from ast.walk(node.returns)
        elif isinstance(node, ast.JoinedStr):
            yield from (
                part for part in ast.walk(node) if part is not node and isinstance(part, ast.Constant | ast.JoinedStr)
            )


def rendered(node: ast.AST | None) -> str:
    """Return a text on one line, with names for placeholders; empty if the node is not a text."""
    if isinstance(node, ast.Constant):
        return " ".join(node.value.split()) if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return " ".join("".join(map(_piece, node.values)).split())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [rendered(side) or f"{{{last_name(side)}}}" for side in (node.left, node.right)]
        return "".join(sides) if any(map(rendered, (node.left, node.right))) else ""
    if isinstance(node, ast.IfExp):
        sides = [rendered(side) for side in (node.body, node.orelse)]
        return " / ".join(sides) if all(sides) else ""
    return ""


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)  # noqa: S101 - all that a text may hold
    return f"{{{last_name(part.value)}}}"


def last_name(node: ast.AST) -> str:
    """Return the last name of an expression: `count` of `self.rows.count`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        within = [last_name(argument) for argument in node.args]
        plain = isinstance(node.func, ast.Name) and node.func.id in (
            "len",
            "sum",
            "str",
            "abs",
            "repr",
            "round",
            "max",
            "min",
        )
        joins = isinstance(node.func, ast.Attribute) and node.func.attr == "join"
        return within[0] if within and within[0] != "…" and (plain or joins) else last_name(node.func)
    for part in ("value", "elt", "left", "body", "operand"):
        inner = getattr(node, part, None)
        if isinstance(inner, ast.AST):
            return last_name(inner)
    return "…"


def _commands() -> Iterator[Message]:
    """Yield the texts of commands; those of options are in their help."""
    from reticent.cli import COMMANDS, app

    context = app.context_class(app, info_name="reticent")
    waiting = [(name, app.get_command(context, name)) for name in COMMANDS]
    while waiting:
        name, command = waiting.pop()
        yield Message(HELP, f"reticent {name}", " ".join((command.help or "").split()))
        waiting += [(f"{name} {below}", one) for below, one in getattr(command, "commands", {}).items()]


def _settings() -> Iterator[Message]:
    """Yield the descriptions of the policy sections."""
    from reticent.policy.schema import schema

    for name, part in schema()["$defs"].items():
        if part.get("description"):
            yield Message(HELP, f"policy {name}", " ".join(part["description"].split()))


class _Shown(HTMLParser):
    """Collects the texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        """Collect a text between two tags."""
        if re.search(r"[A-Za-z]{2}", data) and self.lasttag not in ("style", "script"):
            self.texts.append(" ".join(data.split()))


def _sign_in() -> Iterator[Message]:
    for path in sorted(SOURCE.rglob("*.html")):
        shown = _Shown()
        shown.feed(path.read_text(encoding="utf-8"))
        yield from (Message(STUDIO, f"service.pages.{path.stem}", text) for text in shown.texts)


def _core() -> Iterator[Message]:
    """Yield errors of the compiled core."""
    for path in sorted((TOP / "core" / "src").rglob("*.rs")):
        text = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
        module = ".".join(("core", *path.relative_to(TOP / "core" / "src").with_suffix("").parts))
        for found in re.finditer(r'new_err\(\s*(?:format!\(\s*)?"((?:[^"\\]|\\.)*)"', text):
            yield Message(ERRORS, module, " ".join(found[1].replace("\\\n", "").split()))
