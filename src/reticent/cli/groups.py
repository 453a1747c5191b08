"""Commands that hold others."""

from __future__ import annotations

import click


class Ordered(click.Group):
    """Lists its commands in the order in which they were written, and helps whoever gives none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """As written."""
        return list(self.commands)
