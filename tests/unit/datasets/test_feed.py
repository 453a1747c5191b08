from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.datasets import feed, illnesses
from reticent.datasets.draw import BLOCK
from reticent.datasets.illnesses import Outbreak
from reticent.errors import PolicyError

WEEK = 7 * 86_400
YEAR = 438_000
CATCHING = {value for value, mark in zip(illnesses.VALUES, illnesses.values_with_flag("catching"), strict=True) if mark}
CHRONIC = {value for value, mark in zip(illnesses.VALUES, illnesses.values_with_flag("chronic"), strict=True) if mark}
CHAPTER = dict(zip(illnesses.VALUES, illnesses.CHAPTER.tolist(), strict=True))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return feed.generate(3 * BLOCK, seed=4)


@pytest.fixture(scope="module")
def visits(table) -> dict[str, list[dict]]:
    """The admissions of each person, in the order of time."""
    persons: dict[str, list[dict]] = defaultdict(list)
    for row in table.to_pylist():
        persons[row["patient_id"]].append(row)
    return persons


def information(group: np.ndarray, value: np.ndarray) -> float:
    """Mutual information in nats."""
    counts = np.zeros((group.max() + 1, value.max() + 1))
    np.add.at(counts, (group, value), 1)
    joint = counts / counts.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def coded(column: pa.ChunkedArray, values: tuple[str, ...]) -> np.ndarray:
    return pc.index_in(column, pa.array(values)).to_numpy()


def share(table: pa.Table, value: str) -> float:
    return pc.mean(pc.equal(table["diagnosis"], value)).as_py()


