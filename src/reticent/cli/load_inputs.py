"""What every command that makes a release of a table does first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.policy import Policy


def load_inputs(data: str, policy: str | Path, output: str | Path) -> tuple[pa.Table, Policy]:
    """Reads the policy and the data; refuses early what must be refused, before anything long begins."""
    from reticent.cli.output import working
    from reticent.connectors.inputs import read_input
    from reticent.policy import Policy
    from reticent.policy.check import check
    from reticent.release.folder import refuse_taken

    rules = Policy.load(policy)
    check(rules)
    refuse_taken(Path(output))
    with working("Reading"):
        return read_input(data, rules), rules
