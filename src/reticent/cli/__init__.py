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
    "drafts": "reticent.cli.drafts",
    "stream": "reticent.cli.stream",
    "evolve": "reticent.cli.evolve",
    "republish": "reticent.cli.republish",
    "verify": "reticent.cli.verify",
    "audit": "reticent.cli.audit",
    "board": "reticent.cli.board",
    "ask": "reticent.cli.ask",
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
    version: bool = typer.Option(  # noqa: ARG001 - its callback has printed it
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="No words on standard error but errors; anywhere on the line."),
    verbose: bool = typer.Option(False, "--verbose", help="Say what is being done; anywhere on the line."),
) -> None:
    """Releases health data that keeps changing, without telling who has what."""
    if quiet:
        from reticent.cli.output import be_quiet

        be_quiet()
    if verbose:
        import logging

        logging.basicConfig(format="%(relativeCreated)d ms %(name)s: %(message)s")
        logging.getLogger("reticent").setLevel(logging.DEBUG)


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


def _in_front(args: list[str]) -> list[str]:
    """The options of every command may stand anywhere before `--`; they are moved to where they are read."""
    end = args.index("--") if "--" in args else len(args)
    ours = [word for word in args[:end] if word in ("--quiet", "--verbose")]
    return ours + [word for word in args[:end] if word not in ours] + args[end:]


def main(args: list[str] | None = None) -> Any:
    """Runs a command and turns every error into a message and an exit code."""
    from reticent.cli.failure import explain

    try:
        app(_in_front(sys.argv[1:] if args is None else args))
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback may show a cell
        sys.exit(explain(error))
    except KeyboardInterrupt:
        sys.exit(130)
