"""`reticent reproduce`: a published system's tables and figures, with the paper's numbers beside ours."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say
from reticent.errors import require_extra

PAPERS = ("delay-free", "supervision", "evolving", "m-distinct")


@click.command()
@click.argument("paper", type=click.Choice(PAPERS), help="The published system.")
@click.option("--output", "-o", type=options.PATH, required=True, help="Folder for figures and plots.")
@click.option("--quick", is_flag=True, help="Small sizes, to see that everything runs.")
@click.option("--seed", type=int, default=1, help="Of the synthetic data and all choices.")
@options.json
def reproduce(paper: str, output: Path, quick: bool, seed: int, json: bool) -> None:
    """Repeat the experiments of a paper, and plot them.

    On synthetic data of its kind, and on Adult where RETICENT_DATA names its folder.
    """
    from importlib import import_module

    with require_extra("The plots need matplotlib", "reproduce"):  # asked first: they come last, after minutes of work
        import matplotlib as mpl  # noqa: F401
    module = import_module(f"reticent.reproduce.{paper.replace('-', '_')}")
    summary = module.run(output, quick=quick, seed=seed, progress=say)
    say(f"Figures and plots are in {output}.")
    if json:
        emit({key: value for key, value in summary.items() if key != "figures"})
