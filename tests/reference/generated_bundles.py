"""Bundles such as generators of synthetic patients write: a transaction per patient, urn:uuid addresses, many types, US Core.

Whatever no ready column reads holds the canary, or the number of it.
"""

import json
import random
import uuid

CANARY = "canary-5150"
CORE = "http://hl7.org/fhir/us/core/StructureDefinition"
SNOMED, LOINC, RXNORM, CVX = (
    "http://snomed.info/sct",
    "http://loinc.org",
    "http://www.nlm.nih.gov/research/umls/rxnorm",
    "http://hl7.org/fhir/sid/cvx",
)
RACES = (("2106-3", "White"), ("2054-5", "Black or African American"), ("2028-9", "Asian"))
ILLS = [
    "444814009",
    "10509002",
    "195662009",
    "36971009",
    "38341003",
    "162864005",
    "40055000",
    "65363002",
    "43878008",
    "232353008",
]
ACTS = ["430193006", "710824005", "428211000124100", "76601001", "73761001", "171207006"]
DRUGS = ["834060", "310798", "314076", "860975", "313782", "197361", "1049221"]
CITIES = (("Boston", "02108"), ("Worcester", "01608"), ("Springfield", "01103"), ("Lowell", "01850"))


def write_bundles(folder, patients, seed, *, canary=CANARY):
    """One file per patient, named as a person; and one of hospitals and practitioners."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(patients):
        resources = _patient(rng, canary)
        entries = [
            {
                "fullUrl": f"urn:uuid:{one['id']}",
                "resource": one,
                "request": {"method": "POST", "url": one["resourceType"]},
            }
            for one in resources
        ]
        bundle = {"resourceType": "Bundle", "type": "transaction", "entry": entries}
        (folder / f"{canary}_Given{number}_Family_{uuid.UUID(int=rng.getrandbits(128))}.json").write_text(
            json.dumps(bundle, indent=2)
        )
    others = [
        {"resourceType": kind, "id": _id(rng), "name": [{"text": canary}], "identifier": [{"value": canary}]}
        for kind in ("Organization", "Practitioner", "Location", "PractitionerRole")
    ]
    bundle = {
        "resourceType": "Bundle",
        "type": "batch",
        "entry": [{"fullUrl": f"urn:uuid:{r['id']}", "resource": r, "request": {"method": "POST"}} for r in others],
    }
    (folder / "hospitalInformation1700000000000.json").write_text(json.dumps(bundle))


def _id(rng):
    return str(uuid.UUID(int=rng.getrandbits(128)))


def _concept(system, code, canary):
    return {"coding": [{"system": system, "code": code, "display": canary}], "text": canary}


def noise(canary):
    """Fields that any resource may have and no policy names."""
    return {
        "meta": {
            "profile": [f"{CORE}/{canary}"],
            "source": f"urn:{canary}",
            "tag": [{"code": canary}],
            "versionId": canary,
        },
        "text": {"status": "generated", "div": f'<div xmlns="http://www.w3.org/1999/xhtml">{canary}</div>'},
        "contained": [{"resourceType": "Practitioner", "id": "c1", "name": [{"text": canary}]}],
        "extension": [{"url": f"urn:{canary}", "valueString": canary}],
        "identifier": [{"system": f"urn:{canary}", "value": canary, "assigner": {"display": canary}}],
        "note": [{"text": canary, "authorString": canary}],
        "implicitRules": f"urn:{canary}",
        "language": "en",
    }


def _day(rng, year):
    return f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def _patient(rng, canary):
    me, (city, code) = _id(rng), rng.choice(CITIES)
    race = rng.choice(RACES)
    patient = {
        "resourceType": "Patient",
        "id": me,
        **noise(canary),
        "extension": [
            {
                "url": f"{CORE}/us-core-race",
                "extension": [
                    {
                        "url": "ombCategory",
                        "valueCoding": {
                            "system": "urn:oid:2.16.840.1.113883.6.238",
                            "code": race[0],
                            "display": race[1],
                        },
                    },
                    {"url": "text", "valueString": canary},
                ],
            },
            {"url": f"{CORE}/us-core-birthsex", "valueCode": "F"},
            {"url": "http://hl7.org/fhir/StructureDefinition/patient-mothersMaidenName", "valueString": canary},
            {"url": "http://hl7.org/fhir/StructureDefinition/patient-birthPlace", "valueAddress": {"city": canary}},
            {"url": "http://synthetichealth.github.io/synthea/disability-adjusted-life-years", "valueDecimal": 7.719},
        ],
        "name": [{"use": "official", "family": canary, "given": [canary], "prefix": ["Ms."]}],
        "telecom": [{"system": "phone", "value": canary}],
        "gender": rng.choice(("male", "female")),
        "birthDate": _day(rng, rng.randint(1930, 2015)),
        "address": [
            {
                "line": [canary],
                "city": city,
                "state": "MA",
                "postalCode": code,
                "country": "US",
                "extension": [
                    {
                        "url": "http://hl7.org/fhir/StructureDefinition/geolocation",
                        "extension": [{"url": "latitude", "valueDecimal": 42.7719}],
                    }
                ],
            }
        ],
        "maritalStatus": {"text": canary},
        "multipleBirthInteger": 7719,
        "communication": [{"language": {"text": canary}}],
        "contact": [{"name": {"text": canary}}],
        "photo": [{"url": f"https://{canary}.example"}],
        "link": [{"other": {"reference": f"Patient/{canary}"}, "type": "seealso"}],
        "generalPractitioner": [{"reference": f"Practitioner?identifier=http://hl7.org/fhir/sid/us-npi|{canary}"}],
    }
    if rng.random() < 0.05:
        patient["deceasedDateTime"] = f"{_day(rng, 2025)}T07:19:00-05:00"
    whole = [patient]
    for _ in range(rng.choice((1, 1, 2, 3, 4, 6))):
        whole += _visit(rng, me, canary)
    whole.append(
        {
            "resourceType": "RelatedPerson",
            "id": _id(rng),
            "patient": {"reference": f"urn:uuid:{me}"},
            "name": [{"text": canary}],
        }
    )
    whole.append(
        {
            "resourceType": "Provenance",
            "id": _id(rng),
            "target": [{"reference": f"urn:uuid:{me}"}],
            "recorded": "2025-01-01T00:00:00Z",
            "agent": [{"who": {"display": canary}}],
        }
    )
    return whole


def _visit(rng, me, canary):
    visit, start = _id(rng), _day(rng, rng.randint(2018, 2024))
    subject, encounter = {"reference": f"urn:uuid:{me}", "display": canary}, {"reference": f"urn:uuid:{visit}"}
    npi = f"Practitioner?identifier=http://hl7.org/fhir/sid/us-npi|{canary}"
    when = f"{start}T07:19:00-05:00"

    def of(kind, **more):
        return {
            "resourceType": kind,
            "id": _id(rng),
            **noise(canary),
            "subject": subject,
            "encounter": encounter,
            **more,
        }

    whole = [
        {
            "resourceType": "Encounter",
            "id": visit,
            **noise(canary),
            "status": "finished",
            "class": {
                "system": "http://terminology.hl7.org/CodeSystem/v3-ActCode",
                "code": rng.choice(("AMB", "EMER", "IMP")),
            },
            "type": [_concept(SNOMED, "162673000", canary)],
            "subject": subject,
            "participant": [{"individual": {"reference": npi, "display": canary}}],
            "period": {"start": when, "end": when.replace("07:19", "08:19")},
            "location": [{"location": {"display": canary}}],
            "serviceProvider": {"display": canary},
        }
    ]
    active = _concept("http://terminology.hl7.org/CodeSystem/condition-clinical", "active", canary)
    whole += [
        of(
            "Condition",
            clinicalStatus=active,
            code=_concept(SNOMED, rng.choice(ILLS), canary),
            onsetDateTime=when,
            recordedDate=when,
        )
        for _ in range(rng.randint(1, 2))
    ]
    whole.append(
        of(
            "Observation",
            status="final",
            code=_concept(LOINC, rng.choice(("8302-2", "29463-7", "2339-0")), canary),
            effectiveDateTime=when,
            issued=when,
            valueQuantity={
                "value": round(rng.uniform(60, 190), 1),
                "household": canary,
                "system": "http://unitsofmeasure.org",
                "code": "cm",
            },
            component=[{"code": _concept(LOINC, "8480-6", canary), "valueQuantity": {"value": 7719}}],
        )
    )
    if rng.random() < 0.5:
        whole.append(
            of(
                "Procedure",
                status="completed",
                code=_concept(
                    SNOMED,
                    rng.choice(ACTS),
                    canary,
                ),
                performedPeriod={"start": when, "end": when},
            )
        )
    if rng.random() < 0.5:
        whole.append(
            of(
                "MedicationRequest",
                status="active",
                intent="order",
                medicationCodeableConcept=_concept(RXNORM, rng.choice(DRUGS), canary),
                authoredOn=when,
                requester={"reference": npi, "display": canary},
                dosageInstruction=[{"text": canary, "patientInstruction": canary}],
            )
        )
    if rng.random() < 0.3:
        shot = of(
            "Immunization",
            status="completed",
            vaccineCode=_concept(CVX, rng.choice(("140", "113", "207")), canary),
            occurrenceDateTime=when,
            patient=subject,
        )
        shot.pop("subject")
        whole.append(shot)
    whole.append(
        of(
            "DiagnosticReport",
            status="final",
            code=_concept(LOINC, "34117-2", canary),
            effectiveDateTime=when,
            presentedForm=[{"data": canary}],
            conclusion=canary,
        )
    )
    whole.append(of("DocumentReference", status="current", content=[{"attachment": {"data": canary}}]))
    whole.append(
        {
            "resourceType": "Claim",
            "id": _id(rng),
            "status": "active",
            "patient": subject,
            "total": {"value": 77.19},
            "item": [{"encounter": [encounter]}],
        }
    )
    whole.append(
        {
            "resourceType": "ExplanationOfBenefit",
            "id": _id(rng),
            "patient": subject,
            "contained": [{"resourceType": "Coverage", "id": "c", "type": {"text": canary}}],
        }
    )
    whole.append(
        of(
            "CarePlan",
            status="active",
            intent="order",
            activity=[{"detail": {"code": _concept(SNOMED, "171", canary)}}],
        )
    )
    return whole
