"""Persons over five visits: the success of an attacker who knows how illnesses follow one another.

The attack reads published files only. Sets do not say which candidate became which. So the attacker sums over all ways
in which the l - 1 false candidates may have moved: a permanent for every pair of positions of the true value.
"""

from __future__ import annotations

import json
import tempfile
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.fitted_prior import write_fit
from reticent.engine.veil.prior.prior import draw_candidates, random_permutations
from reticent.policy import Policy
from reticent.publication import table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Codes = NDArray[np.int64]

L, CHAPTERS, EACH, EVENTS = 5, 12, 5, 5
SIZE = CHAPTERS * EACH
NAMES = [f"{chr(65 + chapter)}{number}" for chapter in range(CHAPTERS) for number in range(EACH)]
TREE = {chr(65 + chapter): NAMES[chapter * EACH : (chapter + 1) * EACH] for chapter in range(CHAPTERS)}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Attack 2,000 persons with l = 5 in eight worlds of each kind; the attacker knows the true kernel."""
    seeds = range(1 if quick else 8)
    return {
        name: _summary([figures(taste, seed, quick=quick) for seed in seeds])
        for name, taste in (("by share", None), ("by taste", 4))
    }


def _summary(worlds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over the worlds, the spread of attack minus stated bound, and the worlds themselves."""
    attacked = {events: np.array([one["times_one_in_l"][events] for one in worlds]) for events in range(1, EVENTS + 1)}
    apart = {
        events: np.array([one["times_one_in_l"][events] - one["quoted"][events][0] for one in worlds])
        for events in worlds[0]["quoted"]
    }
    return {
        "times_one_in_l": {events: round(float(each.mean()), 3) for events, each in attacked.items()},
        "attack_less_quoted": {
            events: [round(float(each.mean()), 3), round(float(each.std(ddof=1) / len(each) ** 0.5), 3)]
            for events, each in apart.items()
            if len(each) > 1
        },
        "worlds": worlds,
    }


def figures(taste: float | None, seed: int = 0, *, quick: bool) -> dict[str, Any]:
    """Return all figures in multiples of 1 / l, by the number of events that the attacker has seen."""
    draws = iter(np.random.SeedSequence(seed).spawn(4))

    def rng() -> np.random.Generator:
        return np.random.default_rng(next(draws))

    shares, true = world(rng(), taste)
    with tempfile.TemporaryDirectory() as folder:
        policy = _policy(Path(folder))
        past = _visits(shares, true, 8_000 if quick else 40_000, rng())
        fitted = fit(_table(past), policy, "ill", l=L, epsilon=1.0, rng=rng())
        write_fit(fitted, Path(folder) / "prior.csv")
        true_values = _visits(shares, true, 800 if quick else 2_000, rng())
        release = table.publish(_table(true_values), policy, seed=5).release
    veil = release.metadata["veil"]
    codes = _codes(veil["domain"])
    fresh = _fresh(shares, true, true_values)
    sets, true_values, true = (
        _sets(release.tables["data"], veil["domain"]),
        codes[true_values],
        _merged(true, shares, codes),
    )
    known_kernel = _published(veil)
    attacked = {
        events: attack(sets[:, :events], true_values[:, :events], true, known_kernel) for events in range(1, EVENTS + 1)
    }
    assert fitted.kernel is not None
    return {
        "times_one_in_l": {events: round(L * right, 3) for events, right in attacked.items()},
        "standard_error": round(L * float(np.sqrt(0.2 * 0.8 / len(true_values))), 3),
        "published_kernel": {
            events: round(L * attack(sets[:, :events], true_values[:, :events], known_kernel, known_kernel), 3)
            for events in (2, 4)
        },
        "quoted": {one.events: [round(L * one.right, 3), round(L * one.error, 3)] for one in fitted.kernel.attackers},
        "fresh_veils": {events: round(L * right, 3) for events, right in fresh.items()},
        "values": len(veil["domain"]),
        "omission_rate": round(float(np.mean(veil["omission_rate"])), 4),
    }


def world(rng: np.random.Generator, taste: float | None) -> tuple[Vector, Vector]:
    """Return value shares and the true kernel: half of the changes within the chapter, by share or by preference."""
    shares = 1 / (rng.permutation(SIZE) + 8.0)
    shares /= shares.sum()
    chapter = np.arange(SIZE) // EACH
    anywhere = np.tile(shares, (SIZE, 1))
    near = anywhere * (chapter[:, None] == chapter)
    if taste is not None:
        near *= rng.gamma(taste, size=near.shape)
    for moves in (anywhere, near):
        np.fill_diagonal(moves, 0)
    anywhere, near = (moves / moves.sum(axis=1, keepdims=True) for moves in (anywhere, near))
    stay = rng.uniform(0.3, 0.7, SIZE)
    return shares, np.diag(stay) + (1 - stay)[:, None] * (anywhere + near) / 2


def _visits(shares: Vector, true: Vector, persons: int, rng: np.random.Generator) -> Codes:
    visits = np.empty((persons, EVENTS), dtype=np.int64)
    visits[:, 0] = rng.choice(SIZE, persons, p=shares)
    for event in range(1, EVENTS):
        draws = rng.random((persons, 1))
        visits[:, event] = np.minimum((draws >= true.cumsum(axis=1)[visits[:, event - 1]]).sum(axis=1), SIZE - 1)
    return visits


