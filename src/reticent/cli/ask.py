"""`reticent ask`: counts from a release, with intervals."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say


@click.command()
@click.argument(
    "releases",
    nargs=-1,
    type=options.PATH_OR_URL,
    metavar="RELEASE...",
    required=True,
    help="A release folder, a stream's file, or a database that `export` filled; several = a series under the veil, in order.",
)
@click.option("--value", multiple=True, help="Values to count, separated by commas; all if left out.")
@click.option("--where", multiple=True, help='A condition such as "age>=60".')
@click.option("--by", multiple=True, help="Columns to count by, separated by commas.")
@click.option("--interval", type=float, default=0.95, help="Level of the confidence intervals.")
@click.option("--share", is_flag=True, help="Shares instead of counts.")
@click.option("--smooth", is_flag=True, help="Counts drawn toward what readers believe beforehand; not unbiased.")
@click.option("--sensitive", help="The sensitive column, where the release does not say it.")
@click.option("--plot", type=options.PATH, help="Write a picture (SVG).")
@options.json
def ask(
    releases: tuple[str, ...],
    value: tuple[str, ...],
    where: tuple[str, ...],
    by: tuple[str, ...],
    interval: float,
    share: bool,
    smooth: bool,
    sensitive: str | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Ask a release: how many records have a value, by groups, with intervals.

    Works on every release that Reticent makes, from what was published alone. Several releases of a series are counted each by itself,
    unless --by or --where says `release`.
    """
    from reticent.read.received import read

    received = read(*releases, sensitive=sensitive)
    columns = _split_names(by, (*received.columns, received.sensitive))
    if len(releases) > 1 and not any(word.strip().startswith("release") for word in (*columns, *where)):
        columns = ["release", *columns]
    asked = (_split_names(value, received.values) or None, list(where), columns)
    answer = (received.share if share else received.count)(*asked, interval=interval, smooth=smooth)
    if json:
        say(repr(answer))
        emit({"answers": answer.to_list()})
    else:
        print(answer)  # noqa: T201 - the answer is the data
    if plot is not None:
        say(f"Written: {answer.plot(plot)}.")


def _split_names(options: tuple[str, ...], known: tuple[str, ...]) -> list[str]:
    """Values or columns apart at their commas, unless one has the comma in its name."""
    parts: list[str] = []
    for option in options:
        parts += [option] if option in known else [part.strip() for part in option.split(",") if part.strip()]
    return list(dict.fromkeys(parts))
