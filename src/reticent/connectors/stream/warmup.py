"""A stream without a past: its first records wait once in their file, and are counted under a stated epsilon before any is released."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from reticent.connectors.stream.source import FileSource
from reticent.connectors.stream.stream import FORMATS
from reticent.errors import DataError, PolicyError, StateError
from reticent.policy import Policy
from reticent.publication.blocks import Blocks
from reticent.publication.records import RecordReader
from reticent.store import Store


def warm_up(
    policy: Policy, source: str, store: str, file_format: str | None = None, *, seed: int | None = None
) -> list[Path]:
    """Makes the prior that the policy waits for, unless it is there; says which files were written."""
    settings = policy.prior
    if settings is None or settings.warmup is None or settings.file is None or policy.path(settings.file).exists():
        return []
    if Store.exists(store):
        raise StateError(
            f"The store is there, but {settings.file} is not: the stream was begun under a prior that is gone.",
            hint="Put the file back. Counted anew it would be another prior, which the store refuses.",
        )
    if "://" in source or source == "-" or not Path(source).is_file():
        raise PolicyError(
            "prior.warmup: only a file can wait, since its first records are read twice.",
            hint="Write the first records to a file, make the prior with `reticent prior FILE -p POLICY -o prior.csv --released`, "
            "and take warmup out of the policy.",
        )
    from reticent.engine.veil.prior.fit_on_release import fit_warmup, missing_kernel_path
    from reticent.engine.veil.prior.fitted_prior import write_fit

    kernel = missing_kernel_path(policy)
    fitted = fit_warmup(
        policy, _first_records(policy, source, file_format, settings.warmup), np.random.default_rng(seed)
    )
    if kernel is not None and fitted.kernel is None:
        raise DataError(
            "Of the records that waited too few are further ones of somebody to make a kernel; nothing was released.",
            hint="Write a larger warmup, or take prior.kernel out: later values that differ are then not offered.",
        )
    return write_fit(fitted, policy.path(settings.file), kernel, seeded=seed is not None)


def _first_records(policy: Policy, source: str, file_format: str | None, number: int) -> pa.Table:
    parts, size = [], 0
    for table in _iter_tables(policy, source, file_format):
        parts.append(table)
        size += table.num_rows
        if size >= number:
            return pa.concat_tables(parts).slice(0, number)
    raise DataError(
        f"{size:,} of the {number:,} records that are to wait for the prior are there; nothing was released.",
        hint="Start again when more have come, or write a smaller warmup.",
    )


def _iter_tables(policy: Policy, source: str, file_format: str | None) -> Iterator[pa.Table]:
    with closing(FileSource(source)) as file:
        reader, blocks = RecordReader(policy), None
        while block := file.read():
            blocks = blocks or Blocks(FORMATS[file_format or file.guess(block)](reader), reader)
            for batch, _ in blocks.iter_batches(block):
                yield batch.table