def _table(visits: Codes) -> pa.Table:
    who, event = np.indices(visits.shape)
    line = np.arange(visits.size)
    ill = np.array(NAMES)[visits.ravel()]
    return pa.table({"id": who.ravel().astype(str), "visit": event.ravel(), "line": line, "ill": ill})


def _policy(folder: Path) -> Policy:
    columns = {"id": "identifier", "visit": "identifier", "line": "plain"}
    tree = json.loads(json.dumps(TREE))
    return Policy.from_dict(
        {
            "version": 1,
            "person": {"column": "id", "events": "visit"},
            "columns": columns | {"ill": {"role": "sensitive", "hierarchy": {"tree": tree}}},
            "privacy": {"l": L},
            "prior": {"file": "prior.csv", "kernel": {"file": "kernel.csv"}},
            "table": {"method": "veil"},
        },
        base=folder,
    )


def _codes(domain: list[str]) -> Codes:
    """Return the position of each name in the domain: itself, the rest of its chapter, or the rest of all."""
    places = [next(x for x in (name, f"{name[0]}, other", name[0], "other") if x in domain) for name in NAMES]
    return np.array([domain.index(place) for place in places])


def _merged(true: Vector, shares: Vector, codes: Codes) -> Vector:
    """Return the true kernel on the domain."""
    member = np.eye(codes.max() + 2)[codes]
    flow = member.T @ (shares[:, None] * true) @ member
    total = flow.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(flow, total, out=np.zeros_like(flow), where=total > 0))


def _sets(data: pa.Table, domain: list[str]) -> Codes:
    """Return the codes of the published candidates: persons x events x l."""
    places = {name: code for code, name in enumerate(domain)}
    line = np.array(data.column("line").to_pylist())
    sets = np.empty((len(line), L), dtype=np.int64)
    for slot in range(L):
        sets[line, slot] = [places[name] for name in data.column(f"ill_{slot + 1}").to_pylist()]
    return sets.reshape(-1, EVENTS, L)


def _published(veil: dict[str, Any]) -> Vector:
    """Return the published kernel as a matrix."""
    one, kernel = veil["slot_length"], veil["kernel"]
    shares = np.array(veil["segments"][-1], dtype=float) / (one * veil["l"])
    parents, stay = np.array(kernel["parents"]), np.array(kernel["stay"]) / one
    anywhere = np.tile(shares, (len(shares), 1))
    np.fill_diagonal(anywhere, 0)
    near = anywhere * (parents[:, None] == parents)
    alone = near.sum(axis=1, keepdims=True) == 0
    anywhere /= anywhere.sum(axis=1, keepdims=True)
    near = np.where(alone, anywhere, near / np.where(alone, 1, near.sum(axis=1, keepdims=True)))
    within = kernel["within"] / one
    return np.asarray(np.diag(stay) + (1 - stay)[:, None] * (within * near + (1 - within) * anywhere))


def attack(sets: Codes, true_values: Codes, own: Vector, published: Vector) -> float:
    """Return how often an attacker with the kernel `own` guesses the last value."""
    hers = np.zeros_like(published)
    size = min(len(own), len(published))
    hers[:size, :size] = own[:size, :size]
    place = np.ones(sets[:, 0].shape)
    for event in range(1, sets.shape[1]):
        before, after = sets[:, event - 1], sets[:, event]
        false_moves = published[before[:, :, None], after[:, None, :]]
        step = hers[before[:, :, None], after[:, None, :]] * _others(false_moves)
        place = (place[:, :, None] * step).sum(axis=1)
        place /= np.maximum(place.sum(axis=1, keepdims=True), 1e-300)
    belief = np.zeros((len(sets), len(published)))
    np.add.at(belief, (np.arange(len(sets))[:, None], sets[:, -1]), place)
    best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-9)
    return float((best[np.arange(len(sets)), true_values[:, -1]] / best.sum(axis=1)).mean())


def _others(steps: Vector) -> Vector:
    """Return per pair of positions the permanent of the matrix without that row and column."""
    out = np.empty_like(steps)
    for row in range(L):
        for column in range(L):
            rows = [place for place in range(L) if place != row]
            columns = [place for place in range(L) if place != column]
            ways = (steps[:, rows, list(way)].prod(axis=1) for way in permutations(columns))
            out[:, row, column] = np.sum(list(ways), axis=0)
    return out


def _fresh(shares: Vector, true: Vector, true_values: Codes) -> dict[int, float]:
    """Return the success of the same attacker if each value is veiled anew, as by methods without a memory."""
    rng = np.random.default_rng(6)
    units = np.floor(shares * L * (1 << 40)).astype(np.int64)
    units[units.argmax()] += L * (1 << 40) - units.sum()
    orders, rows = random_permutations(SIZE, rng), np.zeros(len(true_values), dtype=np.int64)
    belief, right = np.tile(shares, (len(true_values), 1)), {}
    for event in range(EVENTS):
        sets = draw_candidates(true_values[:, event], rows, units[None, :].astype(np.uint64), orders, rng)
        copies = np.zeros(belief.shape)
        np.add.at(copies, (np.arange(len(sets))[:, None], sets), 1)
        belief = (belief if event == 0 else belief @ true) * copies / shares
        belief /= belief.sum(axis=1, keepdims=True)
        best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-9)
        right[event + 1] = float((best[np.arange(len(sets)), true_values[:, event]] / best.sum(axis=1)).mean())
    return right
