"""Fit the prior of a new stream to its first records, under a stated epsilon, before any record is released."""

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
    """Fit the prior that the policy asks for, unless it exists; return the files written."""
    settings = policy.prior
    if settings is None or settings.warmup is None or settings.file is None or policy.path(settings.file).exists():
        return []
    if Store.exists(store):
        raise StateError(
            f"The store exists, but {settings.file} does not: the prior of this stream is missing.",
            hint="Restore the file. A newly fitted prior would differ, and the store would refuse it.",
        )
    if "://" in source or source == "-" or not Path(source).is_file():
        raise PolicyError(
            "prior.warmup: the source must be a file, because its first records are read twice.",
            hint="Write the first records to a file, fit the prior with `reticent prior FILE -p POLICY -o prior.csv --released`, "
            "and remove warmup from the policy.",
        )
    from reticent.engine.veil.prior.fit_on_release import fit_warmup, missing_kernel_path
    from reticent.engine.veil.prior.fitted_prior import write_fit

    kernel = missing_kernel_path(policy)
    fitted = fit_warmup(
        policy, _first_records(policy, source, file_format, settings.warmup), np.random.default_rng(seed)
    )
    if kernel is not None and fitted.kernel is None:
        raise DataError(
            "The warmup has too few later records of the same persons to fit a transition kernel; nothing was released.",
            hint="Set a larger warmup, or remove prior.kernel: changed values are then not among the candidates.",
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
        f"The source has {size:,} of the {number:,} records that prior.warmup needs; nothing was released.",
        hint="Start again with more records, or set a smaller warmup.",
    )


def _iter_tables(policy: Policy, source: str, file_format: str | None) -> Iterator[pa.Table]:
    with closing(FileSource(source)) as file:
        reader, blocks = RecordReader(policy), None
        while block := file.read():
            blocks = blocks or Blocks(FORMATS[file_format or file.guess(block)](reader), reader)
            for batch, _ in blocks.iter_batches(block):
                yield batch.table
