"""Readers: how often an informed one is right, by method, on disjoint thirds; and what a recipient's counts are worth.

The prior comes from the first third, her model from the second, the third is published. Every record carries a ticket, so that
she knows which one is whose: the worst case, which coarser fields do not soften here.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.priors import adult_fields
from bench.reading.bounds import veil_bounds
from reticent.audit.attack.grouped_records import GroupedRecords, normalize_rows
from reticent.audit.attack.informed_attacker import figures_of, update_beliefs
from reticent.audit.attack.observations import Observations, observations_of
from reticent.datasets import adult, feed, hospital
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.fitted_prior import FittedPrior, write_prior
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.prior import read_strata
from reticent.read.estimate.veil import Veil
from reticent.read.question import Question
from reticent.read.shape.veil import Veiled
from reticent.read.where import match_all
from reticent.release import Release
from reticent.verify.published import read_release, text_table

TICKET = "ticket"
_AGE = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
_STAY = {"role": "quasi", "hierarchy": {"intervals": [[1, 3, 7, 14, 28], [7, 28]]}}
_FEW = 0.01  # of the records: rarer values, and labels of less than five times that, are not asked for
_EPSILONS = (1.0, 0.2)  # of noisy totals
_FLOOD = 0.085  # of the records get the value of the outbreak


@dataclass
class World:
    """A table cut in thirds, its columns, and where to keep files."""

    table: pa.Table
    columns: dict[str, Any]
    sensitive: str
    l: int
    base: Path

    @cached_property
    def thirds(self) -> list[pa.Table]:
        """Three disjoint samples."""
        order = np.random.default_rng(7).permutation(self.table.num_rows)
        return [self.table.take(pa.array(part)) for part in np.array_split(order, 3)]

    @cached_property
    def released(self) -> pa.Table:
        """The last third, a ticket on every record."""
        return _ticketed(self.thirds[2])

    @cached_property
    def counted(self) -> pa.Table:
        """The last two thirds, for counting: the recipient has no reader to keep apart."""
        return _ticketed(pa.concat_tables(self.thirds[1:]))

    def policy(self, **sections: Any) -> Policy:
        """Roles, l, and what else is asked for."""
        columns = self.columns | {TICKET: "plain", self.sensitive: self._sensitive()}
        base = {"version": 1, "columns": columns, "privacy": {"l": self.l, "suppression": 0.3}}
        return Policy.from_dict(base | sections, base=self.base)

    @cached_property
    def fitted(self) -> FittedPrior:
        """Of the first third; taken as public, so that no noise blurs the comparison."""
        policy, rng = _without(self.policy()), np.random.default_rng(1)
        return fit(self.thirds[0], policy, self.sensitive, l=self.l, epsilon=None, rng=rng)

    def _prior(self, folder: Path, *, strata: bool) -> Path:
        """The prior as a file: by strata, or the same counts for everybody."""
        file = folder / f"prior-{len(list(folder.iterdir()))}.csv"
        write_prior(self.fitted.prior, file)
        if not strata:
            totals = read_strata(file).total_counts()
            file.write_text(
                "value,count\n" + "".join(f'"{value or ""}",{count:.6g}\n' for value, count in totals.items())
            )
        return file

    def _sensitive(self) -> dict[str, Any]:
        return {"role": "sensitive"} | ({"hierarchy": {"icd10": True}} if "ward" in self.columns else {})

    def veil(self, folder: Path, *, strata: bool = True, table: pa.Table | None = None, **prior: Any) -> Release:
        """The last third, or another table, under the veil; the prior from the first."""
        policy = self.policy(prior={"file": str(self._prior(folder, strata=strata))} | prior, table={"method": "veil"})
        return publisher(policy, "table", "veil", rng=Rng.from_seed(5)).release(
            self.released if table is None else table
        )


def _ticketed(table: pa.Table) -> pa.Table:
    return table.append_column(TICKET, pa.array([f"t{at}" for at in range(table.num_rows)]))


def _without(policy: Policy) -> Policy:
    """The policy of the past, where nobody has a ticket."""
    data = policy.to_dict()
    data["columns"].pop(TICKET)
    return Policy.from_dict(data, base=policy.base)


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """One table of readers, what levels gain, and how exact counts are."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        worlds = _worlds(9_000 if quick else 100_000, folder)
        for title, world in worlds.items():
            if "exact" not in title:
                figures[title] = _methods(world, folder) | {
                    "ratio_that_the_prior_measured": round(world.fitted.measures.ratio, 3)
                }
                print(title, figures[title], flush=True)  # it takes minutes
        figures["levels on hospital data"] = _levels(worlds, folder)
        print("levels", figures["levels on hospital data"], flush=True)
        if "adult" in worlds:
            worlds["adult, l = 3"] = replace(worlds["adult"], l=3)
        asked = {title: world for title, world in worlds.items() if "exact" not in title}
        figures["counts"] = {title: _counts(world, folder) for title, world in asked.items()}
    return figures


