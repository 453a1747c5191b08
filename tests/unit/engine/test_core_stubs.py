"""The stubs of the core say what the core exports: the same names, methods and parameters, both ways."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import reticent
from reticent import _core

STUBS = Path(reticent.__file__).parent / "_core"
MODULES = sorted(path.stem for path in STUBS.glob("*.pyi") if path.stem != "__init__")
# What Python gives every class of its own accord; a stub has no need to repeat it.
GIVEN = {*vars(object), "__module__", "__new__", "__doc__", "__dict__", "__weakref__"}

Members = dict[str, list[str] | None]


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """Names without self, `*` where it stands, `=` behind what has a default."""
    args = function.args
    defaults = [False] * (len(args.args) - len(args.defaults)) + [True] * len(args.defaults)
    names = [a.arg + "=" * has for a, has in zip(args.args, defaults, strict=True)]
    names += ["*"] * bool(args.kwonlyargs)
    names += [a.arg + "=" * (d is not None) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [name for name in names if name != "self"]


def is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list)


def stubbed_class(node: ast.ClassDef) -> Members:
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    fields = {part.target.id: None for part in node.body if isinstance(part, ast.AnnAssign)}
    return fields | {f.name: None if is_property(f) else parameters_of(f) for f in functions}


def stubbed(module: str) -> dict[str, Members | list[str]]:
    tree = ast.parse((STUBS / f"{module}.pyi").read_text(encoding="utf-8"))
    classes = {node.name: stubbed_class(node) for node in tree.body if isinstance(node, ast.ClassDef)}
    return classes | {node.name: parameters_of(node) for node in tree.body if isinstance(node, ast.FunctionDef)}


def exported_parameters(thing: object) -> list[str]:
    names: list[str] = []
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names.append(parameter.name + "=" * (parameter.default is not parameter.empty))
    return [name for name in names if name != "self"]


def exported_class(kind: type) -> Members:
    members: Members = {}
    for name, member in vars(kind).items():
        if inspect.isdatadescriptor(member):
            members[name] = None
        elif name.startswith("__") and name not in GIVEN:
            members[name] = ["key"] if name == "__contains__" else []
        elif not name.startswith("__"):
            members[name] = exported_parameters(member)
    if "__new__" in vars(kind):
        members["__init__"] = exported_parameters(kind)
    return members


def exported(module: ModuleType) -> dict[str, Members | list[str]]:
    things = {n: thing for n, thing in vars(module).items() if not n.startswith("_") and not isinstance(thing, int)}
    return {
        name: exported_class(thing) if inspect.isclass(thing) else exported_parameters(thing)
        for name, thing in things.items()
    }


def test_every_module_has_its_stub():
    modules = {name for name, thing in vars(_core).items() if inspect.ismodule(thing)}
    assert modules == set(MODULES)
    imports = ast.parse((STUBS / "__init__.pyi").read_text(encoding="utf-8")).body
    assert {alias.name for node in imports for alias in node.names} == modules


@pytest.mark.parametrize("module", MODULES)
def test_the_stub_says_what_the_core_exports(module):
    stub, core = stubbed(module), exported(getattr(_core, module))
    assert sorted(stub) == sorted(core)
    for name in core:
        assert stub[name] == core[name], f"{module}.{name}"


@pytest.mark.parametrize("module", MODULES)
def test_the_core_exports_only_classes_functions_and_integers(module):
    public = {name: t for name, t in vars(getattr(_core, module)).items() if not name.startswith("_")}
    assert all(inspect.isclass(t) or inspect.isbuiltin(t) or isinstance(t, int) for t in public.values())
    tree = ast.parse((STUBS / f"{module}.pyi").read_text(encoding="utf-8"))
    plain = [
        node for node in tree.body if isinstance(node, ast.AnnAssign) and getattr(node.annotation, "id", "") == "int"
    ]
    assert {node.target.id for node in plain} == {name for name, t in public.items() if isinstance(t, int)}