def test_times_rise_at_a_realistic_rate(table):
    seconds = table["admitted"].to_numpy().astype("datetime64[s]").astype(np.int64)
    assert (np.diff(seconds) >= 0).all()
    days = (seconds[-1] - seconds[0]) / 86_400
    assert 1_000 < len(table) / days < 1_400
    hours = np.bincount(seconds // 3_600 % 24, minlength=24)
    assert hours[9:12].mean() > 3 * hours[1:4].mean()


def test_persons_return_and_stay_themselves(table):
    constant = ("household", "age", "sex", "region", "postcode")
    persons = table.group_by("patient_id").aggregate([(name, "count_distinct") for name in constant])
    assert 0.7 < len(persons) / len(table) < 0.8
    assert all(pc.max(persons[f"{name}_count_distinct"]).as_py() == 1 for name in constant)
    assert max(Counter(table["patient_id"].to_pylist()).values()) >= 3


def test_short_feeds_have_returning_persons_and_relatives_too():
    table = feed.generate(400, seed=1)
    persons = len(pc.unique(table["patient_id"]))
    assert persons < 360
    assert len(pc.unique(table["household"])) < persons - 20


def test_chronic_illness_comes_back_and_half_of_the_changes_stay_in_the_chapter(visits):
    steps = [(a["diagnosis"], b["diagnosis"]) for rows in visits.values() for a, b in pairwise(rows)]
    chronic = [old == new for old, new in steps if old in CHRONIC]
    acute = [old == new for old, new in steps if old not in CHRONIC]
    assert np.mean(chronic) > 0.5 > 2 * np.mean(acute)
    assert len(chronic) > 2 * len(acute), "mostly the chronically ill come back"
    changes = [CHAPTER[old] == CHAPTER[new] for old, new in steps if old != new]
    assert 0.4 < np.mean(changes) < 0.6


def test_nobody_gives_birth_or_loses_the_appendix_twice(visits):
    for rows in visits.values():
        values = [row["diagnosis"] for row in rows]
        assert values.count("childbirth") <= 1
        assert values.count("appendicitis") <= 1


def test_l_ten_can_be_met(table):
    counts = pc.value_counts(table["diagnosis"]).field("counts").to_numpy()
    assert 30 <= len(illnesses.VALUES) <= 100
    assert len(set(illnesses.VALUES)) == len(illnesses.VALUES) == len(counts)
    assert counts.max() / len(table) < 1 / 15


def test_diagnosis_depends_strongly_on_age_and_sex(table):
    value = coded(table["diagnosis"], illnesses.VALUES)
    sex = coded(table["sex"], ("female", "male"))
    band = np.searchsorted(illnesses.BANDS, table["age"].to_numpy(), side="right")
    shuffled = np.random.default_rng(1).permutation(len(table))
    for group, least in ((band * 2 + sex, 0.3), (band, 0.25), (sex, 0.03)):
        level = information(group[shuffled], value)
        assert information(group, value) > max(least, 5 * level)


def test_what_cannot_be_never_is(table):
    rows = pa.table({name: table[name] for name in ("age", "sex", "diagnosis")}).to_pylist()
    possible = {(age, sex): illnesses.true_shares(age, sex) > 0 for age in range(100) for sex in ("female", "male")}
    assert all(possible[row["age"], row["sex"]][illnesses.VALUES.index(row["diagnosis"])] for row in rows)

    def having(name: str) -> pa.Table:
        return table.filter(pc.equal(table["diagnosis"], name))

    assert set(having("childbirth")["sex"].to_pylist()) == {"female"}
    assert set(having("prostate cancer")["sex"].to_pylist()) == {"male"}
    assert pc.max(having("childbirth")["age"]).as_py() < 45
    assert pc.max(having("bronchiolitis")["age"]).as_py() < 5
    assert pc.min(having("dementia")["age"]).as_py() >= 60


def test_law_sums_to_one_and_refuses_nonsense():
    for month in (None, 1, 12):
        assert illnesses.true_shares(40, "female", month).sum() == pytest.approx(1)
    for wrong in ((-1, "male", 1), (1, "men", 1), (1, "male", 13)):
        with pytest.raises(PolicyError):
            illnesses.true_shares(*wrong)


def test_first_admissions_of_households_follow_the_law():
    table = feed.generate(100_000, seed=2)
    first = table.group_by("household", use_threads=False).aggregate(
        [(name, "first") for name in ("admitted", "age", "sex", "diagnosis")]
    )
    young = pc.and_(pc.equal(first["sex_first"], "female"), pc.is_in(first["age_first"], pa.array(range(30, 45))))
    february = pc.equal(pc.month(first["admitted_first"]), 2)
    group = first.filter(pc.and_(young, february))
    seen = np.bincount(coded(group["diagnosis_first"], illnesses.VALUES), minlength=len(illnesses.VALUES))
    expected = illnesses.true_shares(35, "female", 2) * len(group)
    assert (seen[expected == 0] == 0).all()
    chi = ((seen - expected) ** 2)[expected > 5] / expected[expected > 5]
    assert len(group) > 1_000
    assert chi.sum() < len(chi) + 4 * np.sqrt(2 * len(chi))


def test_season_decides():
    table = feed.generate(YEAR, seed=1)
    month = pc.month(table["admitted"])
    winter = table.filter(pc.is_in(month, pa.array([1, 2])))
    summer = table.filter(pc.is_in(month, pa.array([7, 8])))
    assert share(winter, "influenza") > 8 * share(summer, "influenza")
    assert share(winter, "pneumonia") > 2 * share(summer, "pneumonia")
    assert share(summer, "gastroenteritis") > 2 * share(winter, "gastroenteritis")
    assert share(summer, "stroke") == pytest.approx(share(winter, "stroke"), rel=0.15)


def pairs_of_a_week(table: pa.Table) -> list[tuple[str, str]]:
    """First diagnoses of two persons of one household within a week of each other."""
    homes: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)
    for row in table.to_pylist():
        homes[row["household"]].setdefault(row["patient_id"], (row["admitted"].timestamp(), row["diagnosis"]))
    return [(a[1], b[1]) for persons in homes.values() for a, b in pairwise(persons.values()) if b[0] - a[0] < WEEK]


