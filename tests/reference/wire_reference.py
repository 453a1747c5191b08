"""Records from JSON and CSV, read slowly: the reference implementation of the core's parser."""

from __future__ import annotations

import json
import math
import re
import unicodedata

import orjson

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def objects(values, policy, numbers=()):
    """Per value the reason why it is no record, or text and JSON of every column."""
    return [_object(value, policy, numbers) for value in values]


def ndjson(data, policy, numbers=()):
    return objects([line for line in data.split(b"\n") if line and not line.isspace()], policy, numbers)


def _object(value, policy, numbers):
    try:
        whole = orjson.loads(b"null" if value is None else value)
    except orjson.JSONDecodeError:
        return "not JSON"
    if type(whole) is not dict:
        return "not a JSON object"
    pairs = json.loads(value.decode(), object_pairs_hook=list)
    names = [name for name, _ in pairs]
    if not set(names) <= set(policy.columns):
        return "a field without a role in the policy"
    if len(set(names)) < len(names):
        return "a field twice"
    if set(names).isdisjoint(policy.released):
        return "none of the policy's columns"
    for _, cell in pairs:
        if unfit(cell):
            return unfit(cell)
    return checked({name: (text(cell), token(cell)) for name, cell in pairs}, policy, numbers)


def checked(cells, policy, numbers):
    marked = {name: (None, None) for name, (cell, _) in cells.items() if cell in policy.missing}
    record = {name: (cells | marked).get(name, (None, None)) for name in policy.columns}
    if policy.person is not None and record[policy.person][0] in (None, ""):
        return "no person"
    for name in numbers:
        cell = record[name][0]
        if cell is None or not NUMBER.fullmatch(cell) or not math.isfinite(float(cell)):
            return f"no number in '{name}'"
    if policy.person is not None:
        person, json_text = record[policy.person]
        record[policy.person] = named(person), json_text
        if not named(person):
            return "no person"
    return record


def named(word):
    """One form per name: no spaces around it, nothing invisible, one Unicode form, whole numbers without a fraction."""
    unseen = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")
    letters = [
        c
        for c in unseen.sub("", unicodedata.normalize("NFKC", word))
        if c.isspace() or unicodedata.category(c) not in ("Cf", "Cc")
    ]
    letters = list(unicodedata.normalize("NFKC", "".join(letters)))
    name = " ".join("".join(letters).split())
    return name.partition(".")[0] if re.fullmatch(r"[+-]?[0-9]+[.]0+", name) else name


def unfit(cell):
    if type(cell) in (int, float):
        least = -(2**63) if type(cell) is int else math.nextafter(-(2.0**63), 0)
        return None if least <= cell < 2**63 else "a number too large to keep"
    return "a field that is not a single value" if isinstance(cell, list | dict) else None


def text(cell):
    if cell is None or type(cell) is str:
        return cell
    if type(cell) is float and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return orjson.dumps(cell).decode()


def token(cell):
    return None if cell is None else orjson.dumps(cell).decode()


def csv(data, header, delimiter, policy):
    """Per record the reason why it is none, or the text of every column; and where a quote is opened that nobody closes."""
    records = []
    for cells, start, end in _records(data, ord(delimiter)):
        if cells is None:
            return records, start
        records.append(_line(cells, data[start:end], header, policy))
    return records, len(data)


def _line(cells, raw, header, policy):
    try:
        raw.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    if len(cells) != len(header):
        return f"{len(cells)} cells where the header has {len(header)}"
    texts = [None if cell is None else cell.decode() for cell in cells]
    return checked({name: (cell, None) for name, cell in zip(header, texts, strict=True)}, policy, ())


def _records(data, delimiter):
    """Byte by byte: the cells of each record, None where a quote stays open, and where it begins and ends."""
    at = 0
    while at < len(data):
        if data[at] in b"\r\n":
            at += 1
            continue
        start, cells, more = at, [], True
        while more:
            cell, at, more = _cell(data, at, delimiter)
            cells = None if cell is False or cells is None else [*cells, cell]
        yield cells, start, at
        at += data[at : at + 2] == b"\r\n" or 0
        at += 1


def _cell(data, at, delimiter):
    quoted, cell = data[at : at + 1] == b'"', bytearray()
    if quoted:
        at += 1
        while True:
            if at >= len(data):
                return False, at, False
            if data[at : at + 2] == b'""':
                at += 2
                cell += b'"'
            elif data[at] == ord('"'):
                at += 1
                break
            else:
                cell.append(data[at])
                at += 1
    while at < len(data) and data[at] not in b"\r\n" and data[at] != delimiter:
        cell.append(data[at])
        at += 1
    more = at < len(data) and data[at] == delimiter
    return (bytes(cell) if quoted or cell else None), at + more, more
