"""A policy for each kind of synthetic data, with a reason for each choice: a start to copy from."""

from pathlib import Path

from reticent.errors import PolicyError


def policy_yaml(kind: str) -> str:
    """The policy for ``hospital``, ``visits``, ``series``, ``feed``, ``fhir``, ``omop`` (``-linked`` for several tables), ``adt``, ``nps`` or a census layout, as the text of a YAML file."""
    known = {file.stem: file for file in Path(__file__).parent.glob("*.yaml")}
    if kind not in known:
        raise PolicyError("There is no such kind of data.", hint=f"Choose one of: {', '.join(sorted(known))}.")
    return known[kind].read_text(encoding="utf-8")
