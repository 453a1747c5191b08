"""The published kernel as a function: the mean of a target one event later."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from reticent.arrays import Floats
from reticent.read.estimate.channel import ONE, scaled
from reticent.read.estimate.persons import Step


def step_of(kernel: Mapping[str, Any] | None, shares: Floats, *, correction: bool = False) -> Step | None:
    """The step of a `veil.json`, under a prior of rows x values; None where it has no kernel.

    The kernel is a sparse matrix (`starts`, `targets`, `weights`), or few numbers (`stay`, `within`, `parents`); a correction changes the value.
    """
    if not kernel:
        return None

    @cache
    def matrix(row: int) -> Floats:
        dense = _sparse(kernel, shares.shape[1]) if "starts" in kernel else _few(kernel, shares[row])
        return _moving(dense) if correction else dense

    return lambda row, goal: np.asarray(matrix(row) @ goal)


def _sparse(kernel: Mapping[str, Any], size: int) -> Floats:
    starts, weights = np.asarray(kernel["starts"], dtype=np.int64), np.asarray(kernel["weights"], dtype=np.float64)
    dense = np.zeros((size, size))
    np.add.at(dense, (np.repeat(np.arange(size), np.diff(starts)), np.asarray(kernel["targets"])), weights)
    return scaled(dense)


def _few(kernel: Mapping[str, Any], shares: Floats) -> Floats:
    """Stay; of the changes a share within the parent, the rest anywhere, both as the row's prior says."""
    stay, within = np.asarray(kernel["stay"], dtype=np.float64) / ONE, float(kernel["within"]) / ONE
    parents = np.asarray(kernel["parents"])
    anywhere = np.tile(shares, (len(shares), 1))
    np.fill_diagonal(anywhere, 0)
    near = anywhere * (parents[:, None] == parents)
    moves = scaled(anywhere)
    moves = np.where(near.any(axis=1)[:, None], within * scaled(near) + (1 - within) * moves, moves)
    stay = np.where(moves.any(axis=1), stay, 1.0)
    return np.asarray(np.diag(stay) + (1 - stay)[:, None] * moves)


def _moving(matrix: Floats) -> Floats:
    moves = matrix.copy()
    np.fill_diagonal(moves, 0)
    return scaled(moves)
