"""Attackers: how often an informed attacker is right, by method, on disjoint thirds; and the error of counts.

The prior comes from the first third, the attacker's model from the second; the last third is published. Every record
has a ticket, so that the attacker knows whose record it is: the worst case, which generalization does not weaken here.
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
_FEW = 0.01  # share of records; rarer values, and labels below five times that, are not counted
_EPSILONS = (1.0, 0.2)  # of the noisy counts
_FLOOD = 0.085  # share of records with the value of the outbreak


@dataclass
class World:
    """A table cut in thirds, its columns, and a folder for files."""

    table: pa.Table
    columns: dict[str, Any]
    sensitive: str
    l: int
    base: Path

    @cached_property
    def thirds(self) -> list[pa.Table]:
        """Return three disjoint samples."""
        order = np.random.default_rng(7).permutation(self.table.num_rows)
        return [self.table.take(pa.array(part)) for part in np.array_split(order, 3)]

    @cached_property
    def released(self) -> pa.Table:
        """Return the last third, with a ticket on every record."""
        return _ticketed(self.thirds[2])

    @cached_property
    def counted(self) -> pa.Table:
        """Return the last two thirds, for counts, which need no sample for the attacker."""
        return _ticketed(pa.concat_tables(self.thirds[1:]))

    def policy(self, **sections: Any) -> Policy:
        """Return a policy with roles, l and further sections."""
        columns = self.columns | {TICKET: "plain", self.sensitive: self._sensitive()}
        base = {"version": 1, "columns": columns, "privacy": {"l": self.l, "suppression": 0.3}}
        return Policy.from_dict(base | sections, base=self.base)

    @cached_property
    def fitted(self) -> FittedPrior:
        """Return the prior of the first third; taken as public, so that no noise blurs the comparison."""
        policy, rng = _without(self.policy()), np.random.default_rng(1)
        return fit(self.thirds[0], policy, self.sensitive, l=self.l, epsilon=None, rng=rng)

    def _prior(self, folder: Path, *, strata: bool) -> Path:
        """Write the prior to a file: by stratum, or the same counts for everybody."""
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
        """Return the last third, or another table, under the veil; the prior is that of the first third."""
        policy = self.policy(prior={"file": str(self._prior(folder, strata=strata))} | prior, table={"method": "veil"})
        return publisher(policy, "table", "veil", rng=Rng.from_seed(5)).release(
            self.released if table is None else table
        )


def _ticketed(table: pa.Table) -> pa.Table:
    return table.append_column(TICKET, pa.array([f"t{at}" for at in range(table.num_rows)]))


def _without(policy: Policy) -> Policy:
    """Return the policy of the past data, which has no tickets."""
    data = policy.to_dict()
    data["columns"].pop(TICKET)
    return Policy.from_dict(data, base=policy.base)


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Return the attackers' success by method, the gain from levels, and the error of counts."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        worlds = _worlds(9_000 if quick else 100_000, folder)
        for title, world in worlds.items():
            if "exact" not in title:
                figures[title] = _methods(world, folder) | {
                    "ratio_that_the_prior_measured": round(world.fitted.measures.ratio, 3)
                }
                print(title, figures[title], flush=True)  # progress: a run takes minutes
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
    """Return first visits, without the time of admission."""
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
            figures[name] = _attacker(world, release()) | {"seconds": round(time.perf_counter() - start, 1)}
        except Exception as error:  # noqa: BLE001 - a method that refuses the data is a line of the table, too
            figures[name] = {"refused": str(error)[:200]}
    return figures


def _anatomy(world: World, table: pa.Table) -> Release:
    return publisher(world.policy(), "table", "anatomy", rng=Rng.from_seed(5)).release(table)


def _naive(world: World, table: pa.Table) -> Release:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "reference"))
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


def _attacker(world: World, release: Release) -> dict[str, Any]:
    """Return the success of the attacker informed by the second third on the release of the last third."""
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
    """Return the attacker's success and the error of counts with the hospital's fields generalized and exact."""
    figures = {}
    for title in ("hospital", "hospital, exact fields"):
        world = worlds[title]
        attacker = _attacker(world, world.veil(folder))
        counted = _ht2(world, world.veil(folder, table=world.counted), world.counted, coarse=True)
        figures[title] = {"attacker": attacker, "counts": counted}
    return figures


def _counts(world: World, folder: Path) -> dict[str, Any]:
    """Return errors of counts by field and value: HT2 on the veil, shares in groups; coverage, also in an outbreak."""
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
    """Return the table with one value of medium frequency in a share of the records."""
    table = world.counted
    often = Counter(text_table(table)[world.sensitive].drop_null().to_pylist()).most_common()
    value = min(often, key=lambda pair: abs(pair[1] / table.num_rows - 2 * _FEW))[0]
    hit = np.random.default_rng(11).random(table.num_rows) < _FLOOD
    at = table.column_names.index(world.sensitive)
    column = pc.if_else(pa.array(hit), value, table[world.sensitive].cast(pa.string()))
    return table.set_column(at, world.sensitive, column)


@dataclass
class _Questions:
    """Labels of fields, and values, to count; `true_counts` is labels x values per field."""

    groups: dict[str, tuple[np.ndarray, np.ndarray]]  # per field: label of each record, labels to count
    values: np.ndarray
    true_counts: dict[str, np.ndarray]


def _questions(fields: pa.Table, true_values: np.ndarray, width: int, seen: np.ndarray) -> _Questions:
    """Count every value of at least 1 % of the records by every label of at least 5 %."""
    size = len(true_values)
    values = np.flatnonzero(np.bincount(true_values[true_values >= 0], minlength=width) >= _FEW * size)
    groups, exact = {}, {}
    for name in fields.column_names:
        if name == TICKET:
            continue
        code = fields[name].fill_null("").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        often = np.flatnonzero(np.bincount(code) >= 5 * _FEW * size)
        if len(often) > 1:
            table = np.zeros((int(code.max()) + 1, width))
            np.add.at(table, (code[seen], true_values[seen]), 1)
            groups[name], exact[name] = (code, often), table
    return _Questions(groups, values, exact)


def _places(seen: Observations) -> np.ndarray:
    """Return the row of the original of every record, by its ticket."""
    return np.array([int(ticket[1:]) for ticket in seen.fields[TICKET].to_pylist()])


def _true_values(seen: Observations, world: World, original: pa.Table) -> np.ndarray:
    from reticent.verify.veil.true_values import true_value_codes

    codes_of_rows = true_value_codes(
        seen.values, text_table(original)[world.sensitive], world.policy(), world.sensitive
    )
    return codes_of_rows[_places(seen)]


def _ht2(world: World, release: Release, original: pa.Table, *, coarse: bool = False) -> dict[str, float]:
    """Return the weighted relative error, coverage of the 95 % interval, and the least error of an unbiased count."""
    seen, document = _seen(world, release), release.metadata["veil"]
    names = tuple(f"{world.sensitive}_{slot + 1}" for slot in range(world.l))
    shape, true_values = Veiled(release.tables["data"], document, names), _true_values(seen, world, original)
    asked = _questions(_coarse(seen.fields) if coarse else seen.fields, true_values, len(seen.values), true_values >= 0)
    whole, every = match_all(len(true_values)), np.eye(len(seen.values))
    misses, total, inside, silent, best = 0.0, 0.0, [], 0, 0.0
    for name, (code, labels) in asked.groups.items():
        bounds = None if "counts" in document else _bounds(shape.veil, seen.strata, true_values, code, labels)
        for value in asked.values:
            try:
                answer = shape.counts(Question(every[value], whole, code, int(code.max()) + 1, 0.95))
            except PolicyError:  # a value whose number of copies never varies cannot be counted
                silent += 1
                continue
            exact = asked.true_counts[name][labels, value]
            misses, total = misses + float(np.abs(answer.estimate[labels] - exact).sum()), total + float(exact.sum())
            inside += ((answer.low[labels] <= exact) & (exact <= answer.high[labels])).tolist()
            if bounds is not None:
                # The mean absolute value of a normal error is this share of its standard deviation.
                best += float(np.sqrt(2 / np.pi * bounds[:, value]).sum())
    least = {} if "counts" in document else {"least_of_any_unbiased": round(best / max(total, 1), 4)}
    return {
        "error": round(misses / max(total, 1), 4),
        **least,
        "coverage": round(float(np.mean(inside)), 4),
        "questions": len(inside),
        "silent": silent,
    }


def _bounds(veil: Veil, rows: np.ndarray, true_values: np.ndarray, code: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the Cramer-Rao bound of each count at the true distribution, as labels x values."""
    every, regions = np.eye(len(veil.domain)), [code == label for label in labels]
    return np.array([veil_bounds(veil, rows[region], true_values[region], every) for region in regions])


def _coarse(fields: pa.Table) -> pa.Table:
    """Return only the fields that are published alike with and without levels, so that both answer the same counts."""
    return fields.select([name for name in fields.column_names if name in ("sex", "ward", "admission_route")])


def _shares(world: World, release: Release, table: pa.Table) -> dict[str, float]:
    """Return the same error if every record counts with the shares of its group."""
    seen = _seen(world, release)
    assert isinstance(seen, GroupedRecords)
    true_values = _true_values(seen, world, table)
    asked = _questions(seen.fields, true_values, len(seen.values), true_values >= 0)
    misses, total, questions = 0.0, 0.0, 0
    for name, (code, labels) in asked.groups.items():
        members = np.zeros((int(code.max()) + 1, seen.offers.size))
        np.add.at(members, (code, seen.group), 1)
        sums = members @ normalize_rows(seen.counts(np.arange(seen.offers.size)))
        error = np.abs(sums - asked.true_counts[name])[np.ix_(labels, asked.values)]
        misses, questions = misses + float(error.sum()), questions + error.size
        total += float(asked.true_counts[name][np.ix_(labels, asked.values)].sum())
    return {"error": round(misses / max(total, 1), 4), "questions": questions}
