"""`reticent reproduce`: a published system's tables and figures, with the paper's numbers beside ours."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json


class Paper(StrEnum):
    """What can be reproduced."""

    delay_free = "delay-free"
    supervision = "supervision"
    evolving = "evolving"
    m_distinct = "m-distinct"


def reproduce(
    paper: Annotated[Paper, typer.Argument(help="The published system.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for figures and plots.", show_default=False)],
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that everything runs.")] = False,
    seed: Annotated[int, typer.Option(help="Of the synthetic data and all choices.")] = 1,
    json: Json = False,
) -> None:
    """Repeat the experiments of a paper, and plot them.

    On synthetic data of its kind, and on Adult where RETICENT_DATA names its folder.
    """
    from importlib import import_module

    from reticent.cli.output import emit, say

    _need_plots()
    module = import_module(f"reticent.reproduce.{paper.name}")
    summary = module.run(output, quick=quick, seed=seed, say=say)
    say(f"Figures and plots are in {output}.")
    if json:
        emit({key: value for key, value in summary.items() if key != "figures"})


def _need_plots() -> None:
    """Asked first: the plots come last, after minutes of work."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        from reticent.errors import ConnectorError

        raise ConnectorError("The plots need matplotlib.", hint="pip install 'reticent[reproduce]'") from None
