"""The JSON Schema of policies, including the short forms."""

from __future__ import annotations

from typing import Any

from reticent.policy.policy import Policy
from reticent.policy.privacy import L_KINDS, T_KINDS
from reticent.policy.spec import ROLES


def schema() -> dict[str, Any]:
    """Return a JSON Schema that editors use to complete and check a policy file."""
    whole = Policy.model_json_schema()
    parts = whole["$defs"]
    parts["Column"] = {"anyOf": [{"enum": list(ROLES)}, parts["Column"]]}
    parts["LSpec"] = {"anyOf": [{"type": "number", "exclusiveMinimum": 1}, _one_of(L_KINDS)]}
    parts["TSpec"] = {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, _one_of(T_KINDS)]}
    parts["PersonSettings"] = {"anyOf": [{"type": "string"}, parts["PersonSettings"]]}
    parts["FhirColumn"] = {"anyOf": [{"type": "string"}, parts["FhirColumn"]]}
    for name in ("FhirSettings", "SqlSettings", "Hl7Settings"):  # the short form names a built-in mapping
        const = parts[name]["properties"]["mapping"]["anyOf"][0]["const"]
        parts[name] = {"anyOf": [{"enum": [const]}, parts[name]]}
    parts["LinkedSettings"] = {
        "anyOf": [
            {"enum": ["fhir", "omop"]},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/LinkedTable"}},
            parts["LinkedSettings"],
        ]
    }
    parts["TransformSpec"] = {"anyOf": [{"const": "drop"}, parts["TransformSpec"]]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Reticent policy", **whole}


def _one_of(kinds: tuple[str, ...]) -> dict[str, Any]:
    entry: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}
    return {
        "type": "object",
        "properties": dict.fromkeys(kinds, entry),
        "additionalProperties": False,
        "maxProperties": 1,
        "minProperties": 1,
    }
