"""Completion for PowerShell, which click does not bring."""

from __future__ import annotations

import os
import shlex

from click.shell_completion import CompletionItem, ShellComplete

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
