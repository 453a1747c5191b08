"""Write a data set as files: the data, a policy, and the files that the policy names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from reticent.datasets import census, feed, hospital, nps, series
from reticent.datasets.policies import policy_yaml
from reticent.datasets.visits import admissions
from reticent.datasets.writers import RowCallback, csv_text, table_file, write, write_text
from reticent.errors import PolicyError


def write_hospital(
    path: Path, n: int, seed: int = 0, *, visits: float | None = None, on_rows: RowCallback = None
) -> tuple[Path, ...]:
    """Write n hospital admissions, one or a mean of ``visits`` per person, and their policy; return the paths."""
    write(admissions(n, seed, visits=visits), path, on_rows=on_rows)
    return (
        _write_prior_and_policy(path, hospital.prior(), "hospital")
        if visits is None
        else (path, _write_policy(path, "visits"))
    )


def write_census(
    path: Path, n: int, seed: int = 0, *, layout: str = "evolving", on_rows: RowCallback = None
) -> tuple[Path, ...]:
    """Write a census table in one of its layouts, and its policy; return the paths."""
    write(census.batches(n, seed, layout=layout), path, on_rows=on_rows)
    return (
        _write_prior_and_policy(path, census.prior(layout), layout)
        if layout == "evolving"
        else (path, _write_policy(path, layout))
    )


def write_nps(path: Path, n: int = nps.RECORDS, seed: int = 0, *, on_rows: RowCallback = None) -> tuple[Path, ...]:
    """Write one day of a national patients sample, its prior and its policy; return the paths."""
    write(nps.batches(n, seed), path, on_rows=on_rows)
    return _write_prior_and_policy(path, nps.prior(), "nps")


def write_feed(
    path: Path, n: int, seed: int = 0, *, outbreak: str | None = None, on_rows: RowCallback = None
) -> tuple[Path, ...]:
    """Write a feed of admissions, its prior, its kernel and its policy; return the paths.

    ``outbreak`` is the diagnosis of an outbreak, if any; prior and kernel do not include it. Prior and kernel are named
    ``prior.csv`` and ``kernel.csv``, or after the feed if other files have these names.
    """
    tables = [_free_path(path, "prior", feed.strata()), _free_path(path, "kernel", feed.kernel())]
    write(feed.batches(n, seed, outbreak=outbreak), path, on_rows=on_rows)
    text = policy_yaml("feed")
    for name, (place, table) in zip(("prior.csv", "kernel.csv"), tables, strict=True):
        write_text(csv_text(table), place)
        text = text.replace(name, place.name)
    policy = path.with_suffix(".policy.yaml")
    write_text(text, policy)
    return path, *(place for place, _ in tables), policy


def _free_path(path: Path, name: str, table: pa.Table) -> tuple[Path, pa.Table]:
    """Return a free path in the folder of the feed for a table, with the table."""
    place = path.with_name(f"{name}.csv")
    if path == place:
        raise PolicyError(f"The feed cannot be named {name}.csv: its {name} has this name.", hint="Rename the feed.")
    if place.exists() and place.read_bytes() != csv_text(table).encode():
        place = path.with_suffix(f".{name}.csv")
    return place, table


def write_series(
    folder: Path, n: int, seed: int = 0, *, releases: int = 5, on_rows: RowCallback = None
) -> tuple[Path, ...]:
    """Write release_1.csv and so on, updates.csv, prior.csv and policy.yaml into a folder; return the paths.

    All releases are written one block of persons at a time, so memory does not depend on ``n``.
    """
    paths = [folder / f"release_{number}.csv" for number in range(1, releases + 1)]
    with ExitStack() as stack:
        append: dict[int, Callable[[pa.Table], None]] = {}
        for number, table in series.batches(n, releases, seed):
            if number not in append:
                append[number] = stack.enter_context(table_file(paths[number - 1], table.schema))
            append[number](table)
            if on_rows:
                on_rows(table.num_rows)
    write([series.updates()], folder / "updates.csv")
    write_text(csv_text(series.prior()), folder / "prior.csv")
    write_text(policy_yaml("series"), folder / "policy.yaml")
    return (*paths, folder / "updates.csv", folder / "prior.csv", folder / "policy.yaml")


def _write_prior_and_policy(data: Path, counts: pa.Table, kind: str) -> tuple[Path, ...]:
    """Write the prior and the policy that names it, next to the data."""
    past, policy = data.with_suffix(".prior.csv"), data.with_suffix(".policy.yaml")
    write_text(csv_text(counts), past)
    write_text(policy_yaml(kind).replace("prior.csv", past.name), policy)
    return data, past, policy


def _write_policy(data: Path, kind: str) -> Path:
    path = data.with_suffix(".policy.yaml")
    write_text(policy_yaml(kind), path)
    return path
