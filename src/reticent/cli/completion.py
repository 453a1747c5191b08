"""Completion of commands and options by the shell: what a shell is told, and where it finds it."""

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
"""By which a shell asks."""
_CURRENT = "this one"


def completion(option: str, action: str, words: str) -> Callable[[FC], FC]:
    """An option of the root that installs completion, or prints the script; a shell may be named behind it."""

    def act(context: click.Context, _: click.Parameter, shell: str | None) -> None:
        if shell is None or context.resilient_parsing:
            return
        name = current_shell() if shell == _CURRENT else shell
        if name not in SHELLS:
            raise click.UsageError(f"Name your shell behind {option}: {', '.join(SHELLS)}.")
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
    """The shell of whoever asks, as far as the environment tells."""
    return Path(os.environ.get("SHELL", "")).stem or ("powershell" if os.name == "nt" else "")


def script(command: click.Command, shell: str) -> str:
    """What a shell has to be told."""
    kind = get_completion_class("powershell" if shell == "pwsh" else shell)
    return "" if kind is None else kind(command, {}, _NAME, VARIABLE).source()


_SOURCE = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $position)
    $Env:%(complete_var)s = "powershell_complete"
    $Env:RETICENT_COMPLETE_LINE = $line.ToString()
    $Env:RETICENT_COMPLETE_WORD = $word
    try {
        %(prog_name)s | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
        }
    } finally {
        Remove-Item Env:%(complete_var)s, Env:RETICENT_COMPLETE_LINE, Env:RETICENT_COMPLETE_WORD
    }
}
"""


@add_completion_class
class PowerShellComplete(ShellComplete):
    """The line and the word under the cursor come by the environment; a value and its help go back, a tab between them."""

    name = "powershell"
    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one."""
        word = os.environ.get("RETICENT_COMPLETE_WORD", "")
        try:
            words = shlex.split(os.environ.get("RETICENT_COMPLETE_LINE", ""), posix=False)[1:]
        except ValueError:  # a quote that is not closed yet
            words = []
        return words[:-1] if word and words else words, word

    def format_completion(self, item: CompletionItem) -> str:
        """One line for PowerShell."""
        return f"{item.value}\t{item.help or ''}"


class _ScriptFiles(NamedTuple):
    """The file of the script; the shell's own file and the line in it that reads the script, where it is not looked for."""

    file: Path
    start: Path | None = None
    line: str = ""


def install(command: click.Command, shell: str) -> str:
    """Writes the script where the shell finds it; says what to do next."""
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

    asked = subprocess.run(
        [shell, "-NoProfile", "-Command", "echo $profile"], capture_output=True, text=True, check=True
    )
    profile = Path(asked.stdout.strip())
    file = profile.with_name(f"{_NAME}.ps1")
    return _ScriptFiles(file, profile, f". '{file}'")
