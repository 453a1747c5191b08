"""Write published cells as FHIR elements: partial dates, truncated codes, ranges, or an absent value with its reason.

Every element is built here from a cell of a release. This module never sees an input resource, so none can leak.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson

from reticent.connectors.fhir.paths import r5_path

Cell = str | tuple[str | None, ...] | None
ElementSetter = Callable[[dict[str, Any], Cell], None]

BASE = "https://reticent.readthedocs.io/fhir/StructureDefinition"
CANDIDATES, GENERALIZED, GUARANTEE = (
    f"{BASE}/{name}" for name in ("candidate-values", "generalised-value", "guarantee")
)
ABSENT = "http://hl7.org/fhir/StructureDefinition/data-absent-reason"
_REASONS = "http://terminology.hl7.org/CodeSystem/data-absent-reason"
_ACT = "http://terminology.hl7.org/CodeSystem/v3-ActCode"
_DATE = re.compile(r"^\d{4}(-\d{2}(-\d{2})?)?$")
_RANGE = re.compile(r"^\[(-?[\d.]+), (-?[\d.]+)\)$")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?$")
_GENDERS = ("male", "female", "other", "unknown")
ANY = "*"

# Elements for which FHIR accepts a Period in place of a dateTime.
_PERIODS = (
    *("Condition.onsetDateTime", "Observation.effectiveDateTime", "Procedure.performedDateTime"),
    *("MedicationStatement.effectiveDateTime", "MedicationAdministration.effectiveDateTime"),
    "DiagnosticReport.effectiveDateTime",
)
_DATES = (
    *("Patient.birthDate", "Patient.deceasedDateTime", "Encounter.period.start", "Encounter.period.end"),
    *("MedicationRequest.authoredOn", "Immunization.occurrenceDateTime", *_PERIODS),
)
_QUARTER = re.compile(r"^(\d{4})-Q([1-4])$")
_DECADE = re.compile(r"^(\d{3})0s$")
_CONCEPTS = re.compile(r"^\w+\.(code|vaccineCode|medicationCodeableConcept)\.coding\.code$")


def setter(path: str, version: str, system: str | None = None) -> ElementSetter | None:
    """Return a function that writes a cell at a path of a resource, or None if the path cannot be written."""
    names = (r5_path(path) if version == "R5" else path).split(".")[1:]
    if path in _DATES or path == "Patient.gender":
        date = _date_or_period if path in _PERIODS else _date
        return _nested_setter(names, _gender if path == "Patient.gender" else date)
    if path in ("Patient.address.state", "Patient.address.postalCode"):
        return _address_setter(names[1])
    if path == "Encounter.class.code":
        return _class_setter(version)
    if path == "Observation.valueQuantity.value":
        return _quantity
    if _CONCEPTS.match(path):
        return _nested_setter(names[: names.index("coding")], lambda name, cell: {name: concept(cell, system)})
    return None


def absent(reason: str, label: str | None = None) -> dict[str, Any]:
    """Return an element without a value: the reason, and the generalized label if there is one."""
    extensions: list[dict[str, Any]] = [{"url": ABSENT, "valueCode": reason}]
    if label is not None:
        extensions.append({"url": GENERALIZED, "valueString": label})
    return {"extension": extensions}


@lru_cache(maxsize=1 << 16)
def concept(cell: Cell, system: str | None = None) -> orjson.Fragment:
    """Return a CodeableConcept as JSON: the code, a coarser node, the candidates, or the reason for its absence."""
    return orjson.Fragment(orjson.dumps(_concept_of(cell, system)))


def _concept_of(cell: Cell, system: str | None) -> dict[str, Any]:
    if isinstance(cell, tuple):
        values = [{"url": "value", "valueCoding": _coding_of(code, system)} for code in cell if code is not None]
        return {"extension": [{"url": ABSENT, "valueCode": "masked"}, {"url": CANDIDATES, "extension": values}]}
    if cell is None:
        return absent("unknown")
    if cell == ANY:
        return absent("masked")
    # A block or chapter of ICD-10 contains a dash or a blank; an ICD-10 code does not.
    if cell.endswith(ANY) or ("icd-10" in (system or "") and re.search(r"[-\s]", cell)):
        return {"extension": [{"url": GENERALIZED, "valueString": cell}], "text": cell}
    return {"coding": [_coding_of(cell, system)]}


def _coding_of(code: str, system: str | None) -> dict[str, Any]:
    return {"system": system, "code": code} if system else {"code": code}


def _nested_setter(names: list[str], write: Callable[[str, Cell], dict[str, Any]]) -> ElementSetter:
    """Return a setter that creates the outer elements and writes into the innermost one."""
    *outer, name = names

    def put(resource: dict[str, Any], cell: Cell) -> None:
        for step in outer:
            resource = resource.setdefault(step, {})
        resource |= write(name, cell)

    return put


@lru_cache(maxsize=1 << 16)
def _date(name: str, cell: Cell) -> dict[str, Any]:
    if cell is None:
        return {} if name in ("deceasedDateTime", "end") else {f"_{name}": absent("unknown")}
    if _DATE.match(str(cell)):
        return {name: cell}
    return {f"_{name}": absent("masked", None if cell == ANY else str(cell))}


@lru_cache(maxsize=1 << 16)
def _date_or_period(name: str, cell: Cell) -> dict[str, Any]:
    """Write a quarter or a decade as a Period from its first month or year to its last."""
    period = f"{name.removesuffix('DateTime')}Period"
    if match := _QUARTER.match(str(cell)):
        last = 3 * int(match[2])
        return {period: {"start": f"{match[1]}-{last - 2:02d}", "end": f"{match[1]}-{last:02d}"}}
    if match := _DECADE.match(str(cell)):
        return {period: {"start": f"{match[1]}0", "end": f"{match[1]}9"}}
    return _date(name, cell)


@lru_cache(maxsize=64)
def _gender(name: str, cell: Cell) -> dict[str, Any]:
    if cell is None or cell in _GENDERS:
        return {name: cell or "unknown"}
    return {f"_{name}": absent("masked", None if cell == ANY else str(cell))}


def _address_setter(name: str) -> ElementSetter:
    def put(resource: dict[str, Any], cell: Cell) -> None:
        place = resource.setdefault("address", [{}])[0]
        place |= _text(name, cell)

    return put


@lru_cache(maxsize=1 << 14)
def _text(name: str, cell: Cell) -> dict[str, Any]:
    if cell is None:
        return {f"_{name}": absent("unknown")}
    text = str(cell)
    if text == ANY:
        return {f"_{name}": absent("masked")}
    if text.endswith(ANY):
        return {name: text.rstrip(ANY), f"_{name}": {"extension": [{"url": GENERALIZED, "valueString": text}]}}
    return {name: text}


def _class_setter(version: str) -> ElementSetter:
    def put(resource: dict[str, Any], cell: Cell) -> None:
        known = isinstance(cell, str) and cell != ANY
        coding = _coding_of(str(cell), _ACT) if known else absent("masked" if cell else "unknown")
        resource["class"] = coding if version == "R4" else [{"coding": [coding]} if known else coding]

    return put


def _quantity(resource: dict[str, Any], cell: Cell) -> None:
    span = _RANGE.match(str(cell))
    if span is not None:
        resource["valueRange"] = {"low": {"value": _number(span[1])}, "high": {"value": _number(span[2])}}
    elif cell is not None and _NUMBER.match(str(cell)):
        resource["valueQuantity"] = {"value": _number(str(cell))}
    else:
        code = "unknown" if cell is None else "masked"
        resource["dataAbsentReason"] = {"coding": [{"system": _REASONS, "code": code}]}
        if cell not in (None, ANY):
            resource.setdefault("extension", []).append({"url": GENERALIZED, "valueString": str(cell)})


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)
