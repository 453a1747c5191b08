"""Methods of earlier versions that are no more."""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def _not_sealed(method: Any) -> Any:
    if method == "sealed":
        raise PydanticCustomError(
            "gone",
            "'sealed' is no more: readers who knew how values depend on age, sex or ward undid its groups. Write method: veil, "
            "which needs prior: {file: prior.csv} (public statistics, or reticent prior PAST), person: and a store of its own.",
        )
    return method


refuse_sealed = BeforeValidator(_not_sealed)
"""Marks a method that may have been `sealed` once."""
