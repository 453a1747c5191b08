"""Record the code system of a column for the release, if all its codes come from one known system.

Only addresses on this list are recorded, so that no other text of an export can leave with a release.
"""

from __future__ import annotations

from typing import Any

from reticent.connectors.fhir.paths import Getter, as_text, getter, is_plain, node_of
from reticent.policy.settings.inputs import FhirColumn

ICD10 = "http://hl7.org/fhir/sid/icd-10"
KNOWN_SYSTEMS = frozenset(
    (
        "http://snomed.info/sct",
        "http://loinc.org",
        "http://www.nlm.nih.gov/research/umls/rxnorm",
        "http://www.whocc.no/atc",
        "http://www.ama-assn.org/go/cpt",
        "http://id.who.int/icd/release/11/mms",
        "http://terminology.hl7.org/CodeSystem/icd-o-3",
        "http://fhir.de/CodeSystem/bfarm/icd-10-gm",
        "http://fhir.de/CodeSystem/bfarm/ops",
        "http://fhir.de/CodeSystem/bfarm/atc",
        *(f"http://hl7.org/fhir/sid/{name}" for name in ("icd-10", "icd-10-cm", "icd-9-cm", "cvx", "ndc")),
    )
)
"""The code systems that a release may name."""
_CODE = ".coding.code"


class CodeSystems:
    """Collects the systems of the codes that are read."""

    def __init__(self) -> None:
        self._seen: dict[str, set[Any]] = {}

    def getter(self, name: str, column: FhirColumn) -> Getter:
        """Return a function that reads a column's value from a resource and, for a code, records its system."""
        if not column.path.endswith(_CODE) or not is_plain(column.path):
            return getter(column)
        seen = self._seen[name] = set()
        coding = node_of(column.path.removesuffix(".code"), parts=True)

        def take(resource: dict[str, Any]) -> str | None:
            node = coding(resource)
            code = node.get("code") if type(node) is dict else None
            if code is not None:
                system = node.get("system")
                seen.add(system if type(system) is str else None)
            return as_text(code)

        return take

    def resolve(self) -> tuple[dict[str, str], list[str]]:
        """Return the known system of each column that has one, and the columns with several or unknown systems."""
        known = {
            name: next(iter(seen)) for name, seen in self._seen.items() if len(seen) == 1 and seen <= KNOWN_SYSTEMS
        }
        return known, [name for name, seen in self._seen.items() if seen - {None} and name not in known]
