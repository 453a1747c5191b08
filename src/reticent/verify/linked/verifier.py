"""Verify linked tables: join all tables, and group the persons with the same joined view.

The check is the attack: an attacker who knows all quasi-identifiers of all records of a person joins the tables, visit by
visit, and keeps the persons who match.

Guarantee: against this attacker, every person shares the joined view with k - 1 others, and no sensitive value belongs to more
    than 1/l of them. Tables have only the policy's columns, pseudonyms are sorted numbers, references are valid, and counts
    match the tables.
Not covered: whether the rows come from the input; `compare_with_original` checks that.
Cost: one sort of the rows of each table.
Reference: docs/linked.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Int64s
from reticent.policy import Policy
from reticent.policy.settings.linked import Layout
from reticent.verify.folder.metadata import is_count
from reticent.verify.generalized import check_counts
from reticent.verify.groups import codes
from reticent.verify.labels.coverage import stands_for
from reticent.verify.labels.validity import check_labels
from reticent.verify.linked.date_shifts import DateShifts
from reticent.verify.published import Published, text_table
from reticent.verify.requirements import policy_requirements, requirements
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.variants import canonical_text, check_variants, merge_person_names

SHAPE = "linked"
VIEW = "joined view"
_PERSON, _VISIT = "person", "visit"
_DAY = re.compile(r"\s*(\d{4}[-/.]\d{2}[-/.]\d{2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})")
_COMPACT = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_STANDARDS = ("tables", "fhir", "omop")
_SYSTEM = re.compile(r"http://[a-zA-Z0-9./-]{1,60}")
_ROWS = {"input_rows", "published_rows"}
_EXPLAIN = {"persons", "classes", *_ROWS}


def verify_release(release: Published, policy: Policy) -> VerificationResult:
    """Recompute every claim of a release of linked tables."""
    if policy.tables is None:
        return VerificationResult((Finding("the policy describes several tables", holds=False),))
    layout = layout_of(policy)
    columns = [(table, name) for table, one in layout.items() for name in one.columns]
    findings = [_check_columns(release, layout), _check_explain(release, layout), _check_dates(release, layout, policy)]
    findings.append(_check_metadata(release, layout))
    if not all(finding.holds for finding in findings):
        return VerificationResult(tuple(findings))
    findings += [
        *_check_references(release.tables, layout),
        *_check_pseudonyms(release, layout),
        _check_row_order(release.tables),
    ]
    for name, values in ((name, codes(release.tables[table][name])[1]) for table, name in columns):
        if name in policy.sensitive:
            findings.append(check_variants(values, f"column '{name}'"))
        if name in policy.quasi:
            findings.append(check_labels(values, policy, name, "optimal", "labels are nodes of the hierarchy"))
    if not all(finding.holds for finding in findings):
        return VerificationResult(tuple(findings))
    persons, kinds = joined_view(release.tables, policy)
    sizes = np.bincount(kinds)
    required = (*requirements(release.claims), *policy_requirements(policy, persons=True))
    for k in {math.ceil(one.numbers[-1]) for one in required if one.model == "k"}:
        few = int((sizes < k).sum())
        where = f"{few} of {len(sizes)} joined views have fewer" if few else ""
        findings.append(
            Finding("k persons share every joined view", not few, int(sizes.min()) if len(sizes) else None, k, where)
        )
    findings.append(_check_explain_counts(release, len(persons), len(sizes)))
    sensitive = [(table, name) for table, name in columns if name in policy.sensitive]
    for l in {math.ceil(one.numbers[-1]) for one in required if one.model == "l"}:
        findings += [_check_diversity(release.tables[table], name, l, persons, kinds) for table, name in sensitive]
    return VerificationResult(tuple(findings))


def _check_columns(release: Published, layout: Mapping[str, Layout]) -> Finding:
    unexpected = [name for name in release.tables if name not in layout] + [
        name for name in layout if name not in release.tables
    ]
    unexpected += [
        f"{table}: {column}"
        for table, one in layout.items()
        for column in sorted(
            {*release.tables.get(table, pa.table({})).column_names} ^ {*one.link_columns, *one.columns}
        )
        if table in release.tables
    ]
    return none_of("tables and columns match the policy", len(unexpected), ", ".join(unexpected[:3]))


def _check_explain(release: Published, layout: Mapping[str, Layout]) -> Finding:
    """Check that `explain` contains only counts, by table for rows."""
    odd = [
        key
        for key, value in release.explain.items()
        if key not in _EXPLAIN or not (_is_count_by_table(value, layout) if key in _ROWS else is_count(value))
    ]
    return none_of("explain contains only counts", len(odd))


def _is_count_by_table(value: object, layout: Mapping[str, Layout]) -> bool:
    return isinstance(value, dict) and set(value) <= set(layout) and all(map(is_count, value.values()))


def _check_metadata(release: Published, layout: Mapping[str, Layout]) -> Finding:
    """Check that linked.json names only a standard, columns of the policy, and addresses of code systems."""
    document = release.metadata.get(SHAPE, {})
    tables, systems = document.get("tables", {}), document.get("systems", {})
    columns = {name for one in layout.values() for name in one.columns}
    odd = len(set(document) - {"standard", "version", "tables", "systems"})
    odd += document.get("standard", "tables") not in _STANDARDS or document.get("version", "R4") not in ("R4", "R5")
    odd += sum(name not in layout or not set(parts) <= columns for name, parts in tables.items())
    odd += sum(name not in columns or not _SYSTEM.fullmatch(str(address)) for name, address in systems.items())
    return none_of("linked.json contains only known entries", odd)


def _check_dates(release: Published, layout: Mapping[str, Layout], policy: Policy) -> Finding:
    """Check that only quasi-identifiers have dates: an attacker who knows the days of a visit could find its rows."""
    dated = [
        name
        for table, one in layout.items()
        for name in one.columns
        if name not in policy.quasi
        and name in release.tables.get(table, pa.table({})).column_names
        and _has_dates(codes(release.tables[table][name])[1])
    ]
    return none_of("only quasi-identifiers contain dates", len(dated), ", ".join(dated[:3]))


def _has_dates(values: Sequence[str | None]) -> bool:
    """Return whether any value is a date, or most values are dates without separators."""
    compact = sum(_COMPACT.match(value or "") is not None for value in values)
    return 2 * compact > len(values) or any(_DAY.match(value or "") for value in values)


def _check_references(tables: Mapping[str, pa.Table], layout: Mapping[str, Layout]) -> list[Finding]:
    """Check that every referenced person and visit exists once, and that a visit belongs to one person."""
    findings = []
    people = next((tables[name] for name, one in layout.items() if one.of_persons), None)
    visits = next((tables[name] for name, one in layout.items() if one.of_visits), None)
    for name, table in (("persons", people), ("visits", visits)):
        if table is not None:
            keys = table[_PERSON if name == "persons" else _VISIT]
            repeats = len(keys) - pc.count_distinct(keys, mode="only_valid").as_py()
            findings.append(none_of(f"the table of {name} lists each of them once", repeats))
    unknown = foreign = 0
    for table in tables.values():
        owners = table[_PERSON]
        unknown += owners.null_count
        if people is not None:
            unknown += _count_true(pc.invert(pc.is_in(owners.drop_null(), value_set=people[_PERSON])))
        if visits is not None and _VISIT in table.column_names:
            home = visits[_PERSON].take(pc.index_in(table[_VISIT], value_set=visits[_VISIT].combine_chunks()))
            alike = pc.fill_null(pc.equal(home, owners), fill_value=False)
            foreign += _count_true(pc.and_(pc.is_valid(table[_VISIT]), pc.invert(alike)))
    findings.append(none_of("every person in a row is in the table of persons", unknown))
    return [*findings, none_of("every visit in a row belongs to the person of the row", foreign)]


def _check_pseudonyms(release: Published, layout: Mapping[str, Layout]) -> list[Finding]:
    """Check row counts, and that pseudonyms are a letter and a number of fixed length, which cannot carry a message."""
    tables, came = release.tables, release.counts.get("input")
    findings = check_counts(release.counts, sum(table.num_rows for table in tables.values()), None)
    for letter, column in (("p", _PERSON), ("v", _VISIT)):
        names = [tables[name][column] for name, one in layout.items() if column in one.link_columns]
        texts = pc.unique(pa.chunked_array([chunk for name in names for chunk in name.chunks], pa.string())).drop_null()
        plain = texts.filter(pc.match_substring_regex(texts, f"^{letter}[0-9]{{1,15}}$"))
        numbers = pc.utf8_slice_codeunits(plain, 1).cast(pa.int64()).to_numpy()
        odd = len(texts) - int(((numbers > 0) & (numbers <= (came if isinstance(came, int) else 0))).sum())
        odd += max(0, len(pc.unique(pc.utf8_length(texts))) - 1)
        findings.append(
            none_of(f"every {column} pseudonym is a letter and a number, at most the number of input rows", odd)
        )
    return findings


def _check_row_order(tables: Mapping[str, pa.Table]) -> Finding:
    """Check that rows are sorted by person and visit pseudonyms, rows without a visit first, so that order discloses nothing."""
    falls = 0
    for table in tables.values():
        keys = [codes(table[name]) for name in (_PERSON, _VISIT) if name in table.column_names]
        ranks = [np.argsort(np.argsort([text or "" for text in texts]))[code] for code, texts in keys]
        places = np.lexsort((np.arange(table.num_rows), *reversed(ranks)))
        falls += int((places != np.arange(table.num_rows)).sum())
    return none_of("rows are sorted by their pseudonyms", falls)


def _check_explain_counts(release: Published, persons: int, views: int) -> Finding:
    """Check that `explain` agrees with tables and manifest: rows by table, number of classes and of persons."""
    explained, rows = release.explain, {name: table.num_rows for name, table in release.tables.items()}
    came, classes, everybody = (
        explained.get("input_rows", {}),
        explained.get("classes", views),
        explained.get("persons", persons),
    )
    odd = int(explained.get("published_rows", rows) != rows)
    odd += int(bool(came) and sum(came.values()) != release.counts.get("input"))
    odd += int(bool(came) and any(came.get(name, 0) < count for name, count in rows.items()))
    odd += int(not views <= classes <= everybody) + int(not persons <= everybody <= release.counts.get("input", 0))
    return none_of("the counts in explain match the tables", odd)


def _count_true(flags: pa.ChunkedArray) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _owners(table: pa.Table, persons: Mapping[str, int]) -> Int64s:
    """The number of each row's person."""
    named = pa.array(list(persons), pa.string())
    return np.asarray(pc.index_in(table[_PERSON], value_set=named).to_numpy()).astype(np.int64)


