"""``reticent datasets``: synthetic data for trying things out, with a policy beside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json

app = typer.Typer(
    help="Make synthetic data, with a policy beside it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Rows = Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows (series: persons in the first release).")]
Seed = Annotated[int | None, typer.Option(min=0, help="Makes the data repeatable; without it each call differs.")]
Out = Annotated[Path, typer.Option("-o", "--output", help="File to write: .csv, .parquet, .arrow or .ndjson.")]
Folder = Annotated[Path, typer.Option("-o", "--output", help="Folder to write to.")]

Visits = Annotated[
    float | None,
    typer.Option(min=1, max=50, help="Mean visits per person; -n counts visits. Without it one per person."),
]
Courses = Annotated[
    bool,
    typer.Option(
        "--courses",
        help="Several diagnoses of a visit, drugs, procedures, families, deaths; a policy of linked tables.",
    ),
]
Break = Annotated[bool, typer.Option("--outbreak", help="An outbreak, six-fold, in the middle of the feed.")]
Disease = Annotated[str | None, typer.Option(help="With --outbreak: which diagnosis; influenza unless told.")]


class Layout(StrEnum):
    """The census tables."""

    EVOLVING = "evolving"
    M_DISTINCT = "m-distinct"
    IPUMS = "ipums"


@app.command()
def hospital(output: Out, rows: Rows = 100_000, seed: Seed = None, visits: Visits = None, json: Json = False) -> None:
    """One year of admissions with ICD-10 diagnoses."""
    from reticent.datasets.files import write_hospital

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_hospital(output, rows, seed, visits=visits, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def census(
    output: Out, rows: Rows = 100_000, seed: Seed = None, layout: Layout = Layout.EVOLVING, json: Json = False
) -> None:
    """The census tables of three papers, redrawn."""
    from reticent.datasets.files import write_census

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_census(output, rows, seed, layout=layout.value, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def nps(output: Out, rows: Rows = 117_047, seed: Seed = None, json: Json = False) -> None:
    """One day of a national patients sample: 4,848 diseases."""
    from reticent.datasets.files import write_nps

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_nps(output, rows, seed, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def feed(
    output: Out,
    rows: Rows = 100_000,
    seed: Seed = None,
    outbreak: Break = False,
    disease: Disease = None,
    json: Json = False,
) -> None:
    """Admissions in time: seasons, households, persons who return."""
    from reticent.datasets.files import write_feed

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_feed(output, rows, seed, outbreak=_outbreak(outbreak, disease), on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def series(
    output: Folder,
    rows: Rows = 10_000,
    seed: Seed = None,
    releases: Annotated[int, typer.Option(min=1, help="How many releases.")] = 5,
    json: Json = False,
) -> None:
    """The same persons over several releases."""
    from reticent.datasets.files import write_series

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows * releases) as heard:
        files = write_series(output, rows, seed, releases=releases, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def fhir(
    output: Folder,
    rows: Rows = 10_000,
    seed: Seed = None,
    visits: Visits = None,
    courses: Courses = False,
    bundles: Annotated[bool, typer.Option("--bundles", help="Bundles instead of NDJSON.")] = False,
    r5: Annotated[bool, typer.Option("--r5", help="FHIR R5 instead of R4.")] = False,
    json: Json = False,
) -> None:
    """The hospital as a FHIR export."""
    from reticent.datasets.fhir import Form, write_fhir

    start, seed = time.perf_counter(), _seed(seed)
    form = Form(bundles=bundles, r5=r5, courses=courses)
    with _progress(rows) as heard:
        files = write_fhir(output, rows, seed, visits=visits, form=form, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def omop(
    output: Annotated[Path, typer.Option("-o", "--output", help="SQLite database to write.")],
    rows: Rows = 10_000,
    seed: Seed = None,
    visits: Visits = None,
    courses: Courses = False,
    json: Json = False,
) -> None:
    """The hospital as an OMOP database (SQLite)."""
    from reticent.datasets.omop import write_omop

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_omop(output, rows, seed, visits=visits, further=courses, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


@app.command()
def adt(
    output: Folder,
    rows: Rows = 10_000,
    seed: Seed = None,
    outbreak: Break = False,
    disease: Disease = None,
    courses: Annotated[bool, typer.Option("--courses", help="Second diagnoses, next of kin, deaths.")] = False,
    json: Json = False,
) -> None:
    """Admissions as HL7 v2 ADT messages."""
    from reticent.datasets.adt import write_adt

    start, seed = time.perf_counter(), _seed(seed)
    with _progress(rows) as heard:
        files = write_adt(output, rows, seed, outbreak=_outbreak(outbreak, disease), further=courses, on_rows=heard)
    _report(files, heard.rows, seed, start, json=json)


def _outbreak(outbreak: bool, disease: str | None) -> str | None:
    if disease and not outbreak:
        raise typer.BadParameter("--disease needs --outbreak.")
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
    if not sys.stderr.isatty():
        yield _Heard()
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("writing", total=total)
        yield _Heard(lambda rows: progress.advance(task, rows))


def _report(files: tuple[Path, ...], rows: int, seed: int, start: float, *, json: bool) -> None:
    from reticent.cli.output import emit, say

    seconds = round(time.perf_counter() - start, 3)
    say(f"{rows:,} rows in {seconds:.1f} s (seed {seed}):")
    for path in files:
        say(f"  {path}")
    if json:
        figures = {"rows_in": 0, "rows_out": rows, "held": 0, "suppressed": 0, "seconds": seconds}
        emit({**figures, "guarantee": None, "metrics": {}, "seed": seed, "files": [str(path) for path in files]})
