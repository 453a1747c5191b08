"""A thousand records as feeds may send them: valid ones, among everything that a parser could read in two ways."""

from __future__ import annotations

import json

RULES = {
    "version": 1,
    "person": "who",
    "columns": {"who": "identifier", "age": "quasi", "town": "quasi", "note": "plain", "ill": "sensitive"},
    "privacy": {"l": 2},
    "prior": {"file": "prior.csv"},
    "stream": {"method": "delay-free"},
}
VEILED = RULES | {"stream": {"method": "veil"}, "prior": {"file": "prior.csv"}}
PRIOR = "value,count\na,5\nb,5\nc,4\n"
# Cells as they are written, each in a sound record of its own.
CELLS = [
    *("1", "2.5", '"x"', "1.0", "-0.0", "0", "-7", "true", "false", "null", '""', '" "', '"1"', '"01"', '"null"'),
    *("1e2", "1E-7", "0.1", "123456789012345678", "1e16", "12345678.875", "5e-324", "1e18"),
    *('"ü é"', '"\\u00fc"', '"a\\"b\\\\c"', '"\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f"', '"\\u2028\\u0085"', '"😀"'),
    *("9223372036854775807", "-9223372036854775808"),
]
BAD_CELLS = [
    *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 30, "1e19", "1e400"),
    *("NaN", "Infinity", "-Infinity", "[1]", "[]", "{}", '{"a": 1}', "01", "+1", "1.", "'x'", '"\\ud800"', "nul"),
]
PEOPLE = ['"p"', "5", "5.0", '"5"', "-0.0", "true"]
NOBODY = ["null", '""']
# Whole lines, none of them a record.
BAD_LINES = [
    *("{}", "[]", "null", "5", '"text"', "{", "}", "no json", '{"who":"p"}', '{"age":1,"ill":"a"}'),
    *('{"who":"p","age":1,"ill":"a","name":"b"}', '{"who":"p","age":1,"age":2,"town":"t","note":1,"ill":"a"}'),
    *(
        '{"who":"p","age":1,"a\\u0067e" : 2,"town":"t","note":1,"ill":"a"}',
        '{"who":"p","ill":"a"} {"who":"q","ill":"b"}',
    ),
    *('{"who":"p","age":1,"town":"t","note":2,"ill":"a"},',),
]
GOOD_LINES = [
    *('{"who":"p","ill":"a"}', '{"who":"p","age":null,"ill":null}', '  {"who" : "p", "age": 3, "ill": "b"}  '),
    *('{"who":"p","age":"\\": ","town":"a\\":b","note":" \\" :","ill":"c"}', '{"who":"p","ill":"\\u0061"}'),
]


def line(number: int, **cells: str) -> str:
    own = {"who": f'"p{number}"', "age": str(20 + number % 50), "town": f'"t{number % 7}"', "note": '"n"'}
    cells = own | {"ill": json.dumps("abc"[number % 3])} | cells
    return "{" + ",".join(f"{json.dumps(name)}:{cell}" for name, cell in cells.items()) + "}"


def lines(total: int = 1000) -> tuple[list[str], set[int]]:
    """The lines, and the numbers of those that are no records."""
    odd: list[tuple[str | dict[str, str], bool]] = [({name: cell}, True) for cell in CELLS for name in ("age", "note")]
    odd += [({name: cell}, False) for cell in BAD_CELLS for name in ("age", "town", "note", "who", "ill")]
    odd += [({"ill": cell}, True) for cell in ("7", "7.0", '"7"', "true", "null", "2.5", '"ü"')]
    odd += [({"who": cell}, True) for cell in PEOPLE] + [({"who": cell}, False) for cell in NOBODY]
    odd += [(text, False) for text in BAD_LINES] + [(text, True) for text in GOOD_LINES]
    written, bad = [], set()
    for number in range(total):
        cells, good = odd[number // 3 % len(odd)] if number % 3 == 0 else ({}, True)
        written.append(cells if isinstance(cells, str) else line(number, **cells))
        if not good:
            bad.add(number)
    return written, bad
