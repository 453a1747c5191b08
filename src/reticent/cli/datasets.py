"""``reticent datasets``: synthetic data for trying things out, with a policy beside it."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.decorators import FC

from reticent.cli import options
from reticent.cli.options import Ordered

app = Ordered(help="Make synthetic data, with a policy beside it.")

repeatable = click.option(
    "--seed", type=click.IntRange(min=0), help="Makes the data repeatable; without it each call differs."
)
output_file = click.option(
    "-o", "--output", type=options.PATH, required=True, help="File to write: .csv, .parquet, .arrow or .ndjson."
)
output_folder = click.option("-o", "--output", type=options.PATH, required=True, help="Folder to write to.")

visits_each = click.option(
    "--visits",
    type=click.FloatRange(min=1, max=50),
    help="Mean visits per person; -n counts visits. Without it one per person.",
)
whole_courses = click.option(
    "--courses",
    is_flag=True,
    help="Several diagnoses of a visit, drugs, procedures, families, deaths; a policy of linked tables.",
)
with_outbreak = click.option("--outbreak", is_flag=True, help="An outbreak, six-fold, in the middle of the feed.")
of_disease = click.option("--disease", help="With --outbreak: which diagnosis; influenza unless told.")

LAYOUTS = ("evolving", "m-distinct", "ipums")


def rows_of(default: int) -> Callable[[FC], FC]:
    """How many rows, with a default of its own for each kind."""
    words = "How many rows (series: persons in the first release)."
    return click.option("-n", "--rows", type=click.IntRange(min=1), default=default, help=words)


@app.command()
@output_file
@rows_of(100_000)
@repeatable
@visits_each
@options.json
def hospital(output: Path, rows: int, seed: int | None, visits: float | None, json: bool) -> None:
    """One year of admissions with ICD-10 diagnoses."""
    from reticent.datasets.files import write_hospital

    _write(write_hospital, output, rows, seed, json=json, visits=visits)


@app.command()
@output_file
@rows_of(100_000)
@repeatable
@click.option("--layout", type=click.Choice(LAYOUTS), default=LAYOUTS[0])
@options.json
def census(output: Path, rows: int, seed: int | None, layout: str, json: bool) -> None:
    """The census tables of three papers, redrawn."""
    from reticent.datasets.files import write_census

    _write(write_census, output, rows, seed, json=json, layout=layout)


@app.command()
@output_file
@rows_of(117_047)
@repeatable
@options.json
def nps(output: Path, rows: int, seed: int | None, json: bool) -> None:
    """One day of a national patients sample: 4,848 diseases."""
    from reticent.datasets.files import write_nps

    _write(write_nps, output, rows, seed, json=json)


@app.command()
@output_file
@rows_of(100_000)
@repeatable
@with_outbreak
@of_disease
@options.json
def feed(output: Path, rows: int, seed: int | None, outbreak: bool, disease: str | None, json: bool) -> None:
    """Admissions in time: seasons, households, persons who return."""
    from reticent.datasets.files import write_feed

    _write(write_feed, output, rows, seed, json=json, outbreak=_outbreak(outbreak, disease))


@app.command()
@output_folder
@rows_of(10_000)
@repeatable
@click.option("--releases", type=click.IntRange(min=1), default=5, help="How many releases.")
@options.json
def series(output: Path, rows: int, seed: int | None, releases: int, json: bool) -> None:
    """The same persons over several releases."""
    from reticent.datasets.files import write_series

    _write(write_series, output, rows, seed, json=json, total=rows * releases, releases=releases)


@app.command()
@output_folder
@rows_of(10_000)
@repeatable
@visits_each
@whole_courses
@click.option("--bundles", is_flag=True, help="Bundles instead of NDJSON.")
@click.option("--r5", is_flag=True, help="FHIR R5 instead of R4.")
@options.json
def fhir(
    output: Path, rows: int, seed: int | None, visits: float | None, courses: bool, bundles: bool, r5: bool, json: bool
) -> None:
    """The hospital as a FHIR export."""
    from reticent.datasets.fhir import Form, write_fhir

    form = Form(bundles=bundles, r5=r5, courses=courses)
    _write(write_fhir, output, rows, seed, json=json, visits=visits, form=form)


@app.command()
@click.option("-o", "--output", type=options.PATH, required=True, help="SQLite database to write.")
@rows_of(10_000)
@repeatable
@visits_each
@whole_courses
@options.json
def omop(output: Path, rows: int, seed: int | None, visits: float | None, courses: bool, json: bool) -> None:
    """The hospital as an OMOP database (SQLite)."""
    from reticent.datasets.omop import write_omop

    _write(write_omop, output, rows, seed, json=json, visits=visits, further=courses)


@app.command()
@output_folder
@rows_of(10_000)
@repeatable
@with_outbreak
@of_disease
@click.option("--courses", is_flag=True, help="Second diagnoses, next of kin, deaths.")
@options.json
def adt(
    output: Path, rows: int, seed: int | None, outbreak: bool, disease: str | None, courses: bool, json: bool
) -> None:
    """Admissions as HL7 v2 ADT messages."""
    from reticent.datasets.adt import write_adt

    _write(write_adt, output, rows, seed, json=json, outbreak=_outbreak(outbreak, disease), further=courses)


def _outbreak(outbreak: bool, disease: str | None) -> str | None:
    if disease and not outbreak:
        raise click.BadParameter("--disease needs --outbreak.")
    return (disease or "influenza") if outbreak else None


def _write(
    write: Callable[..., tuple[Path, ...]],
    output: Path,
    rows: int,
    seed: int | None,
    *,
    json: bool,
    total: int | None = None,
    **settings: Any,
) -> None:
    """Writes a data set with a bar on a terminal, then says which files there are."""
    from reticent.cli.output import emit, figures, quiet, say
    from reticent.release import Counts

    start, seed = time.perf_counter(), secrets.randbits(32) if seed is None else seed
    written: list[int] = []
    with ExitStack() as stack:
        bar = None
        if sys.stderr.isatty() and not quiet():
            bar = stack.enter_context(click.progressbar(length=total or rows, label="Writing", file=sys.stderr))

        def heard(number: int) -> None:
            written.append(number)
            if bar is not None:
                bar.update(number)

        files = write(output, rows, seed, on_rows=heard, **settings)
    seconds = time.perf_counter() - start
    say(f"{sum(written):,} rows in {seconds:.1f} s (seed {seed}):")
    for path in files:
        say(f"  {path}")
    if json:
        counts = Counts(published=sum(written))
        emit(figures(counts, seconds) | {"guarantee": None, "seed": seed, "files": [str(path) for path in files]})
