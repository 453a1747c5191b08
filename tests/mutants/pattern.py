"""Patterns of Python code: `mutate` finds one in a function, class or module and writes other code in its place.

A pattern is Python code: an expression, statements, or `except` clauses.

    $a              any expression or identifier; `$a` used twice matches the same code twice
    if $a: ...      any body; `else`, `elif` and the like are kept with it
    f(..., k=$a)    any further arguments; {**..., "k": $a} any further items of a dict

If both sides are expressions, the pattern matches anywhere, otherwise only whole statements. Functions and classes
inside the searched symbol are not searched: they have symbols of their own.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOLE = "hole_in_pattern_"
_BODY = "the body"
_REST = "further arguments"
_ITEMS = "named arguments, items"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "handlers", "orelse", "finalbody")
_SILENT = ("ctx", "kind", "type_comment")
Holes: TypeAlias = dict[str, object]
"""What each `$name` and each `...` of a pattern matches."""


class PatternError(ValueError):
    """A pattern that cannot be parsed, or does not match exactly once in its symbol."""


def mutate(source: str, symbol: str, find: str, replace: str) -> str:
    """A module's code with the code that a pattern finds in a symbol (empty: the module's own level) replaced."""
    tree = ast.parse(source)
    pattern, template = _parsed(find), _parsed(replace)
    if isinstance(_alone(pattern), ast.Expr) and isinstance(_alone(template), ast.Expr):
        pattern, template = [pattern[0].value], [template[0].value]
    places = [place for scope in _scopes(tree, symbol) for place in _places(pattern, scope)]
    if len(places) != 1:
        raise PatternError(f"the code to find is {len(places)} times in {symbol or 'the module'}")
    owner, field, at, holes = places[0]
    made = [_filled(node, holes) for node in template]
    if at is None:
        setattr(owner, field, made[0])
    else:
        getattr(owner, field)[at : at + len(pattern)] = made
    # Positions are lost: what is unparsed must be read once more to be sure of it.
    text = ast.unparse(tree)
    if ast.dump(ast.parse(text)) == ast.dump(ast.parse(source)):
        raise PatternError("it changes nothing")
    return text


def _parsed(text: str) -> list:
    code = re.sub(r"\$(?=[a-z])", _HOLE, text)
    clauses = code.startswith("except")
    try:
        tree = ast.parse(f"try:\n    pass\n{code}" if clauses else code)
    except SyntaxError as error:
        raise PatternError(f"a pattern is not Python: {error.msg}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = node.value.replace(_HOLE, "$")
    if sum(map(_is_open, ast.walk(tree))) > 1:
        raise PatternError("a pattern has more than one open body")
    return tree.body[0].handlers if clauses else tree.body


def _alone(nodes: list) -> ast.AST | None:
    return nodes[0] if len(nodes) == 1 else None


def _scopes(tree: ast.Module, symbol: str) -> list[ast.AST]:
    found: list[ast.AST] = [tree]
    for name in filter(None, symbol.split(".")):
        inside = [node for scope in found for _, _, value in _slots(scope) for node in _nodes(value)]
        found = [node for node in inside if isinstance(node, _SCOPES) and node.name == name]
    if not found:
        raise PatternError(f"there is no {symbol}")
    return found


def _slots(scope: ast.AST) -> Iterator[tuple[ast.AST, str, object]]:
    """All fields of a scope's own nodes."""
    todo = [scope]
    while todo:
        node = todo.pop()
        for field, value in ast.iter_fields(node):
            if field == "body" and isinstance(node, _SCOPES) and node is not scope:
                continue
            yield node, field, value
            todo.extend(_nodes(value))


def _nodes(value: object) -> list[ast.AST]:
    return [node for node in (value if isinstance(value, list) else [value]) if isinstance(node, ast.AST)]


def _places(pattern: list, scope: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, Holes]]:
    if not pattern:
        raise PatternError("there is no code to find")
    for owner, field, value in _slots(scope):
        if isinstance(value, list):
            for at in range(len(value) - len(pattern) + 1):
                holes: Holes = {}
                if _fits(pattern, value[at : at + len(pattern)], holes):
                    yield owner, field, at, holes
        elif len(pattern) == 1 and _fits(pattern[0], value, holes := {}):
            yield owner, field, None, holes