def _worlds(size: int, folder: Path) -> dict[str, World]:
    worlds = {
        "hospital": _hospital(size, folder, exact=False),
        "hospital, exact fields": _hospital(size, folder, exact=True),
        "feed": _feed(size * 3 // 2, folder),
    }
    place = adult.data_folder("adult.data")
    return ({} if place is None else {"adult": _adult(place, size)}) | worlds


def _adult(folder: Path, size: int) -> World:
    table, columns = adult_fields(folder)
    return World(
        table.slice(0, size).select([*columns, adult.STREAM_SENSITIVE]), columns, adult.STREAM_SENSITIVE, 8, folder
    )


def _hospital(size: int, folder: Path, *, exact: bool) -> World:
    table = hospital.generate(size, 0)
    days = pc.days_between(table["birth_date"], table["admission_date"])
    names = ("sex", "ward", "admission_route", "length_of_stay", "diagnosis")
    shown = {name: table[name] for name in names} | {"age": pc.cast(pc.floor(pc.divide(days, 365.2425)), pa.int64())}
    columns: dict[str, Any] = dict.fromkeys(("sex", "ward", "admission_route"), "quasi")
    columns |= {"length_of_stay": _STAY | {"level": 0 if exact else 1}, "age": _AGE | {"level": 0 if exact else 2}}
    return World(pa.table(shown), columns, "diagnosis", 10, folder)


def _feed(size: int, folder: Path) -> World:
    """First visits; the time of admission stays at home."""
    table = feed.generate(size * 3 // 2, 0)
    person = table["patient_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    first = np.sort(np.unique(person, return_index=True)[1])[:size]
    table = table.take(pa.array(first))
    names = [name for name in ("sex", "age", "admission_route", "route") if name in table.column_names]
    columns = {name: dict(_AGE) if name == "age" else "quasi" for name in names}
    return World(table.select([*names, "diagnosis"]), columns, "diagnosis", 10, folder)


def _methods(world: World, folder: Path) -> dict[str, Any]:
    figures = {}
    releases = {
        "veil, prior by strata": lambda: world.veil(folder),
        "veil, prior without fields": lambda: world.veil(folder, strata=False),
        "anatomy": lambda: _anatomy(world, world.released),
        "naive sealed": lambda: _naive(world, world.released),
        "delay-free": lambda: _delay_free(world, folder),
    }
    for name, release in releases.items():
        start = time.perf_counter()
        try:
            figures[name] = _reader(world, release()) | {"seconds": round(time.perf_counter() - start, 1)}
        except Exception as error:  # noqa: BLE001 - a method that refuses the data is a line of the table, too
            figures[name] = {"refused": str(error)[:200]}
    return figures


def _anatomy(world: World, table: pa.Table) -> Release:
    return publisher(world.policy(), "table", "anatomy", rng=Rng.from_seed(5)).release(table)


def _naive(world: World, table: pa.Table) -> Release:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "twins"))
    import naive

    past = Counter(text_table(world.thirds[0])[world.sensitive].fill_null("(missing)").to_pylist())
    table = text_table(table)
    at = table.column_names.index(world.sensitive)
    table = table.set_column(at, world.sensitive, table[world.sensitive].fill_null("(missing)"))
    return naive.sealed(table, past, world.l, sensitive=world.sensitive)


def _delay_free(world: World, folder: Path) -> Release:
    past = Counter(text_table(world.thirds[0])[world.sensitive].to_pylist())
    past |= {value: 1 for value in text_table(world.released)[world.sensitive].to_pylist() if value not in past}
    file = folder / f"stream-{len(list(folder.iterdir()))}.csv"
    rows = "".join(f'"{value or ""}",{count}\n' for value, count in past.items())
    file.write_text("value,count\n" + rows, encoding="utf-8")
    policy = world.policy(prior={"file": str(file)}, stream={"method": "delay-free", "l": world.l})
    engine = publisher(policy, "stream", "delay-free", rng=Rng.from_seed(5))
    parts = [*engine.push(world.released), *engine.close()]
    tables = {
        name: pa.concat_tables([p.tables[name] for p in parts if name in p.tables]) for name in ("group", "tuple")
    }
    object.__setattr__(parts[0], "tables", tables)
    return parts[0]


def _seen(world: World, release: Release) -> Observations:
    seen = observations_of(read_release(release, ""), world.policy())
    assert seen is not None
    return seen


def _reader(world: World, release: Release) -> dict[str, Any]:
    """What the informed reader of the second third makes of the release of the last."""
    seen, policy = _seen(world, release), world.policy()
    names = [*world.columns, world.sensitive, TICKET]
    teachers = world.thirds[1].append_column(TICKET, pa.nulls(world.thirds[1].num_rows, pa.string()))
    both = pa.concat_tables([text_table(world.released.select(names)), text_table(teachers.select(names))])
    size = world.released.num_rows
    source = np.arange(both.num_rows) >= size
    reading = update_beliefs(seen, both, source, ~source[:size], policy, np.random.default_rng(3), limit=10_000)
    assert reading is not None
    figures = figures_of(reading, seen)
    figures["ratio"] = round(figures["after"] / max(1 / world.l, figures["before"]), 3)
    return {key: figures[key] for key in ("before", "after", "ratio", "above_half", "above_nine_tenths", "strata")}


def _levels(worlds: dict[str, World], folder: Path) -> dict[str, Any]:
    """The hospital's fields at levels and as they are: the reader, and the error of counts."""
    found = {}
    for title in ("hospital", "hospital, exact fields"):
        world = worlds[title]
        reader = _reader(world, world.veil(folder))
        counted = _ht2(world, world.veil(folder, table=world.counted), world.counted, coarse=True)
        found[title] = {"reader": reader, "counts": counted}
    return found


def _counts(world: World, folder: Path) -> dict[str, Any]:
    """Errors of counts by field and value: HT2 on the veil, shares in groups; coverage, also in an outbreak."""
    table, flooded = world.counted, _flooded(world)
    figures = {
        "records": table.num_rows,
        "veil": _ht2(world, world.veil(folder, table=table), table),
        "veil, in an outbreak": _ht2(world, world.veil(folder, table=flooded), flooded),
        **{
            f"veil, totals of epsilon {epsilon}": _ht2(world, world.veil(folder, table=table, totals=epsilon), table)
            for epsilon in _EPSILONS
        },
        "veil, totals, in an outbreak": _ht2(world, world.veil(folder, table=flooded, totals=_EPSILONS[0]), flooded),
        "anatomy, shares": _shares(world, _anatomy(world, table), table),
        "naive sealed, shares": _shares(world, _naive(world, table), table),
    }
    if "ward" in world.columns:
        hierarchy = world.veil(folder, table=table, order="hierarchy")
        figures["veil, order: hierarchy"] = _ht2(world, hierarchy, table)
    print("counts", figures, flush=True)
    return figures


def _flooded(world: World) -> pa.Table:
    """A share of the records has one value of middling frequency."""
    table = world.counted
    often = Counter(text_table(table)[world.sensitive].drop_null().to_pylist()).most_common()
    value = min(often, key=lambda pair: abs(pair[1] / table.num_rows - 2 * _FEW))[0]
    hit = np.random.default_rng(11).random(table.num_rows) < _FLOOD
    at = table.column_names.index(world.sensitive)
    column = pc.if_else(pa.array(hit), value, table[world.sensitive].cast(pa.string()))
    return table.set_column(at, world.sensitive, column)


@dataclass
class _Questions:
    """Labels of fields, and values, worth asking for; `truth` is fields' labels x values."""

    groups: dict[str, tuple[np.ndarray, np.ndarray]]  # per field: label of each record, labels asked for
    values: np.ndarray
    truth: dict[str, np.ndarray]


def _questions(fields: pa.Table, truth: np.ndarray, width: int, seen: np.ndarray) -> _Questions:
    """Ask by every label of at least 5 % for every value of at least 1 % of the records."""
    size = len(truth)
    values = np.flatnonzero(np.bincount(truth[truth >= 0], minlength=width) >= _FEW * size)
    groups, exact = {}, {}
    for name in fields.column_names:
        if name == TICKET:
            continue
        code = fields[name].fill_null("").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        often = np.flatnonzero(np.bincount(code) >= 5 * _FEW * size)
        if len(often) > 1:
            table = np.zeros((int(code.max()) + 1, width))
            np.add.at(table, (code[seen], truth[seen]), 1)
            groups[name], exact[name] = (code, often), table
    return _Questions(groups, values, exact)


def _places(seen: Observations) -> np.ndarray:
    """The row of the original behind every record, by its ticket."""
    return np.array([int(ticket[1:]) for ticket in seen.fields[TICKET].to_pylist()])


def _truth(seen: Observations, world: World, original: pa.Table) -> np.ndarray:
    from reticent.verify.veil.true_values import true_value_codes

    found = true_value_codes(seen.values, text_table(original)[world.sensitive], world.policy(), world.sensitive)
    return found[_places(seen)]


def _ht2(world: World, release: Release, original: pa.Table, *, coarse: bool = False) -> dict[str, float]:
    """Weighted relative error, coverage of the 95 % interval, and the least error that any unbiased count could have."""
    seen, document = _seen(world, release), release.documents["veil"]
    names = tuple(f"{world.sensitive}_{slot + 1}" for slot in range(world.l))
    shape, truth = Veiled(release.tables["data"], document, names), _truth(seen, world, original)
    asked = _questions(_coarse(seen.fields) if coarse else seen.fields, truth, len(seen.values), truth >= 0)
    whole, every = match_all(len(truth)), np.eye(len(seen.values))
    misses, total, inside, silent, best = 0.0, 0.0, [], 0, 0.0
    for name, (code, labels) in asked.groups.items():
        bounds = None if "totals" in document else _bounds(shape.veil, seen.strata, truth, code, labels)
        for value in asked.values:
            try:
                answer = shape.counts(Question(every[value], whole, code, int(code.max()) + 1, 0.95))
            except PolicyError:  # a value whose copies never vary cannot be counted
                silent += 1
                continue
            exact = asked.truth[name][labels, value]
            misses, total = misses + float(np.abs(answer.estimate[labels] - exact).sum()), total + float(exact.sum())
            inside += ((answer.low[labels] <= exact) & (exact <= answer.high[labels])).tolist()
            if bounds is not None:
                # The mean of a normal error is this much of its standard deviation.
                best += float(np.sqrt(2 / np.pi * bounds[:, value]).sum())
    least = {} if "totals" in document else {"least_of_any_unbiased": round(best / max(total, 1), 4)}
    return {
        "error": round(misses / max(total, 1), 4),
        **least,
        "coverage": round(float(np.mean(inside)), 4),
        "questions": len(inside),
        "silent": silent,
    }


def _bounds(veil: Veil, rows: np.ndarray, truth: np.ndarray, code: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels x values: the Cramer-Rao bound of each count, at the true distribution."""
    every, regions = np.eye(len(veil.domain)), [code == label for label in labels]
    return np.array([veil_bounds(veil, rows[region], truth[region], every) for region in regions])


def _coarse(fields: pa.Table) -> pa.Table:
    """Only fields that are published alike with and without levels, so that the same is asked of both."""
    return fields.select([name for name in fields.column_names if name in ("sex", "ward", "admission_route")])


def _shares(world: World, release: Release, table: pa.Table) -> dict[str, float]:
    """The same error where every record counts as its group's shares."""
    seen = _seen(world, release)
    assert isinstance(seen, GroupedRecords)
    truth = _truth(seen, world, table)
    asked = _questions(seen.fields, truth, len(seen.values), truth >= 0)
    misses, total, questions = 0.0, 0.0, 0
    for name, (code, labels) in asked.groups.items():
        members = np.zeros((int(code.max()) + 1, seen.offers.size))
        np.add.at(members, (code, seen.group), 1)
        sums = members @ normalize_rows(seen.counts(np.arange(seen.offers.size)))
        error = np.abs(sums - asked.truth[name])[np.ix_(labels, asked.values)]
        misses, questions = misses + float(error.sum()), questions + error.size
        total += float(asked.truth[name][np.ix_(labels, asked.values)].sum())
    return {"error": round(misses / max(total, 1), 4), "questions": questions}