def test_catching_illness_passes_within_the_household(table):
    pairs = pairs_of_a_week(table)
    shares = Counter(table["diagnosis"].to_pylist())
    catching = [b == a for a, b in pairs if a in CATCHING]
    other = [b == a for a, b in pairs if a not in CATCHING]
    independent = sum((count / len(table)) ** 2 for count in shares.values())
    assert len(catching) > 500
    assert np.mean(catching) > 10 * independent
    assert np.mean(catching) > 5 * np.mean(other)


def test_a_household_shares_its_address_and_has_several_generations(table):
    homes = table.group_by("household").aggregate([("postcode", "count_distinct"), ("age", "min"), ("age", "max")])
    assert pc.max(homes["postcode_count_distinct"]).as_py() == 1
    gap = pc.subtract(homes["age_max"], homes["age_min"]).to_numpy()
    assert (gap >= 20).sum() > 1_000


@pytest.mark.parametrize("value", ["influenza", "tuberculosis"])
def test_an_outbreak_is_about_six_fold_and_only_in_the_middle(value):
    n = 90_000
    usual, epidemic = feed.generate(n, seed=3), feed.generate(n, seed=3, outbreak=value)
    span = Outbreak.in_middle(n, value)
    height = slice_of(span)
    ratio = share(epidemic.slice(*height), value) / share(usual.slice(*height), value)
    assert 5 < ratio < 7.5
    assert epidemic.slice(0, span.first).equals(usual.slice(0, span.first))
    late = span.last + 15_000
    assert share(epidemic.slice(late), value) < 2 * share(usual.slice(late), value)


def slice_of(span: Outbreak) -> tuple[int, int]:
    """Offset and length of the height of an outbreak."""
    length = span.last - span.first
    return span.first + length // 5, length * 3 // 5


def test_an_outbreak_keeps_to_what_can_be():
    table = feed.generate(30_000, seed=1, outbreak="childbirth")
    births = table.filter(pc.equal(table["diagnosis"], "childbirth"))
    assert set(births["sex"].to_pylist()) == {"female"}
    assert pc.max(births["age"]).as_py() < 45


def test_an_outbreak_lasts_six_weeks_at_most_and_must_be_known():
    span = Outbreak.in_middle(1_000_000)
    assert span.last - span.first == 6 * 7 * 1_200
    assert span.strength(np.array([0, span.first, 500_000, span.last])).tolist() == [1, 1, 6.5, 1]
    with pytest.raises(PolicyError, match="influenza"):
        feed.generate(10, outbreak="the vapours")


def test_prior_knows_every_value_and_looks_like_a_year(table):
    prior = feed.prior_by_sex(4)
    assert set(prior["value"].to_pylist()) == set(illnesses.VALUES)
    assert prior.equals(feed.prior_by_sex(4))
    assert not prior.equals(feed.prior_by_sex(5))
    counts = {
        row["value"]: row["count_sum"] for row in prior.group_by("value").aggregate([("count", "sum")]).to_pylist()
    }
    past = np.array([counts[value] for value in illnesses.VALUES]) / sum(counts.values())
    now = np.array([share(table, value) for value in illnesses.VALUES])
    seasonal = np.logical_or.reduce([illnesses.values_with_flag(mark) for mark in ("flu", "cold", "warm")])
    assert np.allclose(past[~seasonal], now[~seasonal], atol=0.005)
    winter = illnesses.values_with_flag("flu") | illnesses.values_with_flag("cold")
    assert (past[winter] < now[winter]).all(), "the feed begins in January, the prior is of all seasons"


def test_memory_does_not_grow_with_the_rows():
    def peak(blocks: int) -> int:
        tracemalloc.start()
        for _ in feed.batches(blocks * BLOCK, seed=1, size=BLOCK):
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(8)  # fills the caches that stay
    assert peak(40) < 1.2 * peak(12)
