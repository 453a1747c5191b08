"""Read paths in resources: plain paths by dictionary look-ups, the others with a FHIRPath library.

A plain path is names joined by dots. The first entry of a repeated element is used, as with `first()`. Paths are those
of R4; some elements have other names in R5.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import orjson

from reticent.errors import DataError, PolicyError, require_extra
from reticent.policy.settings.inputs import FhirColumn

Getter = Callable[[dict[str, Any]], str | None]

# R4 path -> R5 path, for the resource types that are read; longer paths with the same start move too.
_R5_PATHS = {
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
    # The specification misspells the next two.
    "MedicationAdministration.effectiveDateTime": "MedicationAdministration.occurenceDateTime",
    "MedicationAdministration.effectivePeriod": "MedicationAdministration.occurencePeriod",
}
# Elements that only one of the two versions has, per type.
_VERSION_ELEMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Encounter": (("period", "hospitalization"), ("actualPeriod", "admission", "plannedStartDate")),
    "Procedure": (("performedDateTime", "performedPeriod"), ("occurrenceDateTime", "occurrencePeriod", "reported")),
    "MedicationRequest": (("medicationCodeableConcept", "medicationReference"), ("medication",)),
    "MedicationStatement": (("medicationCodeableConcept", "medicationReference"), ("medication",)),
    "MedicationAdministration": (("medicationCodeableConcept", "medicationReference"), ("medication",)),
}
VERSIONS = ("R4", "R5")


def r5_path(path: str) -> str:
    """Return the R5 path of an R4 path; the same path if both versions agree.

    >>> r5_path("Encounter.period.start")
    'Encounter.actualPeriod.start'
    """
    for head, moved in _R5_PATHS.items():
        if path == head or path.startswith(head + "."):
            return moved + path[len(head) :]
    return path


def version_of(resource: dict[str, Any]) -> str | None:
    """Return R4 or R5 if a resource shows its version, otherwise None."""
    signs = _VERSION_ELEMENTS.get(resource["resourceType"])
    if signs is None:
        return None
    kind = resource.get("class")
    if kind is not None and resource["resourceType"] == "Encounter":
        return "R5" if type(kind) is list else "R4"
    for version, names in zip(VERSIONS, signs, strict=True):
        if any(name in resource for name in names):
            return version
    return None


_PLAIN = re.compile(r"^[A-Za-z]+(\.[A-Za-z]+)*$")


def getter(column: FhirColumn) -> Getter:
    """Return a function that reads a column's value from a resource as text."""
    if column.read_as == "days":
        return _days(node_of(column.path), node_of(str(column.until)))
    node = node_of(column.path)
    if column.path.endswith(".reference"):
        return lambda resource: key_of(node(resource))
    if column.read_as == "date":
        return lambda resource: (as_text(node(resource)) or "")[:10] or None
    return lambda resource: as_text(node(resource))


def key_of(reference: Any) -> str | None:
    """Return the id at the end of a reference: `Patient/1`, an absolute address, a version or a `urn:uuid:`."""
    if type(reference) is not str or not reference:
        return None
    if "/_history/" in reference:
        reference = reference.partition("/_history/")[0]
    key: str = reference.rpartition("/")[2]
    return key.rpartition(":")[2] if key.startswith("urn:") else key


def reference_to(node: Any, kind: str) -> str | None:
    """Return the id in a Reference to a resource of this type; None for another type or a contained resource."""
    reference = node.get("reference") if type(node) is dict else None
    if type(reference) is not str or reference.startswith("#") or "?" in reference:
        return None
    plain, _, key = reference.partition("/")
    if plain == kind and "/" not in key and "type" not in node:  # the common case
        return key or None
    parts = reference.partition("/_history/")[0].split("/")
    if len(parts) > 1 and parts[-2] != kind:
        return None
    if node.get("type", kind) != kind:
        return None
    return key_of(reference) or None


def is_plain(path: str) -> bool:
    """Return whether a path is names joined by dots."""
    return _PLAIN.match(path) is not None


def node_of(path: str, *, parts: bool = False) -> Callable[[dict[str, Any]], Any]:
    """Return a function that reads the element at a path, in R4 or R5; with `parts`, the element may be an object."""
    _, _, rest = path.partition(".")
    if not rest:
        raise PolicyError(f"fhir.columns: '{path}' is a whole resource.", hint="Name one of its elements.")
    if not is_plain(path):
        return _fhirpath(path)
    r4, r5 = (_walk(tuple(version.split(".")[1:])) for version in (path, r5_path(path)))
    if r5_path(path) == path:
        return r4

    def either(resource: dict[str, Any]) -> Any:
        value = r4(resource)
        return r5(resource) if value is None or (not parts and type(value) in (dict, list)) else value

    return either


def _walk(names: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    def take(resource: dict[str, Any]) -> Any:
        node: Any = resource
        for name in names:
            if type(node) is list:
                node = node[0] if node else None
            if type(node) is not dict:
                return None
            node = node.get(name)
        if type(node) is list:
            return node[0] if node else None
        return node

    return take


def _fhirpath(path: str) -> Callable[[dict[str, Any]], Any]:
    with require_extra(f"The path '{path}' needs FHIRPath", "fhir"):
        import fhirpathpy
    try:
        compiled = fhirpathpy.compile(path)
    except Exception:  # noqa: BLE001 - the library's parser raises errors of many types
        raise PolicyError(f"fhir.columns: '{path}' is not valid FHIRPath.", hint="Correct the path.") from None

    def take(resource: dict[str, Any]) -> Any:
        try:
            values = compiled(resource, None)
        except Exception:  # noqa: BLE001 - its messages may quote values
            raise DataError(f"The path '{path}' cannot be evaluated on a resource.", hint="Correct the path.") from None
        return values[0] if values else None

    return take


def as_text(value: Any) -> str | None:
    """Return a value as the text of a cell; refuse an element with parts."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, dict | list):
        raise DataError("A path in fhir.columns leads to an element with parts.", hint="Name one of its parts.")
    return orjson.dumps(value, default=str).decode().strip('"')


def _days(start: Callable[[dict[str, Any]], Any], end: Callable[[dict[str, Any]], Any]) -> Getter:
    def take(resource: dict[str, Any]) -> str | None:
        first, last = start(resource), end(resource)
        if type(first) is not str or type(last) is not str:
            return None
        try:
            days = dt.date.fromisoformat(last[:10]) - dt.date.fromisoformat(first[:10])
        except ValueError:
            return None
        return str(days.days)

    return take
