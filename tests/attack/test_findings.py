"""What broke the group modes that are no longer made, tried on a naive release and on the veil: new values, an outbreak, priors from the data, insiders."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations

import naive
import numpy as np
import pytest

from reticent._core import veil
from reticent.audit.attack.insiders import insiders
from reticent.audit.attack.outbreak import outbreak
from reticent.errors import PolicyError

L = 10
N = 8000
FLAT = 1 / (np.arange(naive.VALUES) + 12.0)
NEW = "v99"


@pytest.fixture(scope="module")
def past():
    return naive.world(30_000, 1, shares=FLAT)


@pytest.fixture(scope="module")
def now():
    return naive.world(N, 2, shares=FLAT)


def struck(table, share, value, seed=5):
    """A share of the persons has the value now."""
    places = np.flatnonzero(np.random.default_rng(seed).random(table.num_rows) < share)
    return naive.with_value(table, places, value)


def rules(folder, past, l=L):
    return naive.policy(folder, past, l, by=False)


def sealed(table, past, l=L):
    return naive.sealed(table, naive.counted(past), l)


# Finding 1: a value that the prior lacks.


def offered_other(release):
    """Groups that offer `other`, with their members."""
    rows = release.tables["group"].to_pylist()
    groups = {row["group"] for row in rows if row["value"] == naive.OTHER}
    members = defaultdict(list)
    for row in release.tables["tuple"].to_pylist():
        if row["group"] in groups:
            members[row["group"]].append(int(row["seq"]))
    return members


def test_finding_1_a_new_value_is_exposed_in_groups(tmp_path, past, now):
    table = struck(now, 0.09, NEW)
    release = sealed(table, past)
    outcome = outbreak(naive.evidence([release], rules(tmp_path, past), table))
    assert outcome.figures["new"]
    assert 0.3 < outcome.accuracy < 0.9
    values = table["ill"].to_pylist()
    alone = [values[members[0]] for members in offered_other(release).values() if len(members) == 1]
    assert len(alone) > 20
    assert set(alone) == {NEW}


def test_finding_1_a_new_value_is_omitted_under_the_veil_and_no_set_discloses_it(tmp_path, past, now):
    table = struck(now, 0.09, NEW)
    policy = rules(tmp_path, past)
    release = naive.veiled(table, policy)
    outcome = outbreak(naive.evidence([release], policy, table))
    assert outcome.figures["new"]
    assert outcome.tried == N
    assert outcome.claim == pytest.approx(0.09, abs=0.01)
    assert not outcome.refuted
    data, values = release.tables["data"], table["ill"].to_pylist()
    new = np.array([values[int(ticket[1:])] == NEW for ticket in data["ticket"].to_pylist()])
    sets = np.array([data[f"ill_{slot}"].to_pylist() for slot in range(1, L + 1)]).T
    for value in np.unique(sets):
        offered = new[(sets == value).any(axis=1)]
        assert offered.mean() - new.mean() < 4.5 * (new.mean() / len(offered)) ** 0.5


# Finding 2: an outbreak, from 1.7 to 10.2 % of the records.

FLU = "v20"


def test_finding_2_who_opens_a_group_that_offers_it_has_it(tmp_path, past, now):
    table = struck(now, 0.085, FLU)
    outcome = outbreak(naive.evidence([sealed(table, past)], rules(tmp_path, past), table))
    assert outcome.figures["before"] < 0.03
    assert outcome.figures["now"] > 0.09
    assert outcome.tried > 300
    assert outcome.accuracy > 0.95


def test_finding_2_under_the_veil_an_outbreak_costs_its_own_odds_ratio_and_no_more(tmp_path, past, now):
    table, policy = struck(now, 0.085, FLU), rules(tmp_path, past)
    outcome = outbreak(naive.evidence([naive.veiled(table, policy)], policy, table))
    odds_ratio = outcome.figures["odds_ratio"]
    assert 4 < odds_ratio < 8
    limit = odds_ratio / (odds_ratio + L - 1)
    assert outcome.claim == pytest.approx(limit, abs=0.01)
    assert outcome.tried > 1000
    assert outcome.accuracy < limit + 3 * (limit * (1 - limit) / outcome.tried) ** 0.5
    assert not outcome.refuted


# Finding 3: priors from the data.


def certain(release_of):
    """Share of (world, person) pairs that an attacker with the transcript is certain of; the worlds are {x, x, y, z} in any order."""
    seen = defaultdict(Counter)
    worlds = sorted(set(permutations("xxyz")))
    for world in worlds:
        for person, value in enumerate(world):
            seen[release_of(world), person][value] += 1
    count = sum(sum(values.values()) for values in seen.values() if len(values) == 1)
    return Fraction(count, 4 * len(worlds))


def grouped(world):
    table = naive.world(4, 1).set_column(4, "ill", [list(world)])
    tables = naive.sealed(table, Counter(world), 2).tables
    return tuple(map(tuple, (tables["group"]["value"].to_pylist(), tables["tuple"]["group"].to_pylist())))


def test_finding_3_a_design_from_the_tables_own_histogram_makes_persons_certain():
    assert certain(grouped) >= Fraction(1, 4)


def test_finding_3_under_the_veil_the_published_prior_and_all_sets_leave_one_in_l():
    """Many keys, four persons drawn from the prior: whatever the others show, a slot is the true one in half of the cases."""
    length = int(veil.SLOT_LENGTH)
    segments = np.array([[length, length // 2, length // 2]], dtype=np.uint64)
    value_orders = np.array([[0, 1, 2], [1, 0, 2]], dtype=np.uint16)
    rng, tallies = np.random.default_rng(4), defaultdict(Counter)
    for key in range(4000):
        world = rng.choice(3, 4, p=[0.5, 0.25, 0.25])
        mechanism = veil.Veil(
            key=key.to_bytes(32, "little"), l=2, segments=segments, permutations=value_orders, kernel=None
        )
        strata = np.zeros(4, dtype=np.uint32)
        sets = np.sort(
            mechanism.begin(np.arange(4, dtype=np.uint64), strata, world.astype(np.int32)).candidates, axis=1
        )
        tallies[tuple(sets[0]), tuple(sorted(map(tuple, sets[1:])))][int(world[0])] += 1
    for (mine, _), values in tallies.items():
        many = sum(values.values())
        for value, copies in Counter(mine).items():
            assert abs(values[value] / many - copies / 2) < 4.5 * (0.25 / many) ** 0.5


def test_finding_3_nothing_is_designed_from_itself(tmp_path, now):
    policy = naive.policy(tmp_path, now, L, prior={})
    with pytest.raises(PolicyError, match="needs a prior"):
        naive.veiled(now, policy)


# Finding 5: insiders.


def known(outcome):
    return {share: figures["right"] for share, figures in outcome.figures["known"].items()}


def test_finding_5_insiders_empty_groups(tmp_path, past, now):
    right = known(insiders(naive.evidence([sealed(now, past)], rules(tmp_path, past), now)))
    assert right["0%"] < 1.2 / L
    assert right["10%"] > right["0%"]
    assert right["50%"] > 1.5 / L
    assert right["90%"] > 4 / L


def test_finding_5_under_the_veil_insiders_gain_nothing(tmp_path, past, now):
    policy = rules(tmp_path, past)
    outcome = insiders(naive.evidence([naive.veiled(now, policy)], policy, now))
    for share, right in known(outcome).items():
        tried = outcome.figures["known"][share]["persons"]
        assert abs(right - 1 / L) < 3 * (0.09 / tried) ** 0.5, share
    assert not outcome.refuted
