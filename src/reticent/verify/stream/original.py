"""Compare a stream with its input: every line is the record at its position, and its true value is where it should be.

Guarantee: if all findings hold, each line shows the fields of the input record at its position: unchanged, at the veil's level, or
    generalized by CASTLE. Plain cells agree and, under CASTLE, the value. The true value is among the candidates of its group;
    under the veil it is omitted for about a tenth of the records at most, and first events have the stratum of their fields.
    An attacker who knows a person's quasi-identifiers sees classes of CASTLE with as many persons and values as claimed.
Not covered: an input without the lines that the stream could not read: positions are those of the input as sent.
Cost: one pass over the lines, their fields in memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from reticent.arrays import Bools
from reticent.policy import Policy
from reticent.verify.groups import arrow_codes, as_text, encode_column, encode_table, number_rows
from reticent.verify.labels.coverage import stands_for
from reticent.verify.original.persons import Input, cells_equal, distinct_tuples, matching_sizes
from reticent.verify.published import Published, cell_text, text_table
from reticent.verify.requirements import check_size, policy_requirements
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.variants import canonical_text, merge_person_names
from reticent.verify.veil.original import publishable_labels, strata_of_fields
from reticent.verify.veil.possible_sets import PossibleSets
from reticent.verify.veil.true_values import true_value_codes

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})([.][0-9]+)?")
_ORIGIN = "every published record comes from the input"
_MOST, _DRIFT = 0.1, 6.0
MISSING_NOTE = "{:,} of {:,} records of the input are not in the stream: pending, dead letters, or lost."


def compare_with_original(releases: Sequence[Published], policy: Policy, original: Input) -> VerificationResult:
    """Compare the files of a stream with its input."""
    groups: dict[str, frozenset[str]] = {}
    records = [
        line
        for release in releases
        if release.stream_file is not None
        for line in _iter_records(release.stream_file, groups)
    ]
    table = merge_person_names(original.table, policy.person)
    absent = {*policy.quasi, *policy.plain, *policy.sensitive, *filter(None, [policy.person])} - set(table.column_names)
    if absent:
        return VerificationResult(
            (), (), (f"comparison with the original: it lacks {len(absent)} columns of the policy",)
        )
    seqs = np.array([line["seq"] for line in records], dtype=np.int64)
    inside = (seqs >= 0) & (seqs < table.num_rows)
    rows = [line for line, fits in zip(records, inside.tolist(), strict=True) if fits]
    source = table.take(pa.array(seqs[inside]))
    wrong = ~_rows_fit(rows, source, policy)
    findings = [none_of(_ORIGIN, int(wrong.sum()) + int((~inside).sum()))]
    findings += _check_values(rows, source, policy, groups, _veil_metadata(releases))
    if rows and "sensitive" in rows[0] and policy.person is not None and not wrong.any():
        findings += _check_persons(rows, source, policy)
    missing = table.num_rows - len(np.unique(seqs[inside]))
    return VerificationResult(tuple(findings), (MISSING_NOTE.format(missing, table.num_rows),) if missing else ())


def _iter_records(path: Path, groups: dict[str, frozenset[str]]) -> Iterator[dict[str, Any]]:
    """Yield the tuples and records of a file; collect the candidates of groups. Malformed lines are a finding elsewhere."""
    with path.open("rb") as file:
        for line in file:
            try:
                read = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(read, dict):
                continue
            if read.get("type") == "group" and isinstance(read.get("candidates"), list):
                groups[str(read.get("group"))] = frozenset(cell_text(value) or "" for value, *_ in read["candidates"])
            elif type(read.get("seq")) is int and isinstance(read.get("quasi"), dict):
                yield read


def _veil_metadata(releases: Sequence[Published]) -> Mapping[str, Any] | None:
    return next((release.metadata["veil"] for release in releases if "veil" in release.metadata), None)


def _column(rows: list[dict[str, Any]], part: str, name: str) -> pa.ChunkedArray:
    cells = [line.get(part) for line in rows]
    shown = [cell_text(cell.get(name)) if isinstance(cell, dict) else None for cell in cells]
    return encode_column(pa.chunked_array([pa.array(shown, pa.string())]))


def _rows_fit(rows: list[dict[str, Any]], source: pa.Table, policy: Policy) -> Bools:
    fit = np.ones(len(rows), dtype=np.bool_)
    for part, names in (("quasi", policy.quasi), ("plain", policy.plain)):
        for name in names if rows else ():
            if policy.columns[name].transform is not None:
                continue  # a pseudonym or a shifted date: derived with the key
            cell, label = encode_column(source[name]), _column(rows, part, name)
            sent = cells_equal(cell, label) | cells_equal(_stream_notation(cell, source[name]), label)
            if part == "quasi" and "sensitive" in rows[0]:
                sent |= stands_for(cell, label, policy, name)
            elif part == "quasi" and policy.columns[name].level and "candidates" in rows[0]:
                sent = _at_level(cell, label, policy, name)
            if pa.types.is_integer(source[name].type):  # 12.0 in place of 12 could carry a message
                shown = (line.get(part) for line in rows)
                sent &= np.array(
                    [isinstance(cells, dict) and type(cells.get(name)) is not float for cells in shown], dtype=np.bool_
                )
            fit &= sent
    return fit


def _at_level(cell: pa.ChunkedArray, label: pa.ChunkedArray, policy: Policy, name: str) -> Bools:
    """Return whether each cell is at the level that the veil publishes: a coarser cell could disclose the value."""
    (value, values), (code, labels) = arrow_codes(cell), arrow_codes(label)
    nodes, texts = (
        publishable_labels(policy, name, values.to_pylist(), policy.columns[name].level, climbs=False),
        labels.to_pylist(),
    )
    return np.array([texts[at] in nodes[of] for at, of in zip(code, value, strict=True)], dtype=np.bool_)


def _stream_notation(cell: pa.ChunkedArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts that are numbers in the notation of a stream: 12.50 is 12.5, -0 is 0. Numbers have 64 bits."""
    if pa.types.is_floating(column.type):
        return encode_column(column.cast(pa.float64()))
    if not pa.types.is_string(column.type):
        return cell
    coded = cell.combine_chunks()
    words = [_number_notation(word) for word in coded.dictionary.to_pylist()]
    return encode_column(pa.chunked_array([pa.array(words, pa.string()).take(coded.indices)]))


