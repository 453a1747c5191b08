"""`reticent ask`: estimate counts from a release, with confidence intervals."""

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
    help="A release folder, a stream's file, or a database written by `export`; several: a veiled series, in order.",
)
@click.option("--value", multiple=True, help="Values to count, separated by commas; default: all.")
@click.option("--where", multiple=True, help='Condition such as "age>=60".')
@click.option("--by", multiple=True, help="Columns to group by, separated by commas.")
@click.option("--interval", type=float, default=0.95, help="Confidence level of the intervals.")
@click.option("--share", is_flag=True, help="Estimate shares instead of counts.")
@click.option("--smooth", is_flag=True, help="Shrink the counts toward the prior (smaller error, but biased).")
@click.option("--sensitive", help="The sensitive column, if the release does not name it.")
@click.option("--plot", type=options.PATH, help="Write a plot to this SVG file.")
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
    """Estimate from a release how many records have a value, with confidence intervals.

    Works with every release of Reticent and uses published data only. Several releases of a series are counted separately,
    unless --by or --where names `release`.
    """
    from reticent.read.received import read

    received = read(*releases, sensitive=sensitive)
    columns = _split_names(by, (*received.columns, received.sensitive))
    if len(releases) > 1 and not any(word.strip().startswith("release") for word in (*columns, *where)):
        columns = ["release", *columns]
    query = (_split_names(value, received.values) or None, list(where), columns)
    answer = (received.share if share else received.count)(*query, interval=interval, smooth=smooth)
    if json:
        say(repr(answer))
        emit({"answers": answer.to_list()})
    else:
        print(answer)  # noqa: T201 - the answer is the output
    if plot is not None:
        say(f"Written: {answer.plot(plot)}.")


def _split_names(options: tuple[str, ...], known: tuple[str, ...]) -> list[str]:
    """Split values or columns at commas, unless a known name contains the comma."""
    parts: list[str] = []
    for option in options:
        parts += [option] if option in known else [part.strip() for part in option.split(",") if part.strip()]
    return list(dict.fromkeys(parts))
