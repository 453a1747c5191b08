"""Former public names and their successors, for error messages: Reticent refuses an old name and names the new one."""

from __future__ import annotations

POLICY_KEYS = {
    "KindSection": {"model": "method", "strategy": "method"},
    "PriorSettings": {"unit": "household", "order": "value_order", "totals": "counts"},
    "HierarchySpec": {"written": "format"},
    "Column": {"identifier": "transform", "normalise": "normalize"},
    "SeriesSettings": {"max_held": "max_withheld"},
}
"""Section of a policy -> old key -> new key."""

OPTIONS = {"--despite-ledger": "--allow-republication"}
"""Old option -> new option."""

COMMANDS = {"board": "report"}
"""Old command -> new command."""
