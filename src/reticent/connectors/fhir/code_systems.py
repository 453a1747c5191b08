"""Systems that codes are of: kept beside a release where all codes of a column are of one that is known.

Only addresses of this list are kept, so that nothing that an export calls a system can leave with a release.
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
"""The systems that are told."""
_CODE = ".coding.code"


class CodeSystems:
    """Notes the system of every code that is read, in passing."""

    def __init__(self) -> None:
        self._seen: dict[str, set[Any]] = {}

    def getter(self, name: str, column: FhirColumn) -> Getter:
        """What takes a column's value out of a resource; where it is the code of a coding, with a look at its system."""
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
        """The system of each column whose codes are all of one known system, and those of several or unknown ones."""
        one = {name: next(iter(seen)) for name, seen in self._seen.items() if len(seen) == 1 and seen <= KNOWN_SYSTEMS}
        return one, [name for name, seen in self._seen.items() if seen - {None} and name not in one]
