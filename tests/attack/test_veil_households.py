"""Relatives with a common cause: separate sets expose them together, one veil for the household does not."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reticent import anonymize
from reticent import verify as verify_folder
from reticent.engine.rng import Rng
from reticent.engine.series.veil import Veil as Series
from reticent.engine.veil.parameters import VeilParameters
from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.fit_on_release import fit_on_release
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.publication import table
from reticent.release.wording import HOUSEHOLD
from reticent.verify import verify

L, SIZE, RELATIVES, HOMES = 4, 20, 5, 400
NAMES = np.array([f"v{code:02}" for code in range(SIZE)])


def policy(folder, **prior):
    (folder / "prior.csv").write_text("value,count\n" + "".join(f"{name},10\n" for name in NAMES))
    columns = {"id": "identifier", "home": "identifier", "line": "plain", "ill": "sensitive"}
    return Policy.from_dict(
        {
            "version": 1,
            "person": "id",
            "columns": columns,
            "privacy": {"l": L},
            "prior": {"file": "prior.csv", **prior},
            "table": {"method": "veil"},
            "series": {"method": "veil"},
        },
        base=folder,
    )


def relatives():
    """All members of a household have the same value."""
    true_values = np.random.default_rng(1).integers(SIZE, size=HOMES)
    home = np.repeat(np.arange(HOMES), RELATIVES)
    line = np.arange(len(home))
    rows = {"id": line.astype(str), "home": home.astype(str), "line": line, "ill": NAMES[true_values[home]]}
    return pa.table(rows), true_values


def common(data):
    """Per household, how many of its sets offer each value."""
    codes = {name: code for code, name in enumerate(NAMES)}
    tally = np.zeros((HOMES, SIZE))
    for row in data.to_pylist():
        for code in {codes[row[f"ill_{slot}"]] for slot in range(1, L + 1)}:
            tally[row["line"] // RELATIVES, code] += 1
    return tally


def right(tally, true_values):
    """How often the value that most sets share is the true value; ties are shared."""
    best = tally == tally.max(axis=1, keepdims=True)
    return float((best[np.arange(HOMES), true_values] / best.sum(axis=1)).mean())


@pytest.mark.parametrize(("prior", "low", "high"), [({}, 0.8, 1.0), ({"household": "home"}, 0.18, 0.32)])
def test_relatives_with_a_common_cause(tmp_path, prior, low, high):
    rows, true_values = relatives()
    rules = policy(tmp_path, **prior)
    release = table.publish(rows, rules, seed=3).release
    assert verify(release, rules).holds
    assert low < right(common(release.tables["data"]), true_values) < high


def test_a_series_keeps_the_veil_of_the_household(tmp_path):
    rows, true_values = relatives()
    engine = Series(policy(tmp_path, household="home"), rng=Rng.from_seed(3))
    engine.push(rows)
    (first,) = engine.cut()
    engine.push(rows.take(pa.array(np.random.default_rng(2).permutation(len(rows))[:1000])))
    (second,) = engine.cut()
    assert right(common(first.tables["data"]) + common(second.tables["data"]), true_values) < 0.32


def test_relatives_in_different_strata_are_refused(tmp_path):
    """Under a prior by sex and age, five relatives were in several strata; what their sets had in common was right in 83% of households."""
    rules = policy(tmp_path, household="home")
    lines = [f"{line},{name},10\n" for line in ("0", "*") for name in NAMES]
    (tmp_path / "prior.csv").write_text("line,value,count\n" + "".join(lines))
    with pytest.raises(PolicyError, match="a household and a prior by fields"):
        VeilParameters.of(rules, "table")


def test_a_prior_for_households_has_no_fields_and_no_kernel(tmp_path):
    rng, size = np.random.default_rng(5), 4000
    visits = {"id": np.arange(size) // 2, "home": np.arange(size) // 8, "line": np.arange(size) % 2}
    past = pa.table({name: codes.astype(str) for name, codes in visits.items()} | {"ill": rng.choice(NAMES[:6], size)})
    rules = policy(tmp_path, household="home")
    for fitted in (
        fit(past, rules, "ill", l=L, epsilon=1.0, rng=rng),
        fit_on_release(past, rules, l=L, epsilon=1.0, kernel=True, rng=rng),
    ):
        assert len(fitted.prior.strata) == 1
        assert fitted.kernel is None
    with pytest.raises(PolicyError, match="a household and a prior by fields"):
        fit(past, rules, "ill", l=L, by=["line"], rng=rng)


def test_a_household_and_a_kernel_are_refused_together(tmp_path):
    (tmp_path / "kernel.csv").write_text("value,stay,within\n" + "".join(f"{name},0.5,0\n" for name in NAMES))
    with pytest.raises(PolicyError, match="a household and a kernel"):
        VeilParameters.of(policy(tmp_path, household="home", kernel={"file": "kernel.csv"}), "series")


def test_a_ward_is_no_household(tmp_path):
    """A known limit: of sixty independent persons, those with the same value show the same set, so the most frequent set discloses it."""
    wards, size, rng = 100, 60, np.random.default_rng(1)
    rules, shares = policy(tmp_path, household="home"), 1 / (np.arange(SIZE) + 1) ** 0.7
    counts = [f"{name},{share * 1e6:.0f}\n" for name, share in zip(NAMES, shares, strict=True)]
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(counts))
    lines = np.arange(wards * size)
    true_values = NAMES[rng.choice(SIZE, len(lines), p=shares / shares.sum())]
    home = (lines // size).astype(str)
    rows = pa.table({"id": lines.astype(str), "home": home, "line": lines, "ill": true_values})
    release = anonymize(rows, rules, store=tmp_path / "store.db")
    data = release.tables["data"].sort_by("line").to_pylist()
    shown = [tuple(row[f"ill_{slot}"] for slot in range(1, L + 1)) for row in data]
    right = []
    for first in range(0, len(lines), size):
        ((most, _),) = Counter(shown[first : first + size]).most_common(1)
        right += [true_values[i] == min(most) for i in range(first, first + size) if shown[i] == most]
    assert np.mean(right) > 0.5
    assert HOUSEHOLD in release.guarantee.not_covered
    silent = [words for words in release.guarantee.not_covered if words != HOUSEHOLD]
    altered = replace(release, guarantee=replace(release.guarantee, not_covered=tuple(silent)))
    altered.to_dir(tmp_path / "altered")
    assert "the guarantee uses the sentences of its method" in [
        one.claim for one in verify_folder(tmp_path / "altered", rules).refuted
    ]


def test_a_household_and_a_person_of_one_name_are_not_keyed_alike(tmp_path):
    """Under one key both had the same value order and points: anyone who knew one could exclude candidates of the other."""
    rows, _ = relatives()
    anonymize(rows, policy(tmp_path, household="home"), store=tmp_path / "store.db")
    strangers = rows.set_column(0, "id", pa.array([f"x{i}" for i in range(len(rows))]))
    with pytest.raises(PolicyError, match="household"):
        anonymize(strangers, policy(tmp_path), store=tmp_path / "store.db")
