"""A policy for each kind of synthetic data, with comments; copy one to start your own."""

from pathlib import Path

from reticent.errors import PolicyError


def policy_yaml(kind: str) -> str:
    """Return the policy for a kind of data as YAML text.

    Kinds are ``hospital``, ``visits``, ``series``, ``feed``, ``fhir``, ``omop`` (``-linked`` for several tables),
    ``adt``, ``nps`` and the census layouts.
    """
    known = {file.stem: file for file in Path(__file__).parent.glob("*.yaml")}
    if kind not in known:
        raise PolicyError(
            "There is no policy for this kind of data.", hint=f"Choose one of: {', '.join(sorted(known))}."
        )
    return known[kind].read_text(encoding="utf-8")
