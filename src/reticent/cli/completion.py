"""Tab completion of commands and options: the script for each shell and its location."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
from click.decorators import FC
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_NAME = "reticent"
VARIABLE = "_RETICENT_COMPLETE"
"""The environment variable of a shell's completion request."""
_CURRENT = "this one"


def completion(option: str, action: str, words: str) -> Callable[[FC], FC]:
    """Return a global option that installs tab completion or prints its script, with an optional shell name."""

    def act(context: click.Context, _: click.Parameter, shell: str | None) -> None:
        if shell is None or context.resilient_parsing:
            return
        name = current_shell() if shell == _CURRENT else shell
        if name not in SHELLS:
            raise click.UsageError(f"Name your shell after {option}: {', '.join(SHELLS)}.")
        click.echo(install(context.command, name) if action == "install" else script(context.command, name))
        context.exit()

    return click.option(
        option,
        is_flag=False,
        flag_value=_CURRENT,
        metavar="[SHELL]",
        callback=act,
        expose_value=False,
        is_eager=True,
        help=words,
    )


def current_shell() -> str:
    """Return the name of the current shell from the environment, or an empty text."""
    return Path(os.environ.get("SHELL", "")).stem or ("powershell" if os.name == "nt" else "")


def script(command: click.Command, shell: str) -> str:
    """Return the completion script of a shell."""
    kind = get_completion_class("powershell" if shell == "pwsh" else shell)
    return "" if kind is None else kind(command, {}, _NAME, VARIABLE).source()


@add_completion_class
class PowerShellComplete(ShellComplete):
    """Completion for PowerShell: reads line and word from the environment, and returns values and help separated by tabs."""

    name = "powershell"
    source_template = Path(__file__).with_suffix(".ps1").read_text(encoding="utf-8")

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the incomplete one, and the incomplete word."""
        word = os.environ.get("RETICENT_COMPLETE_WORD", "")
        try:
            words = shlex.split(os.environ.get("RETICENT_COMPLETE_LINE", ""), posix=False)[1:]
        except ValueError:  # a quote is still open
            words = []
        return words[:-1] if word and words else words, word

    def format_completion(self, item: CompletionItem) -> str:
        """Return one line for PowerShell."""
        return f"{item.value}\t{item.help or ''}"


class _ScriptFiles(NamedTuple):
    """The script's file; and the shell's startup file and the line in it that loads the script, if the shell needs them."""

    file: Path
    start: Path | None = None
    line: str = ""


def install(command: click.Command, shell: str) -> str:
    """Write the script to the shell's location. Return what to do next."""
    text, place = script(command, shell), _script_files(shell)
    place.file.parent.mkdir(parents=True, exist_ok=True)
    place.file.write_text(text, encoding="utf-8")
    if place.start is not None:
        known = place.start.read_text(encoding="utf-8") if place.start.is_file() else ""
        if place.line not in known.splitlines():
            place.start.parent.mkdir(parents=True, exist_ok=True)
            gap = "" if not known or known.endswith("\n") else "\n"
            place.start.write_text(f"{known}{gap}{place.line}\n", encoding="utf-8")
    return f"Completion for {shell} is in {place.file}. Open a new terminal to use it."


def _script_files(shell: str) -> _ScriptFiles:
    home = Path.home()
    if shell == "bash":
        file = home / ".bash_completions" / f"{_NAME}.sh"
        return _ScriptFiles(file, home / ".bashrc", f"source '{file}'")
    if shell == "zsh":
        file = home / ".zfunc" / f"_{_NAME}"
        return _ScriptFiles(file, home / ".zshrc", f"autoload -Uz compinit; compinit; source '{file}'")
    if shell == "fish":
        return _ScriptFiles(home / ".config" / "fish" / "completions" / f"{_NAME}.fish")
    import subprocess

    answer = subprocess.run(
        [shell, "-NoProfile", "-Command", "echo $profile"], capture_output=True, text=True, check=True
    )
    profile = Path(answer.stdout.strip())
    file = profile.with_name(f"{_NAME}.ps1")
    return _ScriptFiles(file, profile, f". '{file}'")