def _number_notation(word: str | None) -> str | None:
    if word is None or _NUMBER.fullmatch(word) is None:
        return word
    return cell_text(float(word)) if "." in word else str(int(word))


def _check_values(
    rows: list[dict[str, Any]],
    source: pa.Table,
    policy: Policy,
    groups: Mapping[str, frozenset[str]],
    metadata: Mapping[str, Any] | None,
) -> list[Finding]:
    name = policy.sensitive[0]
    fold = canonical_text if policy.columns[name].normalize else str
    true_values = [fold(cell_text(value) or "") for value in source[name].to_pylist()]
    if rows and "candidates" in rows[0]:
        return _check_offers(rows, source, policy, metadata)
    if rows and "sensitive" in rows[0]:
        cells = (line.get("sensitive") for line in rows)
        shown = [fold(cell_text(cell.get(name) if isinstance(cell, dict) else cell) or "") for cell in cells]
        return [
            none_of(
                "every sensitive value matches the input", sum(a != b for a, b in zip(true_values, shown, strict=True))
            )
        ]
    offers = [{fold(value) for value in groups.get(str(line.get("group")), ())} for line in rows]
    omitted = sum(value not in offer for value, offer in zip(true_values, offers, strict=True))
    return [none_of("every person's true value is among the values of their group", omitted)]


def _check_offers(
    rows: list[dict[str, Any]], source: pa.Table, policy: Policy, metadata: Mapping[str, Any] | None
) -> list[Finding]:
    """Check the omissions of a veiled stream: it states no omission rate, so a tenth is the limit."""
    claim = "at most a tenth of the records omit their true value"
    if metadata is None:
        return []  # without the codebook, the domain is unknown
    try:
        line = PossibleSets(metadata).line
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):
        return []  # refuted elsewhere
    places = true_value_codes(line.domain, as_text(source[line.sensitive]), policy, line.sensitive).tolist()
    labels = [line.domain[place] if place >= 0 else None for place in places]
    omitted = sum(label not in record["candidates"] for label, record in zip(labels, rows, strict=True))
    most = _MOST * len(rows) + _DRIFT * math.sqrt(_MOST * len(rows))
    fields = strata_of_fields(line, policy, text_table(source)).tolist()
    persons = source[policy.person].to_pylist() if policy.person is not None else range(len(rows))
    first: dict[Any, int] = {}
    wrong_first = wrong_later = 0
    for record, row, person in zip(rows, fields, persons, strict=True):
        if record.get("event") == 0:
            wrong_first += record.get("stratum") != first.setdefault(person, row)
        else:  # persons seen before this input began are not checked
            wrong_later += record.get("stratum") != first.get(person, record.get("stratum"))
    return [
        Finding(claim, omitted <= most, omitted, round(most, 1), "records whose true value is omitted"),
        none_of("every first event has the stratum of its fields", wrong_first),
        none_of("later events have the stratum of the first event", wrong_later),
    ]


def _check_persons(rows: list[dict[str, Any]], source: pa.Table, policy: Policy) -> list[Finding]:
    """Check what CASTLE claims about persons, by published combination."""
    shown = pa.table({name: _column(rows, "quasi", name) for name in policy.quasi})
    classes, size = number_rows(encode_table(shown), list(policy.quasi))
    person = arrow_codes(encode_column(source[policy.person or ""]))[0]
    heads = np.bincount(distinct_tuples(classes, person)[0], minlength=size)
    value = arrow_codes(encode_column(source[policy.sensitive[0]]))[0]
    findings = []
    for rule in policy_requirements(policy, persons=True):
        if rule.model == "k":
            findings.append(check_size(heads, rule, ""))
        elif rule.model == "l" and rule.kind == "distinct":
            findings.append(check_size(matching_sizes(classes, size, person, value), rule, ""))
    return findings
