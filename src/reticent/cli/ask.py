"""`reticent ask`: counts from a release, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json


def ask(
    release: Annotated[
        str,
        typer.Argument(
            help="A release folder, a stream's file, or a database that `export` filled.", show_default=False
        ),
    ],
    value: Annotated[
        list[str] | None,
        typer.Option("--value", help="Values to count, separated by commas; all if left out.", show_default=False),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help='A condition such as "age>=60".', show_default=False)
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="A column to count by; may be repeated.", show_default=False)
    ] = None,
    interval: Annotated[float, typer.Option(help="Level of the confidence intervals.")] = 0.95,
    share: Annotated[bool, typer.Option("--share", help="Shares instead of counts.")] = False,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Counts drawn toward what readers believe beforehand; not unbiased.")
    ] = False,
    sensitive: Annotated[
        str | None, typer.Option(help="The sensitive column, where the release does not say it.", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (SVG).", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Ask a release: how many records have a value, by groups, with intervals.

    Works on every release that Reticent makes, from what was published alone.
    """
    from reticent.cli.output import emit, say
    from reticent.read.received import read

    received = read(release, sensitive=sensitive)
    asked = (_values(value or [], received.values) or None, where or [], by or [])
    answer = (received.share if share else received.count)(*asked, interval=interval, smooth=smooth)
    if json:
        say(repr(answer))
        emit({"answers": answer.to_list()})
    else:
        print(answer)  # noqa: T201 - the answer is the data
    if plot is not None:
        say(f"Written: {answer.plot(plot)}.")


def _values(options: list[str], known: tuple[str, ...]) -> list[str]:
    """Values apart at their commas, unless a value has the comma in its name."""
    parts: list[str] = []
    for option in options:
        parts += [option] if option in known else [part.strip() for part in option.split(",") if part.strip()]
    return parts
