"""`reticent reproduce`: repeat the experiments of a research paper and compare the results."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import require_extra

PAPERS = ("delay-free", "supervision", "evolving", "m-distinct")


@click.command()
@click.argument("paper", type=click.Choice(PAPERS), help="The paper.")
@click.option("--output", "-o", type=options.PATH, required=True, help="Folder for tables and plots.")
@click.option("--quick", is_flag=True, help="Use small data to test that everything runs.")
@click.option("--seed", type=int, default=1, help="Seed of the synthetic data and all random choices.")
@options.json
def reproduce(paper: str, output: Path, quick: bool, seed: int, json: bool) -> None:
    """Repeat the experiments of a research paper and plot the results.

    Uses synthetic data, and the Adult data set if RETICENT_DATA names its folder.
    """
    from importlib import import_module

    with require_extra("The plots need matplotlib", "reproduce"):  # checked first: the plots come after minutes of work
        import matplotlib as mpl  # noqa: F401
    module = import_module(f"reticent.reproduce.{paper.replace('-', '_')}")
    summary = module.run(output, quick=quick, seed=seed, progress=say)
    say(f"Tables and plots are in {output}.")
    if json:
        emit({key: value for key, value in summary.items() if key != "figures"})
