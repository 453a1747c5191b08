"""`reticent report`: write the anonymization report from an audit."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import say


@click.command()
@click.argument(
    "audit",
    type=options.PATH,
    metavar="AUDIT.json",
    help="The JSON file that `reticent audit` wrote next to its report.",
)
@click.option("--output", "-o", type=options.PATH, required=True, help="Markdown file for the report.")
def report(audit: Path, output: Path) -> None:
    """Write the anonymization report that an ethics board signs.

    It follows the common outline of EMA policy 0070 and Health Canada, and marks the parts that you fill in.
    """
    from reticent.connectors.files import write_text
    from reticent.report.anonymization_report import anonymization_report

    text = anonymization_report(audit)
    write_text(output, text)
    say(f"Written to {output}; {text.count('[TO BE FILLED IN')} parts are left to fill in.")
