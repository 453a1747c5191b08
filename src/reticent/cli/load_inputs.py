"""What every command that makes a release of a table does first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reticent.cli.progress import working

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy import Policy


def load_inputs(
    data: str, policy: str | Path, output: str | Path | None, kind: str = "table", method: str | None = None
) -> tuple[pa.Table | str, Policy]:
    """Reads the policy and the data; refuses early what must be refused, before anything long begins.

    Linked tables are left to whoever releases them: the data comes back as it was named.
    """
    from reticent.connectors.inputs import read_input
    from reticent.policy import Policy
    from reticent.policy.check import check
    from reticent.release.folder import refuse_taken

    rules = Policy.load(policy).with_method(kind, method)
    check(rules)
    if output is not None:
        refuse_taken(Path(output))
    if rules.tables is not None:
        return data, rules
    with working("Reading"):
        return read_input(data, rules), rules
