"""Average risk, population uniqueness and k-map: models equal brute force, engines keep them, and the verifier refutes releases that do not."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.models.average_risk import keeps_average_risk
from reticent.policy.models.k_map import count_fitting_people
from reticent.policy.models.population_uniqueness import population_uniques
from reticent.policy.spec import HierarchySpec
from reticent.release import Guarantee, RecordCounts, Release
from reticent.verify import verify

SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=15).map(np.array)
AGE = {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}}
METHODS = ["local", "optimal", "mondrian"]


@given(SIZES, st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5, 1.0]))
def test_average_risk_is_the_mean_over_records(sizes, threshold):
    mean = sum(Fraction(1, int(n)) for n in sizes for _ in range(n)) / int(sizes.sum())
    assert keeps_average_risk(sizes, threshold) == (mean <= Fraction(repr(threshold)))


@given(SIZES, st.integers(1, 400))
def test_the_estimate_is_that_of_zayatz_written_out(sizes, population):
    rows = int(sizes.sum())
    alone = int((sizes == 1).sum())
    found = population_uniques(sizes, population)
    if population <= rows or not alone:
        assert found == alone
        return
    part = rows / population
    spread = {n: (sizes == n).mean() for n in set(sizes.tolist())}
    once = {n: n * part * (1 - part) ** (n - 1) for n in spread}
    chance = once[1] * spread[1] / sum(once[n] * spread[n] for n in spread)
    assert found == pytest.approx(alone * chance / part)


def test_k_map_counts_people_as_brute_force_does():
    people = pa.table({"age": [str(a) for a in range(20, 60)], "sex": ["F", "M"] * 20})
    specs = {"age": HierarchySpec(intervals=(10, 20)), "sex": None}
    labels = ["23", "[20, 30)", "[20, 40)", "[25, 47]", "*", None, "{21, 23}", "99"]
    covers = {
        "23": [23],
        "[20, 30)": range(20, 30),
        "[20, 40)": range(20, 40),
        "[25, 47]": range(25, 48),
        "*": range(20, 60),
        None: [],
        "{21, 23}": [21, 23],
        "99": [],
    }
    classes = list(itertools.product(labels, ["F", "*"]))
    counts = count_fitting_people(
        people,
        {"age": [age for age, _ in classes], "sex": [sex for _, sex in classes]},
        specs,
        Policy(columns={"a": "plain"}).base,
    )
    for (age, sex), count in zip(classes, counts, strict=True):
        assert count == sum(a in covers[age] and (sex == "*" or a % 2 == 0) for a in range(20, 60)), (age, sex)


def table(rows=120):
    random = np.random.default_rng(3)
    ages = np.minimum(89, 20 + random.geometric(0.06, rows))
    return pa.table(
        {"age": ages.astype(str), "sex": random.choice(["F", "M"], rows), "ill": ["flu", "cold"] * (rows // 2)}
    )


def policy(method="local", base=".", **privacy):
    columns = {"age": AGE, "sex": "quasi", "ill": "sensitive"}
    settings = {
        "version": 1,
        "columns": columns,
        "privacy": {"suppression": 0.05} | privacy,
        "table": {"method": method},
    }
    return Policy.from_dict(settings, base=base)


def sizes_of(release):
    rows = zip(*(release.to_arrow().column(name).to_pylist() for name in ("age", "sex")), strict=True)
    return np.unique([str(row) for row in rows], return_counts=True)[1]


@pytest.mark.parametrize("method", METHODS)
def test_a_release_keeps_the_average_risk_without_a_k(method):
    rules = policy(method, average_risk=0.1)
    release = reticent.anonymize(table(), rules, seed=1)
    sizes = sizes_of(release)
    assert len(sizes) / sizes.sum() <= 0.1
    assert release.guarantee.claims["average_risk"] == 0.1
    result = reticent.verify(release, rules)
    assert result.holds
    assert not result.unchecked


def test_less_is_lost_than_by_the_k_that_implies_it():
    average = reticent.anonymize(table(), policy(average_risk=0.1), seed=1)
    least = reticent.anonymize(table(), policy(k=10), seed=1)
    assert average.metrics["loss"] <= least.metrics["loss"]


@pytest.mark.parametrize("own", ["auto", "anatomy"])
def test_the_requirements_follow_the_requested_method_and_not_that_of_the_policy(own):
    rules = policy(own, l=2, average_risk=0.1)
    with pytest.raises(PolicyError, match="average_risk: only table methods that generalize"):
        reticent.anonymize(table(), rules, method="anatomy")
    assert reticent.anonymize(table(), rules, method="mondrian").guarantee.claims["average_risk"] == 0.1


@pytest.mark.parametrize("method", METHODS)
def test_a_release_keeps_population_uniqueness(method):
    rules = policy(method, population_uniqueness={"share": 0.001, "population": 4000})
    release = reticent.anonymize(table(), rules, seed=1)
    assert population_uniques(sizes_of(release), 4000) <= 4
    assert reticent.verify(release, rules).holds


@pytest.fixture
def register(tmp_path):
    random = np.random.default_rng(5)
    rows = [
        f"{age},{sex}" for age, sex in zip(random.integers(18, 90, 3000), random.choice(["F", "M"], 3000), strict=True)
    ]
    (tmp_path / "register.csv").write_text("age,sex\n" + "\n".join(rows) + "\n")
    return tmp_path, rows


@pytest.mark.parametrize("method", METHODS)
def test_a_release_keeps_k_map(register, method):
    folder, _ = register
    rules = policy(method, folder, k_map={"k": 30, "file": "register.csv"})
    release = reticent.anonymize(table(), rules, seed=1)
    assert release.guarantee.claims["k_map"] == 30
    result = reticent.verify(release, rules)
    assert result.holds
    # The verifier does measure: the same release does not fit ten times as many people.
    strict = policy(method, folder, k_map={"k": 3000, "file": "register.csv"})
    assert "k-map = 3000" in [finding.claim for finding in reticent.verify(release, strict).refuted]


def test_k_map_asks_less_than_k(register):
    folder, _ = register
    mapped = reticent.anonymize(table(), policy("local", folder, k_map={"k": 15, "file": "register.csv"}), seed=1)
    assert mapped.metrics["loss"] < reticent.anonymize(table(), policy("local", k=15), seed=1).metrics["loss"]


@pytest.mark.parametrize(
    "privacy", [{"average_risk": 0.3}, {"population_uniqueness": {"share": 0.001, "population": 400}}]
)
def test_the_verifier_refutes_what_does_not_hold(privacy):
    data = pa.table(
        {"age": ["20", "21", "22", "*", "*"], "sex": ["*"] * 5, "ill": ["flu", "cold", "flu", "cold", "flu"]}
    )
    planted = Release(
        "table", "generalized", "local", {"data": data}, Guarantee(privacy, "a reader"), RecordCounts(5, 5, 0, 0), ""
    )
    assert not verify([planted], policy()).holds
    honest = Release(
        "table", "generalized", "local", {"data": data}, Guarantee({}, "a reader"), RecordCounts(5, 5, 0, 0), ""
    )
    assert not verify([honest], policy(**privacy)).holds


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(GuaranteeError, match="average_risk"):
        reticent.anonymize(table(40), policy(average_risk=0.02), seed=1)
    with pytest.raises(PolicyError, match="generalize"):
        reticent.anonymize(table(), policy("anatomy", l=2, average_risk=0.5), seed=1)
    with pytest.raises(PolicyError, match="cannot read the population"):
        reticent.anonymize(table(), policy(k_map={"k": 5, "file": "nowhere.csv"}).model_copy(), seed=1)
