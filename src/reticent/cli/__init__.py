"""The command line. Each command has one file that parses, calls the public API and prints; it is loaded on use."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
from importlib import import_module
from typing import Any

import click

from reticent.cli.completion import completion
from reticent.cli.options import OrderedGroup

# Command -> module with a click command of that name, or a group called `app`.
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
    "report": "reticent.cli.report",
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


class LazyGroup(OrderedGroup):
    """Imports a command's module only for that command, or for the list of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order in which a new user needs them."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest a similar one."""
        _refuse_former_names(args)
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from reticent.errors import PolicyError
            from reticent.policy.spec import unknown_word_message

            raise PolicyError(
                f"reticent: {unknown_word_message(args[0], tuple(COMMANDS))}", hint="See: reticent --help"
            )
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the click command of a name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name])
        command: click.Command = getattr(module, "app", None) or getattr(module, cmd_name)
        command.name = cmd_name
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An interrupt exits with code 130; a closed output pipe is not an error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            print("Stopped.", file=sys.stderr)  # noqa: T201
            raise click.exceptions.Exit(130) from None
        except BrokenPipeError as error:
            from reticent.cli.failure import explain

            raise click.exceptions.Exit(explain(error)) from None
        return result


def _refuse_former_names(args: list[str]) -> None:
    """Refuse a command or an option that has another name now, and say which."""
    from reticent.policy import former

    names = {
        word: former.OPTIONS.get(word.split("=")[0]) for word in args[1 : args.index("--") if "--" in args else None]
    }
    for old, new in ({args[0]: former.COMMANDS.get(args[0])} | names if args else {}).items():
        if new is not None:
            from reticent.errors import PolicyError

            raise PolicyError(f"'{old.split('=')[0]}' is now called '{new}'.", hint=f"Write {new} instead.")


@click.group(cls=LazyGroup, context_settings={"show_default": True})
@click.version_option(
    package_name="reticent", prog_name="reticent", message="%(prog)s %(version)s", help="Print the version."
)
@click.option("--quiet", is_flag=True, help="Print errors only.")
@click.option("--verbose", is_flag=True, help="Print each step with its time.")
@completion("--install-completion", "install", "Install tab completion for this shell or the named one.")
@completion("--show-completion", "script", "Print the tab completion script for this shell or the named one.")
def app(quiet: bool, verbose: bool) -> None:
    """Release health data that keeps changing, without disclosing who has what."""
    if quiet:
        from reticent.cli.output import be_quiet

        be_quiet()
    if verbose:
        import logging

        logging.basicConfig(format="%(relativeCreated)d ms %(name)s: %(message)s")
        logging.getLogger("reticent").setLevel(logging.DEBUG)


class _NoPandas:
    """Hides pandas: pyarrow imports it if it is installed, which costs 0.3 s and 60 MB. No command uses it."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG004 - the import system's words
        """Refuse pandas and leave everything else to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def entry() -> None:
    """Run the `reticent` command as a process."""
    sys.meta_path.insert(0, _NoPandas)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal may not be able to show a column name
    exit_codes: list[int] = []
    atexit.register(_exit_process, exit_codes)  # registered first, called last
    try:
        main()
    except SystemExit as end:
        exit_codes += [end.code or 0] if end.code is None or isinstance(end.code, int) else []
        raise


def _exit_process(exit_codes: list[int]) -> None:
    """End the process at once: freeing a million objects one by one takes 0.2 s."""
    with contextlib.suppress(OSError, ValueError, AttributeError, IndexError):
        code = exit_codes[0]
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _move_global_options(args: list[str]) -> list[str]:
    """Move the global options, which may be anywhere before `--`, to the front."""
    end = args.index("--") if "--" in args else len(args)
    global_options = [word for word in args[:end] if word in ("--quiet", "--verbose")]
    return global_options + [word for word in args[:end] if word not in global_options] + args[end:]


def main(args: list[str] | None = None) -> Any:
    """Run a command and turn every error into a message and an exit code."""
    from reticent.cli.failure import explain

    try:
        app(_move_global_options(sys.argv[1:] if args is None else args), prog_name="reticent")
    except Exception as error:  # noqa: BLE001 - the last line of defense: no traceback may show a cell
        sys.exit(explain(error))
    except KeyboardInterrupt:
        sys.exit(130)
