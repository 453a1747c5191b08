"""The population that k-map looks at: a table beside the policy, its quasi-identifiers as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pacsv

from reticent.errors import PolicyError
from reticent.policy.missing import without_markers

if TYPE_CHECKING:
    from reticent.policy.policy import Policy


def read_population(policy: Policy, file: str) -> pa.Table:
    """The quasi-identifiers of everybody in the file.

    Raises:
        PolicyError: it is no CSV file with a column for each quasi-identifier.
    """
    names = list(policy.quasi)
    options = pacsv.ConvertOptions(
        include_columns=names,
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
    )
    try:
        return without_markers(pacsv.read_csv(policy.path(file), convert_options=options), policy.missing)
    except (OSError, pa.ArrowException, KeyError):
        raise PolicyError(
            "privacy.k_map: the population cannot be read.",
            hint="Give a CSV file with commas and a column for each quasi-identifier.",
        ) from None
