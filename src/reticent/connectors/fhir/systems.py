"""Systems that codes are of: kept beside a release where all codes of a column are of one that is known.

Only addresses of this list are kept, so that nothing that an export calls a system can leave with a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reticent.connectors.fhir.paths import node_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reticent.policy.settings.inputs import FhirColumn

ICD10 = "http://hl7.org/fhir/sid/icd-10"
SYSTEMS = frozenset(
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


class Systems:
    """Looks at the system of every code that is read."""

    def __init__(self, columns: Mapping[str, FhirColumn]) -> None:
        self._seen: dict[str, set[Any]] = {}
        self._take: dict[str, list[tuple[Callable[[dict[str, Any]], Any], Callable[[dict[str, Any]], Any], set[Any]]]]
        self._take = {}
        for name, column in columns.items():
            if column.path.endswith(_CODE):
                seen = self._seen[name] = set()
                head = column.path.removesuffix("code")
                parts = (node_of(column.path), node_of(f"{head}system"), seen)
                self._take.setdefault(column.resource, []).append(parts)

    def look(self, kind: str, resource: dict[str, Any]) -> None:
        """Takes in the systems of one resource."""
        for code, system, seen in self._take.get(kind, ()):
            if len(seen) < 2 and code(resource) is not None:
                found = system(resource)
                seen.add(found if type(found) is str else None)

    def told(self) -> tuple[dict[str, str], list[str]]:
        """The system of each column whose codes are all of one known system, and those of several or unknown ones."""
        one = {name: next(iter(seen)) for name, seen in self._seen.items() if len(seen) == 1 and seen <= SYSTEMS}
        return one, [name for name, seen in self._seen.items() if seen - {None} and name not in one]
