"""Wide tables as hospitals have them, unprepared: what `init` must get right without help."""

import numpy as np
import pyarrow as pa

DRUGS = [f"{letter}formin" for letter in "abcdefghijklmnopqrstuvw"]


def _some(random, values, rows, weights=None):
    weights = np.asarray(weights if weights is not None else np.ones(len(values)), dtype=float)
    return [str(values[i]) for i in random.choice(len(values), rows, p=weights / weights.sum())]


def encounters(rows, seed=1):
    """Fifty columns: patients who return, bands of ages, `?`, ICD-9 codes without leading zeros, counts, a list of drugs."""
    random = np.random.default_rng(seed)
    people = rows * 7 // 10
    owner = np.concatenate([np.arange(people), random.integers(0, people, rows - people)])
    random.shuffle(owner)
    numbers = random.choice(np.arange(135, 189_000_000), people, replace=False)
    bands = random.choice(10, people, p=np.array([2, 7, 16, 37, 95, 170, 220, 256, 169, 28]) / 1000)
    races = _some(random, ["Caucasian", "AfricanAmerican", "?", "Hispanic", "Asian"], people, [75, 19, 3, 2, 1])
    sexes = _some(random, ["Female", "Male"], people)
    codes = [*map(str, range(1, 999, 2)), *(f"250.{i:02d}" for i in range(1, 94)), *(f"V{i}" for i in range(10, 80))]
    often = 1 / (1 + random.permutation(len(codes))) ** 0.8
    table = {
        "encounter_id": [str(n) for n in np.sort(random.choice(443_000_000, rows, replace=False))],
        "patient_nbr": [str(numbers[i]) for i in owner],
        "race": [races[i] for i in owner],
        "gender": [sexes[i] for i in owner],
        "age": [f"[{10 * bands[i]}-{10 * bands[i] + 10})" for i in owner],
        "weight": _some(random, ["?", "[50-75)", "[75-100)", "[100-125)"], rows, [97, 1, 1, 1]),
        "admission_type_id": _some(random, range(1, 9), rows, [53, 18, 18, 0.1, 5, 5, 0.1, 0.8]),
        "discharge_disposition_id": _some(random, range(1, 28), rows, [60, *[1.5] * 26]),
        "admission_source_id": _some(random, range(1, 14), rows, 1 / np.arange(1, 14) ** 2),
        "time_in_hospital": [str(min(14, n)) for n in random.geometric(0.25, rows)],
        "payer_code": _some(random, ["?", *(f"P{i}" for i in range(17))], rows, [10, *1 / np.arange(1, 18)]),
        "medical_specialty": _some(random, ["?", *(f"Care{i}" for i in range(70))], rows, [4, *1 / np.arange(1, 71)]),
        "num_lab_procedures": [str(n) for n in random.integers(1, 132, rows)],
        "num_procedures": _some(random, range(7), rows, 1 / np.arange(1, 8)),
        "num_medications": [str(n) for n in random.integers(1, 81, rows)],
        **{
            f"number_{what}": _some(random, range(9), rows, 0.3 ** np.arange(9)) for what in ("outpatient", "emergency")
        },
        "number_inpatient": _some(random, range(9), rows, 0.4 ** np.arange(9)),
        **{f"diag_{i}": _some(random, ["?", *codes], rows, [0.002 * i * often.sum(), *often]) for i in (1, 2, 3)},
        "number_diagnoses": [str(n) for n in random.integers(1, 17, rows)],
        "max_glu_serum": _some(random, ["None", "Norm", ">200", ">300"], rows, [95, 3, 1, 1]),
        "A1Cresult": _some(random, ["None", "Norm", ">7", ">8"], rows, [83, 5, 4, 8]),
        **{
            name: _some(random, ["No", "Steady", "Up", "Down"], rows, [100, 8, 1, 1] if i % 3 else [1000, 1, 0, 0])
            for i, name in enumerate(DRUGS)
        },
        **dict.fromkeys(DRUGS[3:5], ["No"] * rows),
        "change": _some(random, ["Ch", "No"], rows),
        "diabetesMed": _some(random, ["Yes", "No"], rows, [77, 23]),
        "readmitted": _some(random, ["NO", ">30", "<30"], rows, [54, 35, 11]),
    }
    return pa.table(table)


def admissions(rows, seed=1):
    """Forty columns of mixed types: dates, places, wards, ICD-10, ATC and LOINC codes, measurements, flags, -9 and NA."""
    random = np.random.default_rng(seed)
    births = np.datetime64("1930-01-01") + random.integers(0, 25_000, rows)
    came = np.datetime64("2023-01-01") + random.integers(0, 700, rows)
    stays = random.geometric(0.2, rows)
    labs = [
        "sodium",
        "potassium",
        "creatinine",
        "hemoglobin",
        "platelets",
        "crp",
        "albumin",
        "bilirubin",
        "lactate",
        "glucose",
    ]
    table = {
        "patient_id": [f"P{n:06d}" for n in range(rows)],
        "surname": _some(random, [f"Name{i}" for i in range(500)], rows),
        "birth_date": births.astype(str).tolist(),
        "sex": _some(random, ["F", "M"], rows),
        "postcode": [f"{n:05d}" for n in random.integers(10_000, 10_300, rows)],
        "city": _some(random, [f"Town{i}" for i in range(12)], rows),
        "marital_status": _some(random, ["single", "married", "widowed", "divorced"], rows),
        "admission_date": came.astype(str).tolist(),
        "discharge_date": (came + stays).astype(str).tolist(),
        "length_of_stay": [str(n) for n in stays],
        "ward": _some(random, [f"W{i}" for i in range(14)], rows),
        "insurer": _some(random, ["public", "private", "none"], rows, [80, 18, 2]),
        "diagnosis": [f"{'IJKEC'[i % 5]}{10 + i % 7}.{i % 10}" for i in random.integers(0, 350, rows)],
        "drug_atc": [
            f"{'ACJN'[i % 4]}{i % 9 + 1:02d}A{'ABC'[i % 3]}{i % 20:02d}" for i in random.integers(0, 700, rows)
        ],
        "test_code": [f"{2000 + i}-{i % 10}" for i in random.integers(0, 40, rows)],
        "systolic": [str(int(n)) for n in random.normal(130, 20, rows)],
        "pulse": [str(int(n)) for n in random.normal(75, 12, rows)],
        "pain_score": ["-9" if n == 11 else str(n) for n in random.integers(0, 12, rows)],
        **{name: [f"{n:.2f}" for n in random.lognormal(2, 0.4, rows)] for name in labs},
        "smoker": _some(random, ["yes", "no", "NA"], rows),
        **{f"flag_{i}": _some(random, ["0", "1"], rows, [9, 1]) for i in range(9)},
        "country": ["Atlantis"] * rows,
        "notes": [f"the patient told at length about matter {n} and many things besides" for n in range(rows)],
    }
    return pa.table(table)
