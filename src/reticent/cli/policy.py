"""`reticent policy`: check a policy, or print the JSON Schema of policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.output import emit, say

if TYPE_CHECKING:
    from reticent.policy import Policy

app = options.OrderedGroup(help="Check a policy, or print the JSON Schema of policies.")


@app.command()
@click.argument("file", type=options.PATH, help="The policy file.")
@options.json
def check(file: Path, json: bool) -> None:
    """Check a policy and every file that it names, and explain each setting."""
    from reticent.policy import Policy
    from reticent.policy.check import check as check_policy

    policy = Policy.load(file)
    notes = check_policy(policy)
    _build_engines(policy)
    say(f"{file}: the policy is valid.")
    for note in notes:
        say(f"  - {note}")
    if json:
        emit({"sound": True, "hash": policy.hash, "notes": notes})


def _build_engines(policy: Policy) -> None:
    """Build the engine of each section in the policy: an engine refuses settings that cannot work."""
    from reticent.engine import publisher
    from reticent.engine.rng import Rng
    from reticent.policy.check import KINDS

    for kind in KINDS:
        if kind in policy.model_fields_set:
            publisher(policy, kind, getattr(policy, kind).method, rng=Rng.fresh())


@app.command()
def schema() -> None:
    """Print the JSON Schema of policies, for your editor."""
    from reticent.policy.schema import schema as policy_schema

    emit(policy_schema())
