"""List every public name: policy keys, commands, options, JSON keys, columns, store tables, routes, roles, exit codes.

JSON keys and published columns come from the golden files of the tests, from the OpenAPI document, and from the source:
keys of dict literals and fields of data classes, from which JSON is built.
"""

from __future__ import annotations

import ast
import csv
import inspect
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

TOP = Path(__file__).parent.parent
SOURCE = TOP / "src" / "reticent"
GOLDEN = TOP / "tests" / "golden" / "bytes"
_JSON_AREAS = ("audit", "cli", "engine", "publication", "read", "release", "report", "service", "store")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.*: -]*")


def names_page(note: str) -> str:
    """Return all names, section by section, sorted."""
    schema = _openapi()
    sections = {
        "Policy keys": _policy_keys(),
        "Values of policy keys": _policy_values(),
        "Roles of columns, kinds, methods and shapes": _words(),
        "Commands and options": _options(),
        "Environment variables": _environment(),
        "Exit codes": _exit_codes(),
        "Files of a release": _files(),
        "Keys of JSON files and outputs": _golden_keys("*.json"),
        "Keys of stream lines": _golden_keys("*.ndjson"),
        "Columns that are added to a release": _columns(),
        "Tables and columns of the store": _store(),
        "HTTP routes and their parameters": _routes(schema),
        "Keys of HTTP bodies": _bodies(schema),
        "Roles and settings of the service": _service(),
        "Pages of the studio and their parameters": _pages(),
        "Python names": _python(),
        "Keys of dict literals in the source": _literals(),
        "Fields of data classes in the source": _fields(),
    }
    lines = [
        f"# Names\n\n{note}",
        "Every public name, one per line. `*` stands for a name that the data or the policy gives.\n",
    ]
    for title, names in sections.items():
        lines += [f"## {title}\n", "```text", *sorted(set(names)), "```\n"]
    return "\n".join(lines)


def _policy_parts() -> Iterator[tuple[str, str, dict[str, Any]]]:
    from reticent.policy.schema import schema

    whole = schema()
    for part, body in {"Policy": whole, **whole["$defs"]}.items():
        for shape in (body, *body.get("anyOf", ())):
            yield from ((part, name, field) for name, field in shape.get("properties", {}).items())


def _policy_keys() -> Iterator[str]:
    return (f"{part}.{name}" for part, name, _ in _policy_parts())


def _policy_values() -> Iterator[str]:
    for part, name, field in _policy_parts():
        for shape in (field, *field.get("anyOf", ()), field.get("items", {})):
            values = [*shape.get("enum", ()), *([shape["const"]] if "const" in shape else [])]
            yield from (f"{part}.{name}: {value}" for value in values)


def _words() -> Iterator[str]:
    from reticent.engine import PUBLISHERS
    from reticent.policy.spec import ROLES
    from reticent.release.release import Kind, Shape

    yield from (f"role {role}" for role in ROLES)
    yield from (f"kind {kind}" for kind in get_args(Kind))
    yield from (f"shape {shape}" for shape in get_args(Shape))
    yield from (f"method {kind} {method}" for kind, method in PUBLISHERS)


def _options() -> Iterator[str]:
    from reticent.cli import COMMANDS, app

    context = app.context_class(app, info_name="reticent")
    waiting = [("reticent", app), *((f"reticent {name}", app.get_command(context, name)) for name in COMMANDS)]
    while waiting:
        name, command = waiting.pop()
        yield name
        for parameter in command.params:
            argument = parameter.param_type_name == "argument"
            shown = (
                [parameter.metavar or parameter.name.upper()] if argument else parameter.opts + parameter.secondary_opts
            )
            yield from (f"{name} {word}" for word in shown)
        if command is not app:
            waiting += [(f"{name} {below}", one) for below, one in getattr(command, "commands", {}).items()]


def _environment() -> Iterator[str]:
    for _, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(r"\bRETICENT_[A-Z_]+\b", node.value)


def _exit_codes() -> Iterator[str]:
    from reticent import errors

    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.ReticentError)]
    return (f"{kind.exit_code} {kind.__name__}" for kind in kinds)


def _files() -> Iterator[str]:
    inputs = {path.name for path in (GOLDEN / "policies").iterdir()}
    tables = set(yaml.safe_load((GOLDEN / "policies" / "linked.yaml").read_text())["tables"])
    for path in GOLDEN.rglob("*"):
        own = path.is_file() and path.name not in inputs and "stdout" not in path.name and path.name != "digests.json"
        if own and path.name != "store.json":
            yield f"*{path.suffix}" if path.stem in tables else path.name.replace(".parquet.json", ".parquet")


