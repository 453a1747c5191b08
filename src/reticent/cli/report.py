"""`reticent board`: the report for a board, from an audit."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import say


@click.command()
@click.argument("audit", type=options.PATH, metavar="AUDIT.json", help="What reticent audit wrote beside its report.")
@click.option("--output", "-o", type=options.PATH, required=True, help="The report, a .md file.")
def report(audit: Path, output: Path) -> None:
    """Write the report that a board signs, with gaps where a person has to write.

    In the outline that EMA policy 0070 and Health Canada share.
    """
    from reticent.connectors.files import write_text
    from reticent.report.anonymization_report import anonymization_report

    text = anonymization_report(audit)
    write_text(output, text)
    say(f"Written to {output}; {text.count('[TO BE FILLED IN')} gaps are left to fill in.")
