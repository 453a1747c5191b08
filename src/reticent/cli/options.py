"""Options that several commands share, and groups of commands."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem


class PathOrUrl(click.types.StringParamType):
    """A path or a URL. The shell completes it as a path."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Let the shell list files."""
        return [CompletionItem(incomplete, type="file")]


PATH_OR_URL = PathOrUrl()
PATH = click.Path(path_type=Path)
EXISTING_PATH = click.Path(path_type=Path, exists=True)

data = click.argument(
    "data", type=PATH_OR_URL, help="CSV, Parquet, Arrow IPC or NDJSON file; FHIR export; database URL."
)
store = click.argument("store", type=PATH_OR_URL, metavar="STORE", help="Store: a file or a postgresql:// URL.")
policy_file = click.option("--policy", "-p", type=PATH, required=True, help="Policy file (YAML, JSON or TOML).")
output_folder = click.option("--output", "-o", type=PATH, required=True, help="New folder for the release.")
seed = click.option("--seed", type=int, help="Make the result repeatable. For tests only; do not publish it.")
json = click.option("--json", is_flag=True, help="Print one JSON object as the last line of standard output.")
format = click.option("form", "--format", default="csv", help="File format: csv or parquet.")  # noqa: A001 - the option's name
method = click.option("--method", help="Method to use instead of the one in the policy.")
allow_republication = click.option(
    "--allow-republication",
    is_flag=True,
    help="Allow people who were already released from this store. The release records this.",
)


class OrderedGroup(click.Group):
    """Lists its commands in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order of their definition."""
        return list(self.commands)
