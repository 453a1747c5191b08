"""R4 and R5: what an element is called in each, and which version a resource is written in."""

from __future__ import annotations

from typing import Any

# R4 path -> R5 path, for the types that are read; every path of the same beginning goes with it.
_MOVED = {
    "Encounter.class.code": "Encounter.class.coding.code",
    "Encounter.class.system": "Encounter.class.coding.system",
    "Encounter.period": "Encounter.actualPeriod",
    "Encounter.hospitalization": "Encounter.admission",
    "Encounter.serviceType": "Encounter.serviceType.concept",
    "Procedure.performedDateTime": "Procedure.occurrenceDateTime",
    "Procedure.performedPeriod": "Procedure.occurrencePeriod",
    "MedicationRequest.medicationCodeableConcept": "MedicationRequest.medication.concept",
    "MedicationStatement.medicationCodeableConcept": "MedicationStatement.medication.concept",
    "MedicationAdministration.medicationCodeableConcept": "MedicationAdministration.medication.concept",
    # The specification spells the next one so.
    "MedicationAdministration.effectiveDateTime": "MedicationAdministration.occurenceDateTime",
    "MedicationAdministration.effectivePeriod": "MedicationAdministration.occurencePeriod",
}
# Elements that only one of the two versions has, per type.
_SIGNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Encounter": (("period", "hospitalization"), ("actualPeriod", "admission", "plannedStartDate")),
    "Procedure": (("performedDateTime", "performedPeriod"), ("occurrenceDateTime", "occurrencePeriod", "reported")),
    "MedicationRequest": (("medicationCodeableConcept", "medicationReference"), ("medication",)),
    "MedicationStatement": (("medicationCodeableConcept", "medicationReference"), ("medication",)),
    "MedicationAdministration": (("medicationCodeableConcept", "medicationReference"), ("medication",)),
}
VERSIONS = ("R4", "R5")


def later_path(path: str) -> str:
    """The R5 path of an element that R4 calls otherwise; the same path where both agree.

    >>> later_path("Encounter.period.start")
    'Encounter.actualPeriod.start'
    """
    for head, moved in _MOVED.items():
        if path == head or path.startswith(head + "."):
            return moved + path[len(head) :]
    return path


def version_of(resource: dict[str, Any]) -> str | None:
    """R4 or R5, where a resource shows it."""
    signs = _SIGNS.get(resource["resourceType"])
    if signs is None:
        return None
    kind = resource.get("class")
    if kind is not None and resource["resourceType"] == "Encounter":
        return "R5" if type(kind) is list else "R4"
    for version, names in zip(VERSIONS, signs, strict=True):
        if any(name in resource for name in names):
            return version
    return None
