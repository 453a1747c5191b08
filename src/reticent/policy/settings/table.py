"""The `table` section: one table, released once."""

from __future__ import annotations

from typing import Literal

from reticent.policy.section import Section

Loss = Literal["loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy"]


class TableSettings(Section):
    """How one table is released."""

    method: Literal["optimal", "supervised", "local", "mondrian", "anatomy"] = "optimal"
    loss: Loss = "loss"
