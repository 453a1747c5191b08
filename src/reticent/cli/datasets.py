"""`reticent datasets`: write synthetic data with a matching policy."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from reticent.cli import options
from reticent.cli.output import emit, figures, is_quiet, say

app = options.OrderedGroup(help="Write synthetic data with a matching policy.")

seed_option = click.option(
    "--seed", type=click.IntRange(min=0), help="Make the data repeatable; without it, each call differs."
)
output_file = click.option(
    "-o", "--output", type=options.PATH, required=True, help="File to write: .csv, .parquet, .arrow or .ndjson."
)
output_folder = click.option("-o", "--output", type=options.PATH, required=True, help="Folder to write to.")

visits_option = click.option(
    "--visits",
    type=click.FloatRange(min=1, max=50),
    help="Mean number of visits per person (then -n counts visits); default: one visit per person.",
)
courses_option = click.option(
    "--courses",
    is_flag=True,
    help="Add further diagnoses, drugs, procedures, families and deaths, with a policy for linked tables.",
)
outbreak_option = click.option(
    "--outbreak", is_flag=True, help="Add an outbreak (six times as many cases) in the middle of the feed."
)
disease_option = click.option("--disease", help="Diagnosis of the outbreak; default: influenza.")

LAYOUTS = ("evolving", "m-distinct", "ipums")


DatasetDecorator = Callable[[Callable[..., dict[str, Any]]], click.Command]


def dataset(
    writer: str, rows: int, *more: Callable[[Any], Any], output: Callable[[Any], Any] = output_file
) -> DatasetDecorator:
    """Return a command that writes a data set with the function `writer`, by default with `rows` rows. The command returns its settings."""

    def decorate(settings: Callable[..., dict[str, Any]]) -> click.Command:
        @wraps(settings)
        def command(output: Path, rows: int, seed: int | None, json: bool, **chosen: Any) -> None:
            _write(writer, output, rows, seed, settings(**chosen), json=json)

        words = "Number of rows (series: persons in the first release)."
        size = click.option("-n", "--rows", type=click.IntRange(min=1), default=rows, help=words)
        for option in (options.json, *reversed(more), seed_option, size, output):
            command = option(command)
        return app.command()(command)

    return decorate


@dataset("files.write_hospital", 100_000, visits_option)
def hospital(visits: float | None) -> dict[str, Any]:
    """One year of hospital admissions with ICD-10 diagnoses."""
    return {"visits": visits}


@dataset("files.write_census", 100_000, click.option("--layout", type=click.Choice(LAYOUTS), default=LAYOUTS[0]))
def census(layout: str) -> dict[str, Any]:
    """Synthetic versions of the census tables of three research papers."""
    return {"layout": layout}


@dataset("files.write_nps", 117_047)
def nps() -> dict[str, Any]:
    """One day of a national patient sample with 4,848 diseases."""
    return {}


@dataset("files.write_feed", 100_000, outbreak_option, disease_option)
def feed(outbreak: bool, disease: str | None) -> dict[str, Any]:
    """Admissions over time, with seasons, households and returning persons."""
    return {"outbreak": _outbreak(outbreak, disease)}


@dataset(
    "files.write_series",
    10_000,
    click.option("--releases", type=click.IntRange(min=1), default=5, help="Number of releases."),
    output=output_folder,
)
def series(releases: int) -> dict[str, Any]:
    """The same persons in several releases."""
    return {"releases": releases}


@dataset(
    "fhir.write_fhir",
    10_000,
    visits_option,
    courses_option,
    click.option("--bundles", is_flag=True, help="Write bundles instead of NDJSON."),
    click.option("--r5", is_flag=True, help="Write FHIR R5 instead of R4."),
    output=output_folder,
)
def fhir(visits: float | None, **form: bool) -> dict[str, Any]:
    """The hospital data as a FHIR export."""
    from reticent.datasets.fhir import Form

    return {"visits": visits, "form": Form(**form)}


@dataset(
    "omop.write_omop",
    10_000,
    visits_option,
    courses_option,
    output=click.option("-o", "--output", type=options.PATH, required=True, help="SQLite database to write."),
)
def omop(visits: float | None, courses: bool) -> dict[str, Any]:
    """The hospital data as an OMOP database (SQLite)."""
    return {"visits": visits, "further": courses}


@dataset(
    "adt.write_adt",
    10_000,
    outbreak_option,
    disease_option,
    click.option("--courses", is_flag=True, help="Add second diagnoses, next of kin and deaths."),
    output=output_folder,
)
def adt(outbreak: bool, disease: str | None, courses: bool) -> dict[str, Any]:
    """Admissions as HL7 v2 ADT messages."""
    return {"outbreak": _outbreak(outbreak, disease), "further": courses}


def _outbreak(outbreak: bool, disease: str | None) -> str | None:
    if disease and not outbreak:
        raise click.BadParameter("--disease needs --outbreak.")
    return (disease or "influenza") if outbreak else None


def _write(writer: str, output: Path, rows: int, seed: int | None, settings: dict[str, Any], *, json: bool) -> None:
    """Write a data set, with a progress bar on a terminal, and list its files."""
    from reticent.release import RecordCounts

    start, seed = time.perf_counter(), secrets.randbits(32) if seed is None else seed
    written: list[int] = []
    with ExitStack() as stack:
        bar = None
        if sys.stderr.isatty() and not is_quiet():
            bar = stack.enter_context(
                click.progressbar(length=rows * settings.get("releases", 1), label="Writing", file=sys.stderr)
            )

        def count_rows(number: int) -> None:
            written.append(number)
            if bar is not None:
                bar.update(number)

        module, _, name = writer.partition(".")
        write = getattr(import_module(f"reticent.datasets.{module}"), name)
        files: tuple[Path, ...] = write(output, rows, seed, on_rows=count_rows, **settings)
    seconds = time.perf_counter() - start
    say(f"{sum(written):,} rows in {seconds:.1f} s (seed {seed}):")
    for path in files:
        say(f"  {path}")
    if json:
        counts = RecordCounts(published=sum(written))
        emit(figures(counts, seconds) | {"guarantee": None, "seed": seed, "files": [str(path) for path in files]})