def _golden_keys(pattern: str) -> Iterator[str]:
    given = _given()
    for path in GOLDEN.rglob(pattern):
        if path.name in ("digests.json", "store.json"):
            continue
        texts = path.read_text().splitlines() if path.suffix == ".ndjson" else [path.read_text()]
        name = re.sub(r"^\d+-", "", path.name).replace(".stdout.json", " --json").replace(".parquet.json", ".parquet")
        for text in texts:
            yield from (f"{name}: {key}" for key in _keys(json.loads(text), given) if name != "data.parquet")


def _keys(value: Any, given: set[str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _keys(item, given)
    if isinstance(value, dict):
        for key, item in value.items():
            name = "*" if key in given or not _NAME.fullmatch(key) or re.search(r"\d", key) else key
            yield name
            yield from (f"{name}.{below}" for below in _keys(item, given))


def _given() -> set[str]:
    """Return names of columns, tables and cells in the policies of the golden files."""
    names = {"(missing)", "True", "False", "f", "m"}
    for path in (GOLDEN / "policies").glob("*.yaml"):
        policy = yaml.safe_load(path.read_text())
        tables = policy.get("tables", {})
        names |= {*policy["columns"], *tables, *(f"{name}.csv" for name in tables)}
    return names


def _columns() -> Iterator[str]:
    given = _given()
    for path in GOLDEN.glob("*/*/*.csv"):
        with path.open(newline="") as file:
            head = next(csv.reader(file))
        for name in head:
            if name not in given:
                yield re.sub(r"^(\w+)_\d+$", "*_1, *_2, ...", name)


def _store() -> Iterator[str]:
    from reticent.store import schema

    for table in schema.metadata.sorted_tables:
        yield table.name
        yield from (f"{table.name}.{column.name}" for column in table.columns)


def _openapi() -> dict[str, Any]:
    from reticent.service.app import create_app
    from reticent.service.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(store=f"{folder}/store.db", studio=False))
        try:
            return app.openapi()
        finally:
            app.state.hub.close()
            app.state.hub.store.close()


def _routes(schema: dict[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, call in methods.items():
            yield f"{method.upper()} {path}"
            for parameter in call.get("parameters", ()):
                yield f"{method.upper()} {path} ({parameter['in']} {parameter['name']})"


def _bodies(schema: dict[str, Any]) -> Iterator[str]:
    for name, part in schema["components"]["schemas"].items():
        yield from (f"{name}.{key}" for key in part.get("properties", {}))


def _service() -> Iterator[str]:
    from reticent.service.settings import Settings
    from reticent.service.tokens import Role

    yield from (f"role {role}" for role in get_args(Role) or list(Role))
    yield from (f"setting {name}" for name in Settings.__dataclass_fields__)


def _pages() -> Iterator[str]:
    for _, tree in _modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
                continue
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "studio":
                    path = ast.literal_eval(call.args[0])
                    yield path
                    yield from (f"{path} ({argument.arg})" for argument in node.args.args[1:])


def _python() -> Iterator[str]:
    import reticent

    for name in reticent.__all__:
        yield name
        thing = getattr(reticent, name)
        for below, one in inspect.getmembers(thing) if inspect.isclass(thing) else []:
            if not below.startswith("_") and below in vars(thing):
                yield f"{name}.{below}"
                yield from (f"{name}.{below}({argument})" for argument in _arguments(one))
        if not inspect.isclass(thing):
            yield from (f"{name}({argument})" for argument in _arguments(thing))


def _arguments(thing: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]
    except (TypeError, ValueError):
        return []


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        yield module, ast.parse(path.read_text(encoding="utf-8"))


def _literals() -> Iterable[str]:
    """Keys of dict literals, by area; those with spaces are texts, listed as messages."""
    for module, tree in _modules():
        area = module.partition(".")[0]
        for node in ast.walk(tree) if area in _JSON_AREAS else ():
            for key in node.keys if isinstance(node, ast.Dict) else ():
                if (
                    isinstance(key, ast.Constant)
                    and isinstance(key.value, str)
                    and re.fullmatch(r"[a-z]\w*", key.value)
                ):
                    yield f"{area}: {key.value}"


def _fields() -> Iterator[str]:
    """Fields of public data classes: `asdict` and `to_dict` turn them into JSON."""
    for module, tree in _modules():
        area = module.partition(".")[0]
        for node in ast.walk(tree) if area in _JSON_AREAS else ():
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
                fields = [
                    one.target.id
                    for one in node.body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                ]
                yield from (f"{module}.{node.name}.{name}" for name in fields if not name.startswith("_"))
