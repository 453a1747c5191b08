"""Options that several commands share, spelt the same everywhere, and groups of commands."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem


class PathOrUrl(click.types.StringParamType):
    """A path or an address; the shell completes it as a path."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Lets the shell list files."""
        return [CompletionItem(incomplete, type="file")]


PATH_OR_URL = PathOrUrl()
PATH = click.Path(path_type=Path)
EXISTING_PATH = click.Path(path_type=Path, exists=True)

data = click.argument(
    "data", type=PATH_OR_URL, help="CSV, Parquet, Arrow IPC or NDJSON; a FHIR export; a database URL."
)
store = click.argument("store", type=PATH_OR_URL, metavar="STORE", help="A file, or a postgresql:// URL.")
policy_file = click.option("--policy", "-p", type=PATH, required=True, help="The policy file (YAML, JSON or TOML).")
output_folder = click.option("--output", "-o", type=PATH, required=True, help="A new folder for the release.")
seed = click.option("--seed", type=int, help="Make it repeatable: for tests and reproductions only.")
json = click.option("--json", is_flag=True, help="Print one JSON object as the last line of standard output.")
format = click.option("form", "--format", default="csv", help="csv or parquet.")  # noqa: A001 - the word of the command line
method = click.option("--method", help="Instead of the policy's method for this kind of release.")
allow_republication = click.option(
    "--allow-republication",
    is_flag=True,
    help="Allow people who were already released from this store. The release records this.",
)


class OrderedGroup(click.Group):
    """Lists its commands in the order in which they were written, and helps whoever gives none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """As written."""
        return list(self.commands)