def _fits(pattern: object, node: object, holes: Holes) -> bool:
    """Whether some code is what the pattern says; fills the holes."""
    if isinstance(pattern, ast.Name) and pattern.id.startswith(_HOLE):
        single = isinstance(node, ast.expr) and not isinstance(node, ast.Starred | ast.Slice)
        return single and _bound(pattern.id, node, holes)
    if isinstance(pattern, str) and pattern.startswith(_HOLE):
        return isinstance(node, str) and _bound(pattern, node, holes)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(_fits(*pair, holes) for pair in zip(pattern, node, strict=True))
    if not isinstance(pattern, ast.AST):
        return pattern == node
    fields = [field for field in pattern._fields if field not in _SILENT]
    if _is_open(pattern):
        holes[_BODY] = {field: getattr(node, field) for field in fields if field in _BLOCKS}
        fields = [field for field in fields if field not in _BLOCKS]
    elif _has_rest(pattern):
        named = len(pattern.args) - 1
        holes[_REST] = node.args[named:]
        head = ast.Call(pattern.func, pattern.args[:named], [])
        same = _fits(head, ast.Call(node.func, node.args[:named], []), holes)
        return same and _items_fit(pattern.keywords, node.keywords, holes)
    elif _has_more(pattern):
        return _items_fit(_pairs(pattern)[1:], _pairs(node), holes)
    return all(_fits(getattr(pattern, field), getattr(node, field), holes) for field in fields)


def _bound(name: str, node: object, holes: Holes) -> bool:
    return _text(holes.setdefault(name, node)) == _text(node)


def _text(piece: object) -> str:
    return ast.unparse(piece) if isinstance(piece, ast.AST) else str(piece)


def _is_open(node: ast.AST) -> bool:
    """Whether a compound statement leaves its body out."""
    body = getattr(node, "body", None)
    return isinstance(body, list) and len(body) == 1 and isinstance(body[0], ast.Expr) and _is_dots(body[0].value)


def _is_dots(node: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _has_rest(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(node.args) and _is_dots(node.args[-1])


def _has_more(node: ast.AST) -> bool:
    return isinstance(node, ast.Dict) and node.keys[:1] == [None] and _is_dots(node.values[0])


def _pairs(node: ast.Dict) -> list:
    return [list(pair) for pair in zip(node.keys, node.values, strict=True)]


def _items_fit(wanted: list, items: list, holes: Holes) -> bool:
    """Whether the wanted items are among the items, in order. Records all items, the wanted ones by number."""
    kept, number = [], 0
    for item in items:
        trial = dict(holes)
        if number < len(wanted) and _fits(wanted[number], item, trial):
            holes.update(trial)
            kept.append(number)
            number += 1
        else:
            kept.append(item)
    holes[_ITEMS] = kept
    return number == len(wanted)


def _items(made: list, holes: Holes) -> list:
    """The items of a call or dict, with those of the template in the places of the ones that were found."""
    kept = _piece(_ITEMS, holes)
    placed = [made[item : item + 1] if isinstance(item, int) else [copy.deepcopy(item)] for item in kept]
    return [*(item for items in placed for item in items), *made[sum(isinstance(item, int) for item in kept) :]]


def _filled(node: object, holes: Holes) -> object:
    """A template with its holes filled."""
    if isinstance(node, ast.Name) and node.id.startswith(_HOLE):
        piece = _piece(node.id, holes)
        return ast.Name(piece) if isinstance(piece, str) else copy.deepcopy(piece)
    if isinstance(node, str) and node.startswith(_HOLE):
        return _text(_piece(node, holes))
    if isinstance(node, list):
        return [_filled(part, holes) for part in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{field: _filled(value, holes) for field, value in ast.iter_fields(node)})
    if _is_open(node):
        for field, block in _piece(_BODY, holes).items():
            setattr(made, field, copy.deepcopy(block))
    elif _has_rest(node):
        made.args[-1:] = _piece(_REST, holes)
        made.keywords = _items(made.keywords, holes)
    elif _has_more(node):
        pairs = _items(_pairs(made)[1:], holes)
        made.keys, made.values = [key for key, _ in pairs], [value for _, value in pairs]
    return ast.fix_missing_locations(made)


def _piece(name: str, holes: Holes) -> object:
    if name not in holes:
        raise PatternError(f"{name.replace(_HOLE, '$')} is not in the code to find")
    return holes[name]
