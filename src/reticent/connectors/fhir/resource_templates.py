"""Templates for the resources of a release (labels, references, mandatory elements) and resources that describe it."""

from __future__ import annotations

from typing import Any

import orjson

from reticent.connectors.fhir.elements import CANDIDATES, GENERALIZED, GUARANTEE, absent, concept

_LABELS = "http://terminology.hl7.org/CodeSystem/v3-ObservationValue"
SECURITY = [
    {"system": _LABELS, "code": "ABSTRED", "display": "abstracted"},
    {"system": _LABELS, "code": "PSEUDED", "display": "pseudonymized"},
    {"system": _LABELS, "code": "REDACTED", "display": "redacted"},
]
"""Labels of every resource: generalized, pseudonymized, redacted. People decide whether that is anonymous."""
_META = orjson.Fragment(orjson.dumps({"security": SECURITY}))
_CLINICAL = "http://terminology.hl7.org/CodeSystem/condition-clinical"
_STATUS = {"MedicationStatement": {"R4": "unknown", "R5": "recorded"}}
_WITH_STATUS = (
    *("Encounter", "Observation", "Procedure", "MedicationRequest", "MedicationAdministration"),
    "DiagnosticReport",
)
KINDS = ("Patient", "Condition", *_WITH_STATUS, *_STATUS, "Immunization")
"""The resource types that can be written."""
_CODE_TYPES = ("Observation", "DiagnosticReport")
_MEDICATION_TYPES = ("MedicationRequest", "MedicationStatement", "MedicationAdministration")


def template(kind: str, version: str, person: str, visit: str | None) -> dict[str, Any]:
    """Return a resource without its cells: type, labels, references and a neutral status."""
    resource: dict[str, Any] = {"resourceType": kind, "id": "", "meta": _META}
    if kind in _WITH_STATUS:
        resource["status"] = "unknown"
    elif kind in _STATUS:
        resource["status"] = _STATUS[kind][version]
    elif kind == "Immunization":
        resource["_status"] = absent("unknown")
    if kind == "MedicationRequest":
        resource["intent"] = "order"
    if kind == "Condition" and version == "R5":
        resource["clinicalStatus"] = {"coding": [{"system": _CLINICAL, "code": "unknown"}]}
    if kind != "Patient":
        resource["patient" if kind == "Immunization" else "subject"] = {"reference": f"Patient/{person}"}
    if visit is not None and kind not in ("Patient", "Encounter"):
        old = version == "R4" and kind in ("MedicationStatement", "MedicationAdministration")
        resource["context" if old else "encounter"] = {"reference": f"Encounter/{visit}"}
    return resource


def complete(resource: dict[str, Any], version: str) -> None:
    """Add mandatory FHIR elements that the policy does not release, as absent and masked."""
    kind = resource["resourceType"]
    if kind == "Encounter" and version == "R4":
        resource.setdefault("class", absent("masked"))
    if kind in _CODE_TYPES:
        resource.setdefault("code", concept("*"))
    if kind in _MEDICATION_TYPES:
        name = "medicationCodeableConcept" if version == "R4" else "medication"
        resource.setdefault(name, concept("*") if version == "R4" else {"concept": concept("*")})
    if kind == "Immunization":
        resource.setdefault("vaccineCode", concept("*"))
        if "occurrenceDateTime" not in resource:
            why, *coarser = resource.pop("_occurrenceDateTime", absent("masked"))["extension"]
            resource["occurrenceString"] = coarser[0]["valueString"] if coarser else why["valueCode"]
    if kind == "MedicationAdministration":
        name = "effective" if version == "R4" else "occurence"  # sic, in the specification
        if f"{name}DateTime" not in resource and f"{name}Period" not in resource:
            resource[f"{name}Period"] = resource.pop(f"_{name}DateTime", absent("masked"))


def provenance(manifest: dict[str, Any], codebook: dict[str, Any], kinds: dict[str, int]) -> dict[str, Any]:
    """Return a Provenance: the program, the time, the policy and the guarantee of the release."""
    digest, guarantee = manifest["policy_hash"], codebook["guarantee"]
    sentences = [
        *guarantee["words"],
        f"against {guarantee['against']}",
        *(f"not covered: {words}" for words in guarantee["not_covered"]),
    ]
    program = f"Reticent {manifest['versions']['reticent']}, method {manifest['method']}"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return {
        "resourceType": "Provenance",
        "id": "release",
        "meta": {"security": SECURITY},
        "extension": [{"url": GUARANTEE, "valueString": sentence} for sentence in sentences],
        "target": [
            {"identifier": {"system": "urn:reticent:policy", "value": digest}, "display": f"all resources: {counts}"}
        ],
        "recorded": manifest["time"],
        "policy": [f"urn:sha256:{digest}"],
        "activity": {
            "coding": [{"system": "http://terminology.hl7.org/CodeSystem/iso-21089-lifecycle", "code": "deidentify"}]
        },
        "agent": [{"who": {"display": program}}],
    }


def definitions(version: str) -> list[dict[str, Any]]:
    """Return the StructureDefinition of each extension that a release uses."""
    return [
        _definition(
            version, CANDIDATES, "Candidate values; the true value may be among them.", ["CodeableConcept"], "value"
        ),
        _definition(
            version, GENERALIZED, "The coarser value published in place of the true value.", ["Element", "Observation"]
        ),
        _definition(
            version,
            GUARANTEE,
            "What the release guarantees, against which attacker, and what it does not cover.",
            ["Provenance"],
        ),
    ]


def _element(path: str, ident: str = "", **more: Any) -> dict[str, Any]:
    return {"id": ident or path, "path": path, "min": 1, "max": "1", **more}


def _definition(version: str, url: str, words: str, places: list[str], part: str | None = None) -> dict[str, Any]:
    name = url.rpartition("/")[2]
    elements = [_element("Extension", definition=words, min=0, max="*"), _element("Extension.url", fixedUri=url)]
    if part is None:
        elements.append(_element("Extension.value[x]", type=[{"code": "string"}]))
    else:
        inner = f"Extension.extension:{part}"
        elements += [
            _element("Extension.extension", inner, sliceName=part, max="*"),
            _element("Extension.extension.url", f"{inner}.url", fixedUri=part),
            _element("Extension.extension.value[x]", f"{inner}.value[x]", type=[{"code": "Coding"}]),
        ]
    return {
        "resourceType": "StructureDefinition",
        "id": name,
        "url": url,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "status": "active",
        "description": words,
        "fhirVersion": "4.0.1" if version == "R4" else "5.0.0",
        "kind": "complex-type",
        "abstract": False,
        "context": [{"type": "element", "expression": place} for place in places],
        "type": "Extension",
        "baseDefinition": "http://hl7.org/fhir/StructureDefinition/Extension",
        "derivation": "constraint",
        "differential": {"element": elements},
    }
