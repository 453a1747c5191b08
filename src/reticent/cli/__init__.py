"""The command line: a command parses, calls the public API, prints. One file per command, loaded when it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

# Command -> module that holds a function of that name, or a typer app called `app`.
COMMANDS = {
    "risk": "reticent.cli.risk",
    "init": "reticent.cli.init",
    "policy": "reticent.cli.policy",
    "prior": "reticent.cli.prior",
    "anonymize": "reticent.cli.anonymize",
    "stream": "reticent.cli.stream",
    "evolve": "reticent.cli.evolve",
    "republish": "reticent.cli.republish",
    "verify": "reticent.cli.verify",
    "audit": "reticent.cli.audit",
    "export": "reticent.cli.export",
    "store": "reticent.cli.store",
    "ledger": "reticent.cli.ledger",
    "keys": "reticent.cli.keys",
    "datasets": "reticent.cli.datasets",
    "reproduce": "reticent.cli.reproduce",
    "serve": "reticent.cli.serve",
    "token": "reticent.cli.token",
    "demo": "reticent.cli.demo",
}


class Lazy(TyperGroup):
    """Imports a command's module only when that command, or the list of all, is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """In the order a newcomer meets them."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command, or says which one was probably meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from reticent.errors import PolicyError
            from reticent.policy.section import unknown

            raise PolicyError(f"reticent: {unknown(args[0], tuple(COMMANDS))}", hint="See: reticent --help")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The click command behind a name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name])
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command(cmd_name)(getattr(module, cmd_name))
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command


app = typer.Typer(cls=Lazy, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"reticent {version('reticent')}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Releases health data that keeps changing, without telling who has what."""


class _NoPandas:
    """Hides pandas: pyarrow loads it wherever it is installed, though no command uses it; it costs 0.3 s and 60 MB."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG004 - the import system's words
        """Refuses pandas and leaves everything else to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def entry() -> None:
    """The `reticent` command in a process of its own."""
    sys.meta_path.insert(0, _NoPandas)
    main()


def main(args: list[str] | None = None) -> Any:
    """Runs a command and turns every error into a message and an exit code."""
    from reticent.cli.failure import explain

    try:
        app(args)
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback may show a cell
        sys.exit(explain(error))
    except KeyboardInterrupt:
        sys.exit(130)
