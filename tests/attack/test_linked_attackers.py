"""Attackers of linked tables who use what is not a cell: order, numbers of rows, spans of days, names of resources, files."""

import datetime as dt
import json
import random
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from reticent import Policy, anonymize, verify
from reticent.connectors.fhir.write import write_fhir_release
from reticent.errors import GuaranteeError, PolicyError
from reticent.publication import linked as publication

K, L, PEOPLE = 4, 2, 120
DATES = {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}, "transform": {"shift": 15}}
RULES = {
    "version": 1,
    "person": "pid",
    "tables": "fhir",
    "columns": {
        "pid": "identifier",
        "birth_date": {"role": "quasi", "hierarchy": {"dates": ["year", "decade"]}},
        "sex": "quasi",
        "death_date": DATES,
        "encounter_class": "quasi",
        "admission_date": DATES,
        "discharge_date": DATES,
        "diagnosis": "sensitive",
        "onset_date": DATES,
        "medication": "sensitive",
    },
    "privacy": {"k": K, "l": L},
}
POLICY = Policy.from_dict(RULES)
PATHS = {
    kind: {name: POLICY.tables.paths[name].write_path for name in one.columns}
    for kind, one in POLICY.tables.layout(POLICY.released).items()
}


def hospital(seed):
    """Persons whose visits come at spans of their own; the input is sorted by birth, visits by day, diagnoses by rank."""
    rng = random.Random(seed)
    rows = defaultdict(list)
    for number in range(PEOPLE):
        pid, born = f"x{number:03d}", dt.date(1930 + number // 2, 1, 1)
        died = str(dt.date(2025, 6, 1) + dt.timedelta(rng.randrange(90))) if rng.random() < 0.06 else None
        rows["Patient"].append((pid, str(born), rng.choice(("male", "female")), died))
        day = dt.date(2024, 1, 1) + dt.timedelta(rng.randrange(60))
        for turn in range(rng.choice((1, 2, 2, 3, 5))):
            visit, stay = f"{pid}-{turn}", rng.randrange(9)
            end = day + dt.timedelta(stay)
            rows["Encounter"].append((pid, visit, rng.choice(("IMP", "AMB")), str(day), str(end)))
            for place in range(rng.randint(1, 3)):
                rows["Condition"].append((pid, visit, f"D{10 * place + rng.randrange(10)}", str(day)))
            rows["MedicationRequest"] += [(pid, visit, f"R{rng.randrange(25)}") for _ in range(rng.randrange(3))]
            day = end + dt.timedelta(rng.randrange(3, 90))
    heads = {
        "Patient": ("pid", "birth_date", "sex", "death_date"),
        "Encounter": ("pid", "visit", "encounter_class", "admission_date", "discharge_date"),
        "Condition": ("pid", "visit", "diagnosis", "onset_date"),
        "MedicationRequest": ("pid", "visit", "medication"),
    }
    return {
        kind: pa.table(
            {
                name: pa.array(cells, pa.string())
                for name, cells in zip(head, zip(*rows[kind], strict=True), strict=True)
            }
        )
        for kind, head in heads.items()
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A release and what a recipient gets: the resources in the order of their files."""
    folder = tmp_path_factory.mktemp("attackers")
    standard = {"standard": "fhir", "version": "R4", "tables": PATHS}
    passed = publication.publish(hospital(3), POLICY, standard=standard)
    passed.release.to_dir(folder / "release")
    write_fhir_release(folder / "release", folder / "out")
    write_fhir_release(folder / "release", folder / "out.json")
    files = sorted((folder / "out").iterdir())
    return passed.release, [json.loads(line) for file in files for line in file.read_text().splitlines()], folder


def views_of(resources):
    """What an attacker learns about each patient from all resources that join, in several views."""
    home = {r["id"]: r for r in resources if r["resourceType"] == "Encounter"}
    by_patient = defaultdict(lambda: defaultdict(list))
    for one in resources:
        if one["resourceType"] in PATHS and one["resourceType"] != "Patient":
            by_patient[one["subject"]["reference"]][one["resourceType"]].append(one)
    views = {}
    for patient in (r for r in resources if r["resourceType"] == "Patient"):
        mine = by_patient[f"Patient/{patient['id']}"]
        starts = sorted(
            (label(e["period"], "start"), label(e["period"], "end"), label(e, "class")) for e in mine["Encounter"]
        )
        per_visit = Counter((one.get("encounter") or {}).get("reference") for one in mine["Condition"])
        onsets = sorted(
            (label(home_of(home, one)["period"], "start"), label(one, "onsetDateTime")) for one in mine["Condition"]
        )
        views[patient["id"]] = {
            "person": (label(patient, "birthDate"), label(patient, "gender"), label(patient, "deceasedDateTime")),
            "visits and their days": tuple(starts),
            "spans between visits": tuple(span(a[0], b[0]) for a, b in pairwise(starts)),
            "days in bed": tuple(span(a, b) for a, b, _ in starts),
            "weekdays": tuple(weekday(a) for a, _, _ in starts),
            "numbers of rows": tuple(sorted((kind, len(rows)) for kind, rows in mine.items())),
            "diagnoses of each visit": tuple(sorted(per_visit.values())),
            "onsets with admissions": tuple(onsets),
        }
    return views


def home_of(home, resource):
    return home[resource["encounter"]["reference"].partition("/")[2]]


def label(resource, name):
    """What an attacker sees of an element: its value, or the extensions in its place."""
    return json.dumps(resource.get(name, resource.get(f"_{name}")), sort_keys=True)


def span(first, second):
    try:
        days = [dt.date.fromisoformat(json.loads(text)) for text in (first, second)]
    except (TypeError, ValueError):
        return None
    return (days[1] - days[0]).days


def weekday(text):
    return None if span(text, text) is None else dt.date.fromisoformat(json.loads(text)).weekday()


def test_no_view_singles_anybody_out(published):
    _, resources, _ = published
    views = views_of(resources)
    assert len(views) == PEOPLE
    for view in next(iter(views.values())):
        alike = Counter(person[view] for person in views.values())
        assert min(alike.values()) >= K, view
    together = Counter(tuple(sorted(person.items())) for person in views.values())
    assert min(together.values()) >= K


def test_no_value_is_that_of_too_many_who_look_alike(published):
    _, resources, _ = published
    views, values = views_of(resources), defaultdict(set)
    for one in resources:
        code = one.get("code", one.get("medicationCodeableConcept"))
        if one["resourceType"] in ("Condition", "MedicationRequest"):
            values[one["subject"]["reference"].partition("/")[2]].add(json.dumps(code))
    groups = defaultdict(list)
    for person, seen in views.items():
        groups[tuple(sorted(seen.items()))].append(person)
    for members in groups.values():
        counts = Counter(value for person in members for value in values[person])
        assert max(counts.values(), default=0) * L <= len(members)


def test_the_same_attack_on_the_input_finds_nearly_everybody():
    tables = hospital(3)
    day = dict(zip(*(tables["Encounter"][name].to_pylist() for name in ("visit", "admission_date")), strict=True))
    visits = defaultdict(list)
    for pid, visit in zip(*(tables["Encounter"][name].to_pylist() for name in ("pid", "visit")), strict=True):
        visits[pid].append(dt.date.fromisoformat(day[visit]))
    spans = Counter(tuple((b - a).days for a, b in pairwise(sorted(days))) for days in visits.values())
    assert sum(count for key, count in spans.items() if key and count == 1) > PEOPLE // 2


def test_names_and_order_disclose_nothing_about_the_input(published):
    """Births rise with the input's rows, diagnoses of a visit come by rank: neither is to be seen in names or order."""
    tables = hospital(3)
    standard = {"standard": "fhir", "version": "R4", "tables": PATHS}
    true = {row["diagnosis"]: int(row["diagnosis"][1:]) // 10 for row in tables["Condition"].to_pylist()}
    births, firsts = [], []
    for seed in range(12):
        release = publication.publish(tables, POLICY, seed=seed, standard=standard).release
        persons = release.tables["Patient"]
        decade = [row["birth_date"][:4] if row["birth_date"] != "*" else "1960" for row in persons.to_pylist()]
        number = [int(row["person"][1:]) for row in persons.to_pylist()]
        assert number == sorted(number)
        births.append(np.corrcoef([int(year) for year in decade], number)[0, 1])
        by_visit = defaultdict(list)
        for row in release.tables["Condition"].to_pylist():
            by_visit[row["visit"]].append(true[row["diagnosis"]])
        firsts += [places[0] < places[-1] for places in by_visit.values() if places[0] != places[-1]]
    assert abs(np.mean(births)) < 4 / np.sqrt(12 * PEOPLE)
    assert abs(np.mean(firsts) - 0.5) < 4 * 0.5 / np.sqrt(len(firsts))


def test_addresses_and_files_hold_pseudonyms_only(published):
    _, resources, folder = published
    bundle = json.loads((folder / "out.json").read_text())
    for entry in bundle["entry"]:
        one = entry["resource"]
        assert entry["fullUrl"] == f"https://release.invalid/fhir/{one['resourceType']}/{one['id']}"
    numbers = defaultdict(list)
    for one in resources:
        if one["resourceType"] in ("Condition", "MedicationRequest"):
            numbers[one["resourceType"]].append((one["id"], one["subject"]["reference"]))
    for kind, rows in numbers.items():
        assert [key for key, _ in rows] == [f"{kind.lower()}-{n}" for n in range(1, len(rows) + 1)]
        assert [person for _, person in rows] == sorted(person for _, person in rows)


@pytest.mark.parametrize("role", ["sensitive", "plain"])
@pytest.mark.parametrize("column", ["onset_date", "medication_date"])
def test_a_date_is_a_quasi_identifier_or_nothing(role, column):
    change = {**RULES["columns"], column: role}
    with pytest.raises(PolicyError, match=f"'{column}' is a date"):
        Policy.from_dict(RULES | {"columns": change})


def test_a_span_of_days_is_one_too():
    stay = {"path": "Encounter.period.start", "until": "Encounter.period.end", "as": "days"}
    change = {
        "tables": {"mapping": "fhir", "columns": {"stay": stay}},
        "columns": {**RULES["columns"], "stay": "plain"},
    }
    with pytest.raises(PolicyError, match="'stay' is a date or a number of days"):
        Policy.from_dict(RULES | change)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT08:30:00", "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d", "%Y%m%d083000"])
def test_a_date_in_disguise_is_refused_too(form):
    tables = hospital(1)
    days = [dt.date.fromisoformat(day) for day in tables["Condition"]["onset_date"].to_pylist()]
    days = pa.array([f"{day:{form}}" for day in days])
    tables["Condition"] = tables["Condition"].set_column(2, "diagnosis", days)
    with pytest.raises(PolicyError, match="diagnosis contains dates"):
        anonymize(tables, POLICY)


def test_the_verifier_finds_a_date_outside_the_quasi_identifiers(published, tmp_path):
    from dataclasses import replace

    release, _, _ = published
    table = release.tables["Condition"]
    days = table.set_column(
        table.column_names.index("diagnosis"), "diagnosis", pa.array(["2024-03-05"] * table.num_rows)
    )
    result = verify(replace(release, tables={**release.tables, "Condition": days}), POLICY)
    assert "only quasi-identifiers contain dates" in [one.claim for one in result.refuted]
    more = replace(release, metadata={**release.metadata, "linked": {"standard": "fhir", "note": "x003"}})
    for source in (more, more.to_dir(tmp_path / "out")):
        assert "linked.json contains only known entries" in [one.claim for one in verify(source, POLICY).refuted]


def test_shifts_are_new_in_every_release_and_the_gate_sees_a_date_that_moved_alone(monkeypatch):
    from reticent.engine.linked.release import people_of

    def first_days(secret):
        visits = people_of(hospital(1), POLICY, secret).tables["Encounter"].columns["admission_date"]
        return [visits.values[int(code)].as_py() for code in visits.codes[:40]]

    assert first_days(b"a") == first_days(b"a")
    assert sum(a != b for a, b in zip(first_days(b"a"), first_days(b"b"), strict=True)) > 30

    whole = publication.release_tables
    tables = hospital(1)

    def alone(parts, policy, rng):
        from reticent.engine.linked import rows

        true = rows.prepare

        def with_another_secret(table, policy, secret):
            return true(table, policy, secret + (b"!" if "onset_date" in table.column_names else b""))

        with monkeypatch.context() as patch:
            patch.setattr(rows, "prepare", with_another_secret)
            return whole(parts, policy, rng)

    # Small classes: labels are fine enough for days that moved apart to be seen.
    policy = Policy.from_dict(RULES | {"privacy": {"k": 2}})
    for seed in range(4):
        anonymize(tables, policy, seed=seed)
    monkeypatch.setattr(publication, "release_tables", alone)
    for seed in range(4):
        with pytest.raises(GuaranteeError, match="all dates of a person are shifted by the same number of days"):
            anonymize(tables, policy, seed=seed)
