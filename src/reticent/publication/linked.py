"""Releases several tables of the same persons, once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from reticent.engine.linked import release_tables
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.publication.gate import VerifiedRelease, pass_gate, require_verification
from reticent.verify.linked.verifier import compare_with_original
from reticent.verify.published import read_release

LOG = logging.getLogger(__name__)
LAYOUT = "linked"
"""The metadata file that names the standard of the tables, such as FHIR R4."""


def publish(
    tables: Mapping[str, pa.Table],
    policy: Policy,
    *,
    seed: int | None = None,
    standard: Mapping[str, Any] | None = None,
    not_covered: tuple[str, ...] = (),
) -> VerifiedRelease:
    """Release linked tables, given by name, and verify the result.

    The release records the source format (`standard`), such as FHIR R4, so that it can be written back in this format.

    Raises:
        GuaranteeError: the policy cannot be met.
    """
    tables = {name: without_markers(table, policy.missing) for name, table in tables.items()}
    linked = release_tables(tables, policy, Rng.fresh() if seed is None else Rng.from_seed(seed))
    for reason, count in linked.suppressed.items():
        LOG.warning("%s: %s rows.", reason, f"{count:,}")
    release = linked.release
    if standard is not None:
        release = replace(release, metadata={**release.metadata, LAYOUT: dict(standard)})
    require_verification(compare_with_original(read_release(release, ""), policy, tables, linked.source_rows))
    return pass_gate(release, policy, "table", not_covered=not_covered)
