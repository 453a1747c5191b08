"""The eighteen identifiers of the HIPAA Safe Harbor rule, as columns a hospital would have: none is taken for plain."""

import pyarrow as pa
import pytest

from reticent.policy.guess import guess

N = 60
INSIDE = {
    "patient_name": [f"Person {i % 7}" for i in range(N)],
    "street_address": [f"Street {i % 9}" for i in range(N)],
    "phone": [f"+49 30 {1000000 + i % 8}" for i in range(N)],
    "fax_number": [f"030-55{i % 9}12{i % 7}1" for i in range(N)],
    "email": [f"a{i % 5}@example.org" for i in range(N)],
    "ssn": [f"123-45-{1000 + i}" for i in range(N)],
    "mrn": [f"M{i}" for i in range(N)],
    "health_plan_number": [f"H{i % 9}" for i in range(N)],
    "account_number": [f"A{i % 9}" for i in range(N)],
    "licence_number": [f"L{i % 9}" for i in range(N)],
    "vehicle_plate": [f"B-XY {i % 9}" for i in range(N)],
    "device_serial": [f"D{i % 9}" for i in range(N)],
    "homepage": [f"https://example.org/{i % 5}" for i in range(N)],
    "ip_address": [f"10.0.0.{i % 9}" for i in range(N)],
    "fingerprint": [f"f{i % 9}" for i in range(N)],
    "photo": [f"p{i % 9}.jpg" for i in range(N)],
    "Freitext": [f"complains of pain since {i % 9} days" for i in range(N)],
    "Bemerkungen": [f"seen {i % 4} times" for i in range(N)],
    "observaciones": [f"vino {i % 4} veces" for i in range(N)],
    "commentaire": [f"venu {i % 4} fois" for i in range(N)],
    "other_code": [f"unique-{i}" for i in range(N)],
}
# Geography and dates may be released when they are generalised: they become quasi-identifiers with a hierarchy.
GENERALISED = {
    "zip": [f"{10000 + i % 20}" for i in range(N)],
    "admission_date": [f"2025-01-{1 + i % 28:02}" for i in range(N)],
}


@pytest.mark.parametrize("name", INSIDE)
def test_direct_identifiers_stay_inside(name):
    (found,) = guess(pa.table({name: INSIDE[name]}))
    assert found.role == "identifier"


@pytest.mark.parametrize("name", GENERALISED)
def test_places_and_dates_are_generalised(name):
    (found,) = guess(pa.table({name: GENERALISED[name]}))
    assert (found.role, found.hierarchy is not None) == ("quasi", True)