def layout_of(policy: Policy) -> Mapping[str, Layout]:
    """Return the tables of the policy with their released columns."""
    return {} if policy.tables is None else policy.tables.layout(policy.released)


def joined_view(tables: Mapping[str, pa.Table], policy: Policy) -> tuple[dict[str, int], Int64s]:
    """Return the persons by number, and the joined view of each; persons who agree in all tables share a view number.

    Rows are compared as a multiset within their visit, visits as a multiset within their person. Tables that the policy
    lists as uncounted are not part of the view.
    """
    names = dict.fromkeys(name for table in tables.values() for name in table[_PERSON].to_pylist())
    persons = {name: number for number, name in enumerate(names)}
    visits: dict[tuple[str, str], list[tuple[int, bytes]]] = {}
    loose: dict[str, list[tuple[int, bytes]]] = {name: [] for name in persons}
    uncounted = policy.tables.uncounted if policy.tables is not None else ()
    for number, one in enumerate(one for one in layout_of(policy).values() if one.name not in uncounted):
        table = tables[one.name]
        quasi = [name for name in one.columns if name in policy.quasi]
        rows = _texts(table, quasi)
        keys = table[_VISIT].to_pylist() if _VISIT in table.column_names else [None] * table.num_rows
        for person, visit, row in zip(table[_PERSON].to_pylist(), keys, rows, strict=True):
            home = loose[person] if visit is None else visits.setdefault((person, visit), [])
            home.append((number, row))
    courses: dict[str, list[tuple[tuple[int, bytes], ...]]] = {}
    for (person, _), parts in visits.items():
        courses.setdefault(person, []).append(tuple(sorted(parts)))
    views: dict[object, int] = {}
    kinds = [
        views.setdefault((tuple(sorted(loose[name])), tuple(sorted(courses.get(name, [])))), len(views))
        for name in persons
    ]
    return persons, np.array(kinds, dtype=np.int64)


