"""The linked-table attack: an attacker who joins all tables finds nobody below k or l; the verifier finds planted bugs."""

import random
from collections import Counter, defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest

from reticent import Policy, anonymize, audit, verify
from reticent.errors import GuaranteeError
from reticent.publication import linked as publication

K, L = 4, 3
POLICY = Policy.from_dict(
    {
        "version": 1,
        "person": "pid",
        "tables": {
            "patients": {"person": "pid", "key": "pid", "columns": ["born", "sex"]},
            "visits": {"person": "pid", "visit": "visit", "key": "visit", "columns": ["day", "kind"]},
            "diagnoses": {"person": "pid", "visit": "visit", "columns": ["diagnosis"]},
            "drugs": {"person": "pid", "visit": "visit", "columns": ["drug", "dose"]},
            "deaths": {"person": "pid", "columns": ["died"]},
        },
        "columns": {
            "pid": "identifier",
            "born": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
            "sex": "quasi",
            "day": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}, "transform": {"shift": 9}},
            "kind": "quasi",
            "diagnosis": "sensitive",
            "drug": "sensitive",
            "dose": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
            "died": {"role": "quasi", "hierarchy": {"dates": ["month", "year"]}},
        },
        "privacy": {"k": K, "l": L},
    }
)


def hospital(seed, people=150):
    """Persons with visits, several diagnoses and drugs each, some of no visit, some dead."""
    rng = random.Random(seed)
    tables = defaultdict(list)
    for number in range(people):
        pid = f"x{number}"
        tables["patients"].append((pid, str(rng.randint(1930, 2010)), rng.choice("fm")))
        for turn in range(rng.choice([0, 1, 1, 2, 3, 6])):
            visit = f"{pid}-{turn}"
            day = f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
            tables["visits"].append((pid, visit, day, rng.choice(["in", "out"])))
            tables["diagnoses"] += [(pid, visit, f"D{rng.randint(1, 40)}") for _ in range(rng.randint(1, 3))]
            tables["drugs"] += [(pid, visit, f"R{rng.randint(1, 30)}", "10") for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.3:
            tables["diagnoses"].append((pid, None, f"D{rng.randint(1, 40)}"))
        if rng.random() < 0.1:
            tables["deaths"].append((pid, "2024-12-01"))
    for name in tables:
        rng.shuffle(tables[name])
    heads = {
        "patients": ("pid", "born", "sex"),
        "visits": ("pid", "visit", "day", "kind"),
        "diagnoses": ("pid", "visit", "diagnosis"),
        "drugs": ("pid", "visit", "drug", "dose"),
        "deaths": ("pid", "died"),
    }
    return {
        name: pa.table(dict(zip(head, map(pa.array, zip(*tables[name], strict=True)), strict=True)))
        for name, head in heads.items()
    }


def attack(tables, quasi, sensitive):
    """The fewest persons of a joined view, and the largest share of such persons who have one value."""
    joined, values = views_of(tables, quasi, sensitive)
    shares = []
    for members in joined.values():
        for column in sensitive:
            counts = Counter(value for person in members for value in values[person][column])
            shares += [count / len(members) for count in counts.values()]
    return min(map(len, joined.values())), max(shares)


def views_of(tables, quasi, sensitive):
    """The persons of each joined view, and the sensitive values of each person."""
    views, values = defaultdict(list), defaultdict(lambda: defaultdict(set))
    for name, table in tables.items():
        for row in table.to_pylist():
            known = tuple(sorted((column, str(row[column])) for column in row if column in quasi))
            views[row["person"]].append((row.get("visit") or "", name, known))
            for column in sensitive & set(row):
                values[row["person"]][column].add(row[column])
    joined = defaultdict(list)
    for person, rows in views.items():
        course = defaultdict(list)
        for visit, name, known in rows:
            course[visit].append((name, known))
        loose = tuple(sorted(course.pop("", [])))
        joined[loose, tuple(sorted(tuple(sorted(visit)) for visit in course.values()))].append(person)
    return joined, values


@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_left_below_k_or_l(seed):
    release = anonymize(hospital(seed), POLICY)
    smallest, share = attack(release.tables, set(POLICY.quasi), set(POLICY.sensitive))
    assert smallest >= K
    assert share <= 1 / L
    assert release.tables["visits"].num_rows > 0
    assert verify(release, POLICY).holds


def test_without_classes_the_attack_finds_somebody():
    tables = {
        name: table.rename_columns(["person" if column == "pid" else column for column in table.column_names])
        for name, table in hospital(1).items()
    }
    smallest, share = attack(tables, set(POLICY.quasi), set(POLICY.sensitive))
    assert smallest == 1
    assert share == 1


def _without_a_person(tables):
    joined, _ = views_of(tables, set(POLICY.quasi), set())
    gone = min(joined.values(), key=len)[0]
    return {name: t.filter(pa.array([p != gone for p in t["person"].to_pylist()])) for name, t in tables.items()}


def _one_cell(table, column, value, row=0):
    cells = table[column].to_pylist()
    cells[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(cells, pa.string()))


@pytest.fixture(scope="module")
def release():
    return anonymize(hospital(2), POLICY)


BUGS = {
    "a person of a class is gone": _without_a_person,
    "one row more": lambda t: t | {"visits": pa.concat_tables([t["visits"].slice(1)])},
    "a finer label": lambda t: t | {"patients": _one_cell(t["patients"], "born", "1951")},
    "a finer label of a visit": lambda t: t | {"visits": _one_cell(t["visits"], "day", "2024-03-05")},
    "another column": lambda t: t | {"patients": t["patients"].append_column("pid", t["patients"]["person"])},
    "another table": lambda t: t | {"more": t["patients"]},
    "a table less": lambda t: {name: table for name, table in t.items() if name != "drugs"},
    "a visit of another": lambda t: (
        t | {"diagnoses": _one_cell(t["diagnoses"], "visit", t["visits"]["visit"][-1].as_py())}
    ),
    "a visit of nobody": lambda t: t | {"visits": _one_cell(t["visits"], "person", "p999")},
    "a person twice": lambda t: t | {"patients": pa.concat_tables([t["patients"], t["patients"].slice(0, 1)])},
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_verifier_refutes_planted_bugs(release, bug):
    assert verify(release, POLICY).holds
    # Where every class has exactly K, one person less is one too few.
    policy = Policy.from_dict(POLICY.to_dict() | {"privacy": {"k": _smallest(release), "l": L}})
    assert not verify(replace(release, tables=BUGS[bug](dict(release.tables))), policy).holds


@pytest.mark.parametrize(
    ("bug", "claim"),
    [
        ("a visit of another", "every visit in a row belongs to the person of the row"),
        ("a visit of nobody", "every person in a row is in the table of persons"),
        ("a person twice", "the table of persons lists each of them once"),
    ],
)
def test_references_are_followed(release, bug, claim):
    result = verify(replace(release, tables=BUGS[bug](dict(release.tables))), POLICY)
    assert claim in [finding.claim for finding in result.refuted]


def _smallest(release):
    return attack(release.tables, set(POLICY.quasi), set(POLICY.sensitive))[0]


@pytest.mark.parametrize("required", [K, 2], ids=["policy and release", "release alone"])
def test_a_view_of_too_few_persons_is_refuted_by_its_size_alone(required):
    """One person less, with counts to fit and no claim of l: no other check of the verifier can refute this."""
    policies = [Policy.from_dict(POLICY.to_dict() | {"privacy": {"k": k}}) for k in (K, required)]
    release = anonymize(hospital(2), policies[0], seed=1)
    assert _smallest(release) == K
    tables = _without_a_person(dict(release.tables))
    rows = {name: table.num_rows for name, table in tables.items()}
    published = sum(rows.values())
    records = replace(release.records, published=published, suppressed=release.records.input - published)
    fewer = replace(release, tables=tables, records=records, explain={**release.explain, "published_rows": rows})
    assert [finding.claim for finding in verify(fewer, policies[1]).refuted] == ["k persons share every joined view"]


def test_one_value_of_everybody_is_refuted(release):
    table = release.tables["diagnoses"]
    same = table.set_column(2, "diagnosis", pa.array(["D1"] * table.num_rows))
    result = verify(replace(release, tables={**release.tables, "diagnoses": same}), POLICY)
    assert [f.where.partition(":")[0] for f in result.refuted] == ["column 'diagnosis'"]


@pytest.mark.parametrize("bug", ["value", "label", "person", "twice"])
def test_the_gate_compares_with_the_input(monkeypatch, bug):
    whole = publication.release_tables

    def broken(tables, policy, rng):
        linked = whole(tables, policy, rng)
        parts, places = dict(linked.release.tables), dict(linked.source_rows)
        if bug == "value":
            parts["diagnoses"] = _one_cell(parts["diagnoses"], "diagnosis", "D41")
        if bug == "label":
            parts["patients"] = _one_cell(parts["patients"], "sex", "x")
        if bug == "person":
            places["diagnoses"] = places["diagnoses"][::-1].copy()
        if bug == "twice":
            places["visits"] = places["visits"].copy()
            places["visits"][1] = places["visits"][0]
        return replace(linked, release=replace(linked.release, tables=parts), source_rows=places)

    monkeypatch.setattr(publication, "release_tables", broken)
    with pytest.raises(GuaranteeError, match="verifier refuted"):
        anonymize(hospital(2), POLICY)


def test_the_audit_joins_before_and_after(release):
    figures = audit(release, POLICY, original=hospital(2), seed=1).to_dict()
    (attack_,) = [one for one in figures["attacks"] if one["attack"] == "linked-tables"]
    assert figures["initial_risk"]["highest"] == 1
    assert figures["risk"]["prosecutor"]["highest"] <= 1 / K
    assert attack_["figures"]["smallest_view"] >= K
    assert attack_["highest"] <= 1 / L + 1e-6
    assert not figures["refuted"]
    same = release.tables["diagnoses"].set_column(
        2, "diagnosis", pa.array(["D1"] * release.tables["diagnoses"].num_rows)
    )
    worse = audit(replace(release, tables={**release.tables, "diagnoses": same}), POLICY, seed=1)
    assert [one.attack for one in worse.outcomes if one.refuted] == ["linked-tables"]


def test_a_person_who_is_written_otherwise_in_another_table_is_released():
    tables = hospital(3)
    tables["diagnoses"] = tables["diagnoses"].set_column(
        0, "pid", pa.array([f"{pid}\u200b " for pid in tables["diagnoses"]["pid"].to_pylist()])
    )
    release = anonymize(tables, POLICY, seed=1)
    plain = anonymize(hospital(3), POLICY, seed=1)
    assert release.records == plain.records
    assert audit(release, POLICY, original=tables, seed=1).result.holds
