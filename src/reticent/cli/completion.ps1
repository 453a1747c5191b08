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
