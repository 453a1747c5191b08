"""A logistic regression on completed data sets compared with the original."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.reading import releases
from bench.reading.worlds import worlds
from reticent.read.draws import pool


def regression(*, quick: bool = False) -> dict[str, Any]:
    """Return the share of coefficients within two pooled standard errors of the original's."""
    out: dict[str, Any] = {}
    for name in ("veil", "anatomy"):
        near = []
        for seed in (1,):
            for world in worlds(6_000 if quick else 10_000, seed):
                with tempfile.TemporaryDirectory() as folder:
                    opened = getattr(releases, name)(world, seed, Path(folder))
                if "event" in opened.received.columns and opened.received.to_arrow()["event"].to_numpy().any():
                    continue  # draws are of first events only
                near += _coefficients(opened, world.hidden, world.fields, seed)
        out[name] = {"coefficients": len(near), "within_two_errors": round(float(np.mean(near)), 3)}
    return out


def _coefficients(opened: releases.Opened, hidden: str, fields: tuple[str, ...], seed: int) -> list[bool]:
    given = [fields[1], "old"]
    number = opened.true_records[fields[0]].to_numpy()
    middle = float(np.median(number))
    received = opened.received
    flags = pa.array((received.to_arrow()[fields[0]].to_numpy() >= middle).astype(int))
    object.__setattr__(received.shape, "table", received.to_arrow().append_column("old", flags))
    received = type(received)(received.shape, received.parts, received.sensitive)
    true_records = opened.true_records.append_column("old", pa.array((number >= middle).astype(int)))
    draws = received.draws(20, given=given, seed=seed)
    labels, counts = np.unique(true_records[hidden].to_pylist(), return_counts=True)
    near = []
    for value in labels[np.argsort(-counts)][:6]:
        original, _ = logistic(*_design(true_records, hidden, given, value))
        fits = [logistic(*_design(draw, hidden, given, value)) for draw in draws]
        pooled = pool([fit[0] for fit in fits], [fit[1] for fit in fits])
        near += (np.abs(pooled.estimate - original) <= 2 * pooled.error).tolist()
    return near


def _design(table: pa.Table, hidden: str, given: list[str], value: str) -> tuple[np.ndarray, np.ndarray]:
    y = (np.array(table[hidden].to_pylist()) == value).astype(float)
    columns = [np.ones(len(y))]
    for name in given:
        cells = np.array(table[name].to_pylist())
        columns.append((cells == min(cells.tolist())).astype(float))
    return np.stack(columns, axis=1), y


def logistic(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their squared standard errors, by Newton's steps."""
    beta = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        information = x.T @ (x * (p * (1 - p))[:, None]) + 1e-9 * np.eye(x.shape[1])
        step = np.linalg.solve(information, x.T @ (y - p))
        beta += np.clip(step, -4, 4)
        if np.abs(step).max() < 1e-9:
            break
    return beta, np.diag(np.linalg.inv(information))