def _texts(table: pa.Table, quasi: list[str]) -> list[bytes]:
    """Return the quasi-identifiers of each row as one text; a missing value differs from every text."""
    rows = [b""] * table.num_rows
    for name in quasi:
        code, values = codes(table[name])
        words = [b"-" if value is None else b"=%d:%s" % (len(value.encode()), value.encode()) for value in values]
        rows = [row + words[place] for row, place in zip(rows, code.tolist(), strict=True)]
    return rows


def value_shares(
    table: pa.Table, name: str, persons: Mapping[str, int], kinds: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Return for each view and value of a column: the view, its persons with the value, and all its persons.

    Variants of a value count as one value. A person counts once per value.
    """
    code, values = codes(table[name])
    variants: dict[str, int] = {}
    one = np.array(
        [variants.setdefault(canonical_text(value) or "", len(variants)) for value in values], dtype=np.int64
    )
    owner = _owners(table, persons)
    width = max(1, len(variants))
    pairs = np.unique(owner * width + (one[code] if len(code) else code))
    views, holders = np.unique(kinds[pairs // width] * width + pairs % width, return_counts=True)
    return views // width, holders, np.bincount(kinds)[views // width]


def _check_diversity(table: pa.Table, name: str, l: int, persons: Mapping[str, int], kinds: Int64s) -> Finding:
    """Check the largest share of persons with the same view who have a value, over all values and views."""
    claim, where = f"no value belongs to more than 1/{l} of the persons with the same joined view", f"column '{name}'"
    _, holders, sizes = value_shares(table, name, persons, kinds)
    if not len(holders):
        return Finding(claim, holds=True, required=1 / l, where=where)
    few = int((holders * l > sizes).sum())
    where += f": {few} values exceed this in their joined view" if few else ""
    return Finding(claim, few == 0, round(float((holders / sizes).max()), 12), 1 / l, where)


def view_table(release: Published, policy: Policy) -> pa.Table:
    """Return one row per person: the number of the joined view, and the quasi-identifiers of the table of persons."""
    persons, kinds = joined_view(release.tables, policy)
    whole = pa.table({VIEW: pa.array([str(kind) for kind in kinds.tolist()])})
    home = next((release.tables[name] for name, one in layout_of(policy).items() if one.of_persons), None)
    if home is None:
        return whole
    rows = {key: row for row, key in enumerate(home[_PERSON].to_pylist())}
    picked = home.take(pa.array([rows[key] for key in persons], pa.int64()))
    for name in (name for name in home.column_names if name in policy.quasi):
        whole = whole.append_column(name, picked[name])
    return whole


def original_views(tables: Mapping[str, pa.Table], policy: Policy) -> Int64s:
    """Count the persons of each joined view of the unchanged input; rows without a person are ignored."""
    named = {}
    for name in layout_of(policy):
        table = text_table(merge_person_names(tables[name], policy.person))
        names = [_PERSON if column == policy.person else column for column in table.column_names]
        table = table.rename_columns(names)
        named[name] = table.filter(pc.is_valid(table[_PERSON]))
    return np.bincount(joined_view(named, policy)[1])


def compare_with_original(
    release: Published, policy: Policy, original: Mapping[str, pa.Table], source_rows: Mapping[str, Int64s]
) -> VerificationResult:
    """Check that every published row is a generalized row of the input, used once, with its links kept."""
    findings = []
    names: dict[str, list[pa.Table]] = {_PERSON: [], _VISIT: []}
    everybody = pa.chunked_array([chunk for table in release.tables.values() for chunk in table[_PERSON].chunks])
    persons = {key: number for number, key in enumerate(pc.unique(everybody).to_pylist())}
    shifted = {name: one.transform.shift for name, one in policy.columns.items() if one.transform}
    moves = DateShifts(max((days or 0 for days in shifted.values()), default=0), len(persons))
    for name, one in layout_of(policy).items():
        rows, at = release.tables[name], source_rows[name]
        source = original[name].select([str(policy.person), *one.link_columns[1:], *one.columns])
        source = text_table(merge_person_names(source, policy.person)).take(pa.array(at))
        wrong = len(at) - len(np.unique(at)) + abs(len(at) - rows.num_rows)
        findings.append(none_of(f"{name}: every published record comes from the input", wrong))
        if wrong:
            continue
        findings.append(
            none_of(f"{name}: every cell matches its cell in the input", _count_wrong_cells(source, rows, policy, one))
        )
        names[_PERSON].append(_pairs(rows[_PERSON], source[str(policy.person)]))
        if _VISIT in one.link_columns:
            names[_VISIT].append(_pairs(rows[_VISIT], source[_VISIT]))
        owners = _owners(rows, persons)
        for column in (column for column in one.columns if column in shifted):
            moves.add(owners, source[column], rows[column])
    findings += [
        none_of(f"every {what} has one pseudonym, and no two share one", _count_conflicts(parts))
        for what, parts in names.items()
        if parts
    ]
    if shifted:
        findings.append(none_of("all dates of a person are shifted by the same number of days", moves.broken))
    return VerificationResult(tuple(findings))


def _count_wrong_cells(source: pa.Table, rows: pa.Table, policy: Policy, layout: Layout) -> int:
    wrong = np.zeros(rows.num_rows, dtype=np.bool_)
    for name in layout.columns:
        if policy.columns[name].transform is not None:
            continue  # a shifted date: `DateShifts` checks all of them together
        if name in policy.quasi:
            wrong |= ~stands_for(source[name], rows[name], policy, name)
        else:
            (value, values), (label, labels) = codes(source[name]), codes(rows[name])
            given, published = (
                np.array([canonical_text(text) for text in texts], dtype=object) for texts in (values, labels)
            )
            wrong |= np.asarray(given[value] != published[label], dtype=np.bool_)
    return int(wrong.sum())


def _pairs(names: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.Table:
    """Return the distinct pairs of a pseudonym and a key."""
    pairs = pa.table({"name": names, "key": keys}).filter(pc.is_valid(names))
    return pairs.group_by(["name", "key"], use_threads=False).aggregate([])


def _count_conflicts(parts: list[pa.Table]) -> int:
    """Count pseudonyms with several keys or none, and keys with several pseudonyms."""
    pairs = pa.concat_tables(parts).group_by(["name", "key"], use_threads=False).aggregate([])
    known = [pc.count_distinct(pairs[name], mode="only_valid").as_py() for name in ("name", "key")]
    return sum(pairs.num_rows - count for count in known)
