"""``reticent datasets``: synthetic data for trying things out, with a policy beside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli import options
from reticent.cli.groups import Ordered

if TYPE_CHECKING:
    from click.decorators import FC

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

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_hospital(output, rows, seed, visits=visits, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
@output_file
@rows_of(100_000)
@repeatable
@click.option("--layout", type=click.Choice(LAYOUTS), default=LAYOUTS[0])
@options.json
def census(output: Path, rows: int, seed: int | None, layout: str, json: bool) -> None:
    """The census tables of three papers, redrawn."""
    from reticent.datasets.files import write_census

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_census(output, rows, seed, layout=layout, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
@output_file
@rows_of(117_047)
@repeatable
@options.json
def nps(output: Path, rows: int, seed: int | None, json: bool) -> None:
    """One day of a national patients sample: 4,848 diseases."""
    from reticent.datasets.files import write_nps

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_nps(output, rows, seed, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


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

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_feed(output, rows, seed, outbreak=_outbreak(outbreak, disease), on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
@output_folder
@rows_of(10_000)
@repeatable
@click.option("--releases", type=click.IntRange(min=1), default=5, help="How many releases.")
@options.json
def series(output: Path, rows: int, seed: int | None, releases: int, json: bool) -> None:
    """The same persons over several releases."""
    from reticent.datasets.files import write_series

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows * releases) as heard:
        files = write_series(output, rows, seed, releases=releases, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


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

    start, seed = time.perf_counter(), _seed(seed)
    form = Form(bundles=bundles, r5=r5, courses=courses)
    with _progress(rows) as heard:
        files = write_fhir(output, rows, seed, visits=visits, form=form, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


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

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_omop(output, rows, seed, visits=visits, further=courses, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


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

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_adt(output, rows, seed, outbreak=_outbreak(outbreak, disease), further=courses, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


def _outbreak(outbreak: bool, disease: str | None) -> str | None:
    if disease and not outbreak:
        raise click.BadParameter("--disease needs --outbreak.")
    return (disease or "influenza") if outbreak else None


class _Heard:
    """Counts the rows written and moves the bar, if there is one."""

    def __init__(self, move: Callable[[int], object] | None = None) -> None:
        self.rows = 0
        self._move = move

    def __call__(self, rows: int) -> None:
        self.rows += rows
        if self._move:
            self._move(rows)


def _seed(seed: int | None) -> int:
    import secrets

    return secrets.randbits(32) if seed is None else seed


@contextmanager
def _progress(total: int) -> Iterator[_Heard]:
    from reticent.cli.output import quiet

    if quiet() or not sys.stderr.isatty():
        yield _Heard()
        return
    with click.progressbar(length=total, label="Writing", file=sys.stderr) as bar:
        yield _Heard(bar.update)


def _report(files: tuple[Path, ...], rows: int, seed: int, start: float, *, json: bool) -> None:
    from reticent.cli.output import emit, say

    seconds = round(time.perf_counter() - start, 3)
    say(f"{rows:,} rows in {seconds:.1f} s (seed {seed}):")
    for path in files:
        say(f"  {path}")
    if json:
        figures = {"rows_in": 0, "rows_out": rows, "held": 0, "suppressed": 0, "seconds": seconds}
        emit({**figures, "guarantee": None, "metrics": {}, "seed": seed, "files": [str(path) for path in files]})
