"""Guessing roles: by who can know a column, with reasons, without quoting a value."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
import yaml
from wide_tables import DRUGS, admissions, encounters

from reticent.cli.policy_plan import PolicyPlan, render
from reticent.datasets import hospital
from reticent.policy import Policy
from reticent.policy.guess import guess, guess_l, guess_missing_markers, guess_person, keep_one_sensitive, settings_of
from reticent.policy.guess_hierarchy import band_tree, nice_width, number_levels
from reticent.policy.hierarchy import build_levels

N = 200


def columns(**data):
    return {g.column: g for g in guess(pa.table(data))}


def roles(table):
    return {g.column: g.role for g in guess(table)}


def test_the_hospital():
    found = {g.column: g for g in guess(hospital.generate(2000, 1))}
    roles = {name: g.role for name, g in found.items()}
    assert roles["patient_id"] == roles["name"] == "identifier"
    assert roles["diagnosis"] == "sensitive"
    assert found["diagnosis"].hierarchy == {"icd10": True}
    assert found["birth_date"].hierarchy == {"dates": ["month", "quarter", "year", "decade"]}
    assert found["admission_date"].hierarchy == {"dates": ["month", "quarter", "year"]}
    assert found["postcode"].hierarchy == {"prefix": 5}
    assert guess_person(list(found.values())) == "patient_id"


@pytest.mark.parametrize(
    ("value", "role"),
    [
        ("a{}@example.org", "identifier"),
        ("https://example.org/{}", "identifier"),
        ("10.0.0.{}", "identifier"),
        ("123-45-{:04d}", "identifier"),
        ("+44 20 7946 {:04d}", "identifier"),
        ("A{:02d}", "sensitive"),
        ("V{:02d}", "sensitive"),
        ("A{:02d}BC07", "sensitive"),
        ("{:04d}-5", "sensitive"),
        ("2024-01-{:02d}", "quasi"),
    ],
)
def test_by_the_look_of_the_values(value, role):
    found = columns(x=[value.format(i % 28 + 1) for i in range(N)])["x"]
    assert found.role == role, found


@pytest.mark.parametrize(
    "name",
    [
        "Surname",
        "patientName",
        "SSN",
        "mrn",
        "E-Mail",
        "home_phone",
        "street",
        "account_no",
        "licence",
        "device_id",
        "clinical_notes",
        "IP",
        "patientId",
        "patient_nbr",
    ],
)
def test_by_the_name(name):
    assert columns(**{name: ["a", "b"] * N})[name].role == "identifier"


def test_the_cautious_side():
    found = columns(
        colour=["red", "blue"] * N,
        code=[f"{i * 7919 % 100_003:06x}" for i in range(2 * N)],
        weight=[str(50 + i % 70) for i in range(2 * N)],
        story=[f"the patient said {i} long things about the weather and the family" for i in range(2 * N)],
    )
    assert {n: g.role for n, g in found.items()} == {
        "colour": "quasi",
        "code": "identifier",
        "weight": "quasi",
        "story": "identifier",
    }
    assert found["weight"].hierarchy == {"intervals": [5, 10, 20, 40]}


def test_two_illnesses_are_protected_together_unless_a_method_takes_one():
    table = pa.table({"diagnosis": ["flu", "cold", "gout"] * N, "treatment": ["rest", "tea"] * (3 * N // 2)})
    assert roles(table) == {"diagnosis": "sensitive", "treatment": "sensitive"}
    assert [g.role for g in keep_one_sensitive(guess(table))] == ["sensitive", "identifier"]
    assert guess_l(table, guess(table)) == 2


def test_what_cannot_be_hidden_among_others_stays_inside():
    table = pa.table({"diagnosis": ["flu", "cold", "gout"] * N, "hiv_test_result": ["no"] * (3 * N - 2) + ["yes"] * 2})
    assert roles(table) == {"diagnosis": "sensitive", "hiv_test_result": "identifier"}
    alone = table.select(["hiv_test_result"])
    assert roles(alone) == {"hiv_test_result": "sensitive"}
    assert guess_l(alone, guess(alone)) is None


def test_reasons_quote_no_value():
    marked = pa.table(
        {
            "x": [f"CANARY{i}" for i in range(N)],
            "y": ["CANARY a", "CANARY b"] * (N // 2),
            "diagnosis": ["CANARY", "c"] * (N // 2),
        }
    )
    text = render(guess(marked), None, None, PolicyPlan(()), ())
    assert "CANARY" not in text
    Policy.from_dict(yaml.safe_load(text))


def test_a_column_called_patient_is_never_released():
    found = columns(patient=[f"p{i % 7}" for i in range(N)], admitted=[f"{i % 28 + 1:02d}.03.2024" for i in range(N)])
    assert found["patient"].role == "identifier"
    assert (found["admitted"].role, found["admitted"].hierarchy["format"]) == ("quasi", "DD.MM.YYYY")


def test_nice_numbers():
    assert [nice_width(x) for x in (0, 0.3, 1, 3, 7, 11)] == [1, 0.5, 1, 5, 10, 20]


def test_fifty_columns_of_encounters():
    table = encounters(4000)
    guesses = guess(table)
    found = {g.column: g.role for g in guesses}
    quasi = ["race", "gender", "age", "weight", "time_in_hospital", "payer_code", "medical_specialty"]
    quasi += ["admission_type_id", "discharge_disposition_id", "admission_source_id"]
    assert [n for n, role in found.items() if role == "identifier"] == ["encounter_id", "patient_nbr"]
    assert [n for n, role in found.items() if role == "sensitive"] == ["diag_1", "diag_2", "diag_3"]
    assert {n for n, role in found.items() if role == "quasi"} == set(quasi)
    assert {found[name] for name in DRUGS} == {"plain"}
    assert guess_person(guesses) == "patient_nbr"
    assert guess_missing_markers(table) == ("?",)
    assert guess_l(table, guesses) == 3
    hierarchies = {g.column: g.hierarchy for g in guesses}
    assert hierarchies["diag_1"] == {"icd9": True}
    assert "[0-20)" in str(hierarchies["age"]["tree"])
    assert max(hierarchies["time_in_hospital"]["intervals"][0]) < 14
    assert all(g.why for g in guesses)


def test_forty_columns_of_admissions():
    table = admissions(3000)
    guesses = guess(table)
    found = {g.column: g.role for g in guesses}
    assert {n for n, role in found.items() if role == "identifier"} == {"patient_id", "surname", "notes"}
    assert {n for n, role in found.items() if role == "sensitive"} == {"diagnosis", "drug_atc", "test_code"}
    known = {"birth_date", "sex", "postcode", "city", "marital_status", "admission_date", "discharge_date", "ward"}
    assert known | {"length_of_stay", "insurer"} <= {n for n, role in found.items() if role == "quasi"}
    assert {found[name] for name in ("sodium", "lactate", "systolic", "pulse", "pain_score")} == {"plain"}
    assert sum(role == "quasi" for role in found.values()) <= 12
    assert set(guess_missing_markers(table)) == {"NA", "-9"}


def test_a_plain_column_that_discloses_a_known_one_becomes_quasi():
    cities = [f"town{i % 20}" for i in range(2000)]
    table = {f"lab_{i}": [str((i * k) % 97 / 10) for k in range(2000)] for i in range(1, 12)}
    table |= {"city": cities, "total_code": [f"{int(name[4:]) * 7 % 20}x" for name in cities]}
    assert roles(pa.table(table))["total_code"] == "quasi"
    shuffled = [f"{(k * 31 + k // 20) % 20}x" for k in range(2000)]
    assert roles(pa.table(table | {"total_code": shuffled}))["total_code"] == "plain"


def test_intervals_follow_the_distribution():
    stays = {str(n): count for n, count in ((1, 500), (2, 300), (3, 100), (5, 60), (9, 30), (60, 9), (400, 1))}
    cuts = number_levels(stays)["intervals"]
    assert cuts[0][0] <= 3
    assert all(set(coarse) <= set(fine) for fine, coarse in itertools.pairwise(cuts))
    assert number_levels({"0": 5, "1": 5}) is None


@pytest.mark.parametrize(
    ("values", "node"),
    [
        (["[0-10)", "[10-20)", "[20-30)"], "[0-20)"),
        (["0-9", "10-19", "20-29", "30+"], "20+"),
        (["<18", "18-39", "40-64", "65+"], "<39"),
    ],
)
def test_bands_are_joined_with_their_neighbours(values, node):
    assert node in band_tree(dict.fromkeys(values, 1))
    settings = {"columns": {"age": {"role": "quasi", "hierarchy": {"tree": band_tree(dict.fromkeys(values, 1))}}}}
    assert Policy(**settings).columns["age"].hierarchy.kind == "tree"


def test_what_is_no_band():
    for values in (["2024-01", "2024-02", "2024-03"], ["1-5", "3-9", "4-11"], ["NO", ">30", "<30"], ["1234-5"] * 3):
        assert band_tree(dict.fromkeys(values, 1)) is None


@pytest.mark.parametrize(
    ("cells", "markers"),
    [
        (["31", "?"], ("?",)),
        (["31", "-9"], ("-9",)),
        (["31", "-9", "-12"], ()),
        ([f"{a}{b}" for a in "ABCD" for b in "XYZ"] + ["NA"], ()),
        (["yes", "NA"], ("NA",)),
    ],
)
def test_markers_of_missing_cells(cells, markers):
    table = pa.table({"x": cells * 10})
    assert guess_missing_markers(table) == markers
    settings = settings_of(table, guess(table))
    assert tuple(settings.get("missing", ())) == markers


def test_seventeen_columns_of_discharges():
    rows, random = 3000, np.random.default_rng(2)
    stays = random.geometric(0.2, rows) + (random.random(rows) < 0.002) * 900
    table = pa.table(
        {
            "RECORD_ID": [str(1_000_000 + n) for n in range(rows)],
            "PROVIDER_ID": [str(n) for n in random.integers(100, 400, rows)],
            "SEX_CODE": random.choice(["F", "M", "U"], rows),
            "PAT_AGE": random.integers(0, 27, rows).astype(str),
            "PAT_ZIP": random.integers(75_000, 79_999, rows).astype(str),
            "LENGTH_OF_STAY": stays.astype(str),
            "PRINC_DIAG_CODE": random.choice(["4280", "V5789", "25000", "E8859", "41401", "0389"], rows),
            "TOTAL_CHARGES": [f"{n:.2f}" for n in random.lognormal(9, 1, rows)],
            **{f"FLAG_{n}": random.choice(["Y", "N"], rows) for n in range(9)},
        }
    )
    found = {g.column: g for g in guess(table)}
    assert found["RECORD_ID"].role == "identifier"
    assert found["PRINC_DIAG_CODE"].role == "sensitive"
    assert found["PRINC_DIAG_CODE"].hierarchy == {"icd9": True}
    quasi = {"PROVIDER_ID", "SEX_CODE", "PAT_AGE", "PAT_ZIP", "LENGTH_OF_STAY", "TOTAL_CHARGES"}
    assert {name for name, g in found.items() if g.role == "quasi"} == quasi
    assert found["PROVIDER_ID"].hierarchy is None
    assert max(found["LENGTH_OF_STAY"].hierarchy["intervals"][0]) < 30


def test_columns_with_types_are_guessed_as_text_is():
    rows = 300
    table = pa.table(
        {
            "patient_id": np.arange(rows),
            "sex": pa.array(["F", "M", None] * (rows // 3)).dictionary_encode(),
            "admitted": pa.array(np.arange(rows) % 90 + 19_000, pa.int32()).cast(pa.date32()),
            "seen": pa.array(np.arange(rows) % 70 * 10**11, pa.timestamp("us")),
            "score": np.where(np.arange(rows) % 7, np.arange(rows) % 20, -9),
            "smoker": np.arange(rows) % 3 == 0,
            "sodium": [None if n % 9 == 0 else 130 + n % 50 / 10 for n in range(rows)],
        }
    )
    found = {g.column: g for g in guess(table)}
    assert [found[name].role for name in ("patient_id", "sex", "admitted", "seen")] == ["identifier"] + ["quasi"] * 3
    assert found["seen"].hierarchy == {"dates": ["day", "month", "quarter", "year"]}
    assert found["sodium"].role == "plain"
    assert guess_missing_markers(table) == ("-9",)


def test_dates_that_begin_with_the_day_are_read_as_such_and_a_postal_code_is_no_icd9_code(tmp_path):
    births = [f"{1 + i % 28:02}/{1 + i % 12:02}/{1930 + i % 80}" for i in range(400)]
    codes = [f"{10000 + 37 * i}" for i in range(400)]
    table = pa.table({"DOB": births, "PostCode": codes, "Dx": ["J45.0", "I10"] * 200})
    guess = Policy.guess(table)
    assert guess.columns["PostCode"].role == "quasi"
    hierarchy = guess.columns["DOB"].hierarchy
    assert (guess.columns["DOB"].role, hierarchy.format) == ("quasi", "DD/MM/YYYY")
    steps = build_levels(hierarchy, pa.array(["31/12/1980", "01/02/1981"]), column="DOB")
    labels = [
        [names.to_pylist()[node] for node in codes] for codes, names in zip(steps.node_ids, steps.labels, strict=True)
    ]
    assert ["1980-12", "1981-02"] in labels
    assert ["1980s", "1980s"] in labels


def test_dates_that_leave_open_what_is_the_month_stay_inside():
    found = columns(born=[f"{1 + i % 12:02}.{1 + i % 11:02}.1980" for i in range(N)])
    assert found["born"].role == "identifier"
    assert "1980-12-31" in found["born"].why


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("zip_code", [f"{10_000 + 7 * i}" for i in range(60)], "quasi"),
        ("country_code", [str(100 + i) for i in range(30)], "quasi"),
        ("hospital_code", [str(1 + i) for i in range(30)], "quasi"),
        ("LAT", [f"{41 + i / 1000:.3f}" for i in range(90)], "quasi"),
        ("MAIDEN", [f"Roe{i}" for i in range(60)], "identifier"),
        ("Nachname", [f"M{i}" for i in range(60)], "identifier"),
        ("Geschlecht", ["m", "w", "d"], "quasi"),
        ("Größe", [str(150 + i) for i in range(40)], "quasi"),
        ("Facility Name", [f"Hospital {i}" for i in range(20)], "quasi"),
        ("drug_name", [f"drug {i}" for i in range(20)], "sensitive"),
        ("APR DRG Description", [f"group {i}" for i in range(20)], "sensitive"),
        ("procedure_code", [f"{10 + i}.{10 + i}" for i in range(40)], "sensitive"),
        ("income_band", ["<10000", "10000-20000", "20000-40000", ">40000"], "sensitive"),
        ("target", ["0", "1"], "sensitive"),
        ("smoker", ["yes", "no"], "quasi"),
        ("diabetic", ["yes", "no"], "sensitive"),
        ("insured", ["yes", "no"], "quasi"),
        ("Fachabteilung", ["HNO", "Innere"], "quasi"),
        ("N° patient", [f"{100 + i}" for i in range(60)], "identifier"),
        ("no_formulaire", [str(i) for i in range(N * 3)], "identifier"),
        ("Kommentar", ["k. A."], "identifier"),
        ("discharged", ["03.04.24", "31.12.23", "07.05.24"], "identifier"),
        ("born", ["1980-12-31", "31.12.1980", "12/31/1980", "31-Dec-1980"], "identifier"),
    ],
)
def test_a_known_name_takes_precedence_over_the_form_of_the_values(name, values, role):
    cells = list(itertools.islice(itertools.cycle(values), N * 3))
    assert columns(**{name: cells})[name].role == role


def test_asthma_is_no_laboratory_value():
    assert "laboratory" not in columns(asthma=["yes", "no"] * N)["asthma"].why


@pytest.mark.parametrize("last", ["70 or Older", "70+", "70 and over", "over 70"])
def test_bands_end_in_many_words(last):
    assert band_tree({"0 to 17": 1, "18 to 29": 1, "30 to 49": 1, "50 to 69": 1, last: 1}) is not None


PERSONS = [
    "pid",
    "PatID",
    "pat_nr",
    "pt_no",
    "USUBJID",
    "bene_id",
    "Patientennummer",
    "eid",
    "N° patient",
    "Pat. Nr.",
    "IPP",
]


@pytest.mark.parametrize("name", PERSONS)
def test_a_number_of_a_person_that_repeats_is_the_person(name):
    """By the short names that files have; as a quasi-identifier it would be published, and records counted for persons."""
    visits = pa.table({name: [f"{at // 3:05}" for at in range(600)], "sex": ["f", "m", "f"] * 200})
    guesses = guess(visits)
    assert {one.column: one.role for one in guesses}[name] == "identifier"
    assert guess_person(guesses) == name


def test_yes_or_no_is_nobody():
    """Counted as persons, two of them can be in no class."""
    table = pa.table({"patient_id": [str(i) for i in range(N)], "insured": [True, False] * (N // 2)})
    assert guess_person(guess(table)) == "patient_id"


def test_an_empty_column_stays_inside():
    assert columns(comment=pa.array([None] * N, pa.string()))["comment"].role == "identifier"


@pytest.mark.parametrize("values", [["E11.9", "E119", "I10"], ["Asthma", "asthma ", "flu"], ["flu", "cold", None, ""]])
def test_variants_of_one_value_are_merged(values):
    table = pa.table(
        {
            "age": [str(20 + i % 50) for i in range(N)],
            "diagnosis": values * (N // len(values)) + ["flu"] * (N % len(values)),
        }
    )
    policy = Policy.guess(table)
    assert policy.columns["diagnosis"].normalize
    Policy.from_dict(yaml.safe_load(render(guess(table), None, None, PolicyPlan(()), ())))


@pytest.mark.parametrize("large", [["1E400"], ["1e308", "-1e308"]])
def test_numbers_beyond_all_numbers_have_no_intervals(large):
    assert number_levels(dict.fromkeys(["1", "2", "3", *large], 1)) is None


HOSPITAL_EXPORTS = {
    "identifier": [
        *("VERSNR", "MBI", "ENCRYPTED_HESID", "EPIKEY", "CLM_ID", "registry_no", "accession_number", "personnummer"),
        *("specimen_id", "study_id", "pseudonym", "kv_nr"),
    ],
    "quasi": [
        *("MYDOB", "STARTAGE", "GEBDAT", "POSTDIST", "LSOA11", "PLZ", "ADMIMETH", "DISDEST", "AUFNGRUND", "ENTL_GRUND"),
        *(
            "SPELDUR",
            "KASSE",
            "FACHABT",
            "PROCODE3",
            "GPPRAC",
            "ETHNOS",
            "IMD04_DECILE",
            "CONSULT",
            "CLM_PMT_AMT",
            "AT_PHYSN_NPI",
            "hausarzt",
        ),
    ],
    "sensitive": ["organism", "Erreger", "NDC_CD", "morphology", "comorb___1", "OPERTN_01", "DRG"],
}


@pytest.mark.parametrize(("name", "role"), [(name, role) for role, names in HOSPITAL_EXPORTS.items() for name in names])
def test_names_of_hospital_exports(name, role):
    """Each with so many columns of unknown meaning that a column with an unknown name would be released unchanged."""
    others = {f"x{i}": [f"{j * (i + 3) % 7}{i}" for j in range(N)] for i in range(12)}
    assert columns(**{name: [f"F{i % 11 + 10}B" for i in range(N)]}, **others)[name].role == role


def test_numbers_of_persons_that_look_like_codes_are_no_codes():
    found = columns(number_in_book=[f"R{i:06d}" for i in range(N)], cause=[f"R{i % 90 + 10}" for i in range(N)])
    assert found["number_in_book"].role == "identifier"
    assert found["cause"].role == "sensitive"


@pytest.mark.parametrize("name", ["DRG", "OPERTN_01"])
def test_codes_of_groups_and_treatments_have_no_tree_of_icd_codes(name):
    assert columns(**{name: [f"F{i % 40 + 10}B" for i in range(N)]})[name].hierarchy is None


def test_dates_without_marks_are_dates():
    days = [f"2021{i % 12 + 1:02d}{i % 28 + 1:02d}" for i in range(N)]
    found = columns(CLM_FROM_DT=days)["CLM_FROM_DT"]
    assert (found.role, found.hierarchy) == ("quasi", {"dates": ["month", "quarter", "year"]})
    labels = build_levels(
        Policy.from_dict({"version": 1, "columns": {"d": {"role": "quasi", "hierarchy": found.hierarchy}}})
        .columns["d"]
        .hierarchy,
        pa.array(days),
        column="d",
    ).labels
    assert labels[1].to_pylist()[0] == "2021-01"


def test_many_figures_of_unknown_meaning_stay_inside():
    """As MMYYYY of a birth is, under a name that nobody knows."""
    rows = 4000
    others = {f"x{i}": [f"{j * (i + 3) % 7}{i}" for j in range(rows)] for i in range(12)}
    found = columns(q17=[f"{i % 12 + 1:02d}{1930 + i % 83}" for i in range(rows)], **others)["q17"]
    assert found.role == "identifier"


def test_codes_with_leading_zeros_are_no_numbers():
    assert columns(FACHABT=["0100", "1500", "2400", "0300"] * 50)["FACHABT"].hierarchy is None
    assert columns(children=["0", "1", "2", "3"] * 50)["children"].hierarchy is not None


def test_of_several_illnesses_the_one_with_codes_is_protected():
    table = pa.table(
        {"morphology": ["8140/3", "8500/3", "8070/3"] * 50, "topography": ["C50.4", "C61.9", "C34.1"] * 50}
    )
    assert [g.role for g in keep_one_sensitive(guess(table))] == ["identifier", "sensitive"]


def results(rows=N):
    units = {"718-7": "g/dL", "4548-4": "%", "2345-7": "mg/dL", "2160-0": "mg/dL", "2951-2": "mmol/L"}
    tests = [[*units][i % 5] for i in range(rows)]
    return {
        "loinc": tests,
        "value": [f"{i * 37 % 400 / 10}" for i in range(rows)],
        "units": [units[test] for test in tests],
        "icd10": [f"E{i * 7 % 11 + 10}" for i in range(rows)],
    }


def test_units_of_measurement_are_no_wards():
    table = results()
    del table["loinc"]
    found = columns(**table)
    assert (found["units"].role, found["value"].role) == ("plain", "plain")
    assert "units of measurement" in found["units"].why
    assert columns(care_unit=["4 West", "ICU", "CCU"] * 50)["care_unit"].role == "quasi"


def test_a_column_that_discloses_the_protected_value_of_some_records_is_not_plain():
    """One unit, the percent, belongs to a single test: with candidates it would disclose the true value."""
    assert columns(**results(2000))["units"].role == "identifier"


@pytest.mark.parametrize("name", ["NPI", "ordering_npi", "POS", "attending_physician", "ward", "payer"])
def test_numbers_that_are_names_have_no_intervals(name):
    found = columns(**{name: [1003000126 + 7 * (i % 40) for i in range(N)]})[name]
    assert (found.role, found.hierarchy) == ("quasi", None)


def test_amounts_of_places_have_intervals():
    assert columns(days_in_ward=[i % 40 for i in range(N)])["days_in_ward"].hierarchy is not None
