"""Patterns of Rust code: `mutate` finds a run of tokens in a function and writes others in its place.

Spaces and comments do not count. `$a` is any one identifier or literal; `$a` twice is the same twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pattern import PatternError

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<literal>b?r(?P<fence>\#*)".*?"(?P=fence)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'
       |\d\w*(?:\.\d\w*)?)
    |(?P<hole>\$[a-z]\w*)
    |(?P<word>'?[^\W\d]\w*)
    |(?P<mark><<=|>>=|\.\.=|\.\.\.|::|->|=>|==|!=|<=|>=|&&|\|\||\.\.|[-+*/%^&|]=|<<|>>|.)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A word, literal, sign or metavariable, and its position in the text."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of some code, without spaces and comments."""
    found = [Token(m.lastgroup or "", m[0], *m.span()) for m in _TOKEN.finditer(text)]
    return [token for token in found if token.kind != "space"]


def mutate(source: str, symbol: str, find: str, replace: str) -> str:
    """A file with the code that a pattern finds in the functions of a name replaced."""
    code, pattern = tokens(source), tokens(find)
    bodies = list(_bodies(code, symbol))
    if not bodies or not pattern:
        raise PatternError(f"there is no function {symbol}" if pattern else "there is no code to find")
    starts = [at for first, last in bodies for at in range(first, last - len(pattern) + 1)]
    places = [(at, holes) for at in starts if (holes := _holes(pattern, code[at : at + len(pattern)])) is not None]
    if len(places) != 1:
        raise PatternError(f"the code to find is {len(places)} times in {symbol}")
    at, holes = places[0]
    try:
        made = re.sub(r"\$[a-z]\w*", lambda hole: holes[hole[0]], replace)
    except KeyError as error:
        raise PatternError(f"{error.args[0]} is not in the code to find") from error
    changed = source[: code[at].start] + made + source[code[at + len(pattern) - 1].end :]
    if [token.text for token in tokens(changed)] == [token.text for token in code]:
        raise PatternError("it changes nothing")
    return changed


def _bodies(code: list[Token], name: str) -> list[tuple[int, int]]:
    """The first token and the one after the last of every function of a name."""
    found = []
    for at in range(len(code) - 1):
        if (code[at].text, code[at + 1].text) == ("fn", name):
            depth = 0
            for end in range(at, len(code)):
                depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(code[end].text, 0)
                if depth == 0 and code[end].text in {"}", ";"}:
                    found.append((at, end + 1))
                    break
    return found


def _holes(pattern: list[Token], code: list[Token]) -> dict[str, str] | None:
    holes: dict[str, str] = {}
    for want, token in zip(pattern, code, strict=True):
        if want.kind == "hole":
            if token.kind not in {"word", "literal"} or holes.setdefault(want.text, token.text) != token.text:
                return None
        elif want.text != token.text:
            return None
    return holes
