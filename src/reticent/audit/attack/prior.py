"""The prior a policy publishes: how often each value occurred in the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from reticent.errors import DataError

if TYPE_CHECKING:
    from reticent.policy import Policy


def prior_counts(policy: Policy) -> dict[str | None, float] | None:
    """Value -> count of the past from the policy's stream section; None when it names no file."""
    if policy.stream.prior is None:
        return None
    options = pa.csv.ConvertOptions(column_types={"value": pa.string(), "count": pa.float64()})
    try:
        table = pa.csv.read_csv(policy.path(policy.stream.prior.file), convert_options=options)
        return dict(zip(table["value"].to_pylist(), table["count"].to_pylist(), strict=True))
    except (OSError, pa.ArrowException, KeyError):
        raise DataError(
            "stream.prior: the file cannot be read.", hint="It holds two columns with a head: value,count."
        ) from None
