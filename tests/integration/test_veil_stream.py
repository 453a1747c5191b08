"""The veil over streams, on published lines: the law, one parameter set with tables and series, drift, restarts."""

import json

import numpy as np
import orjson
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from reticent import Stream, verify
from reticent.engine.rng import Rng
from reticent.engine.stream.veil import Veil
from reticent.errors import PolicyError, StateError
from reticent.policy import Policy
from reticent.publication import series, table
from reticent.publication.stream import StreamPublication
from reticent.store import Store

ILLS = ["angina", "asthma", "flu", "gout", "hiv", "sepsis", "ulcer"]
COUNTS = np.array([50, 11, 20, 17, 2, 5, 15])
L = 3
RULES = {
    "version": 1,
    "person": "who",
    "columns": {
        "who": "identifier",
        "age": {"role": "quasi", "level": 1, "hierarchy": {"intervals": [10, 20]}},
        "sex": "quasi",
        "line": "plain",
        "ill": "sensitive",
    },
    "privacy": {"l": L},
}


def rules(folder, men=COUNTS, **prior):
    """A policy whose prior is the law that `people` are drawn from, for both sexes unless men have counts of their own."""
    counts = {"f": COUNTS, "m": men}
    lines = [f"{sex},{ill},{n}" for sex in "fm" for ill, n in zip(ILLS, counts[sex], strict=True)]
    (folder / "prior.csv").write_text("sex,value,count\n" + "\n".join(lines) + "\n")
    steps = STEPS[:, None] * COUNTS / COUNTS.sum() + np.diag(1 - STEPS)
    rows = [f"{ILLS[i]},{ILLS[j]},{steps[i, j]}" for i in range(7) for j in range(7)]
    (folder / "kernel.csv").write_text("\n".join(rows) + "\n")
    settings = {"file": "prior.csv", "by": ["sex"]} | prior
    return Policy.from_dict(RULES | {"prior": settings}, base=folder)


STEPS = np.array([0.5, 0.4, 0.9, 0.3, 0.05, 0.8, 0.5])
KERNEL = {"kernel": {"file": "kernel.csv"}}


def people(seed, n, names=None, share=None):
    rng = np.random.default_rng(seed)
    ill = rng.choice(ILLS, n, p=COUNTS / COUNTS.sum() if share is None else share)
    return pa.table(
        {
            "who": names or [f"p{seed}-{i}" for i in range(n)],
            "age": pa.array(rng.integers(0, 90, n)),
            "sex": pa.array(rng.choice(["f", "m"], n)),
            "line": pa.array(range(n)),
            "ill": pa.array(ill),
        }
    )


def records(lines):
    return [line for line in map(orjson.loads, lines.splitlines()) if line["type"] == "record"]


def released(policy, batch, seed):
    publication = StreamPublication(policy, rng=Rng.from_seed(seed))
    return records(publication.take(publication.reader.table(batch)).lines)


def followed(person, value, visits, rng):
    """One person's values along the kernel."""
    steps = STEPS[:, None] * COUNTS / COUNTS.sum() + np.diag(1 - STEPS)
    values = [value]
    for _ in range(visits - 1):
        values.append(int(rng.choice(7, p=steps[values[-1]])))
    return values


def test_each_candidate_is_the_true_value_as_often_as_it_says(tmp_path):
    """Chi-square over many keys, at the first visit and at the third, along the kernel."""
    policy, rng, visits = rules(tmp_path, **KERNEL), np.random.default_rng(7), 3
    hits, tries = np.zeros((visits, L + 1)), np.zeros((visits, L + 1))
    for seed in range(30):
        n = 120
        first = rng.choice(7, n, p=COUNTS / COUNTS.sum())
        chains = [followed(i, value, visits, rng) for i, value in enumerate(first.tolist())]
        batch = people(seed, n * visits, [f"p{i}" for i in range(n)] * visits)
        true_values = [ILLS[chains[i % n][i // n]] for i in range(n * visits)]
        shown = released(policy, batch.set_column(4, "ill", pa.array(true_values)), seed)
        assert [line["event"] for line in shown] == [i // n for i in range(n * visits)]
        for line, true in zip(shown, true_values, strict=True):
            for value in set(line["candidates"]):
                copies = line["candidates"].count(value)
                tries[line["event"], copies] += 1
                hits[line["event"], copies] += value == true
    for event in range(visits):
        for copies in (1, 2):
            n, expected = tries[event, copies], tries[event, copies] * copies / L
            found = hits[event, copies]
            assert chisquare([found, n - found], [expected, n - expected]).pvalue > 1e-4, (event, copies, found / n)


def test_an_outbreak_exposes_nobody(tmp_path):
    """A third of the feed has what the prior gives two in a hundred: candidates say what they say of everybody."""
    policy = rules(tmp_path)
    share = COUNTS / COUNTS.sum()
    share = np.where(np.array(ILLS) == "hiv", 0.33, share * 0.67 / (1 - share[4]))
    seen = right = 0
    for seed in range(12):
        batch = people(seed, 400, share=share)
        for line, true in zip(released(policy, batch, seed), batch.column("ill").to_pylist(), strict=True):
            if "hiv" in line["candidates"]:
                seen += 1
                right += true == "hiv"
    known = COUNTS[4] / COUNTS.sum()
    odds_ratio = 0.33 / known / (0.67 / (1 - known))
    assert right / seen <= odds_ratio / (odds_ratio + L - 1) + 0.02


def test_a_value_that_nobody_knew_shows_nothing(tmp_path):
    """Its candidates are drawn as those of everybody: being among them is right one time in l, whatever comes."""
    policy = rules(tmp_path)
    strange, usual = [], []
    for seed in range(12):
        batch = people(seed, 300)
        ills = ["brand new" if i % 10 == 0 else ill for i, ill in enumerate(batch.column("ill").to_pylist())]
        for line, ill in zip(released(policy, batch.set_column(4, "ill", pa.array(ills)), seed), ills, strict=True):
            (strange if ill == "brand new" else usual).append(line["candidates"])
    assert not any("brand new" in candidates for candidates in strange)
    share = [np.mean(["flu" in candidates for candidates in part]) for part in (strange, usual)]
    assert abs(share[0] - share[1]) < 4 * np.sqrt(share[1] * (1 - share[1]) / len(strange))


def test_table_series_and_stream_of_one_parameter_set_agree(tmp_path):
    policy, batch = rules(tmp_path, men=COUNTS[::-1]), people(3, 200)
    with Store.open(tmp_path / "veil.db") as store:
        once = table.publish(batch, policy, method="veil", store=store).release.tables["data"]
        store.register("series", policy_hash=policy.hash)
        again = Policy.from_dict(policy.to_dict() | {"series": {"method": "veil"}}, base=tmp_path)
        store.register("other", policy_hash=again.hash)
        with store.lock("other"):
            first = series.Series(store, again, name="other").publish(batch).release.tables["data"]
        with Stream(policy, store=store, allow_republication=True) as stream:
            lines = records(stream.push(batch))

    def sets(data):
        cells = [data.column(name).to_pylist() for name in ("line", "age", "ill_1", "ill_2", "ill_3")]
        return sorted(zip(*cells, strict=True))

    shown = sorted((line["plain"]["line"], line["quasi"]["age"], *line["candidates"]) for line in lines)
    assert sets(once) == sets(first) == shown


def test_another_prior_or_l_under_the_same_key_is_refused(tmp_path):
    policy = rules(tmp_path)
    with Store.open(tmp_path / "veil.db") as store:
        with Stream(policy, store=store, name="slot_length") as stream:
            stream.push(people(1, 20))
        for other in (RULES | {"privacy": {"l": 5}}, RULES):
            settings = other | {"prior": {"file": "prior.csv", "by": ["sex"]} | (KERNEL if other is RULES else {})}
            with pytest.raises(PolicyError, match="another l, prior, kernel, value domain or household"):
                Stream(Policy.from_dict(settings, base=tmp_path), store=store, name="two")


def test_a_stream_without_persons_is_refused(tmp_path):
    settings = {name: value for name, value in rules(tmp_path).to_dict().items() if name != "person"}
    with pytest.raises(PolicyError, match="needs the person of every record"):
        Veil(Policy.from_dict(settings, base=tmp_path), rng=Rng.fresh())


@pytest.mark.parametrize("link", [False, True])
def test_lines_verify_with_and_without_the_codebook(tmp_path, link):
    policy = rules(tmp_path, link=link, **KERNEL)
    batch = people(5, 300, [f"p{i % 90}" for i in range(300)])
    (tmp_path / "in.ndjson").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in batch.to_pylist()))
    with Stream(policy, store=tmp_path / "store.db") as stream:
        stream.run(str(tmp_path / "in.ndjson"), str(tmp_path / "out.ndjson"))
    result = verify(tmp_path / "out.ndjson", policy)
    assert result.holds, result.refuted
    assert ("which records belong to one person" in " ".join(result.unchecked)) is not link
    names = {line.get("person") for line in records((tmp_path / "out.ndjson").read_bytes())}
    assert len(names) == (90 if link else 1)
    (tmp_path / "bare.ndjson").write_bytes((tmp_path / "out.ndjson").read_bytes())
    bare = verify(tmp_path / "bare.ndjson", policy)
    assert bare.holds
    assert "the stream has no codebook" in " ".join(bare.unchecked)
    assert len(bare.findings) < len(result.findings)


FORGED = {
    "every candidate is a value of the domain": lambda line: line | {"candidates": ["flu", "gout", "plague"]},
    "candidates are in canonical order": lambda line: line | {"candidates": line["candidates"][::-1]},
    "every record has l candidates": lambda line: line | {"candidates": line["candidates"][:2]},
    "the set of every first event is possible in its stratum": lambda line: line | {"candidates": ["hiv"] * 3},
    "every record names a stratum of the prior": lambda line: line | {"stratum": 99},
    "the events of a person count 0, 1, 2, ... in one stratum": lambda line: line | {"event": 4},
    "every line is a record with the documented keys only": lambda line: line | {"truth": "flu"},
    "only columns that the policy releases are published": lambda line: line | {"quasi": line["quasi"] | {"who": "p1"}},
    "a sequence number occurs once": lambda line: line | {"seq": 1},
}


@pytest.mark.parametrize("claim", FORGED)
def test_forged_lines_are_refuted(tmp_path, claim):
    policy = rules(tmp_path, link=True, **KERNEL)
    with Stream(policy, store=tmp_path / "store.db") as stream:
        lines = records(stream.push(people(6, 60)))
        book = stream.publication.codebook()
    assert lines[0]["candidates"][::-1] != lines[0]["candidates"]
    forged = [FORGED[claim](lines[0]), *lines[1:]]
    (tmp_path / "out.ndjson").write_text("".join(json.dumps(line) + "\n" for line in forged))
    (tmp_path / "out.ndjson.codebook.json").write_bytes(book)
    assert claim in [finding.claim for finding in verify(tmp_path / "out.ndjson", policy).refuted]


def test_drift_raises_an_alarm_that_is_looked_at_however_batches_are_cut(tmp_path):
    policy, batch = rules(tmp_path), people(8, 4000)
    ills = ["brand new" if i > 2000 and i % 3 else ill for i, ill in enumerate(batch.column("ill").to_pylist())]
    batch = batch.set_column(4, "ill", pa.array(ills))
    whole, cut = (Veil(policy, rng=Rng.from_seed(1)) for _ in range(2))
    whole.push(batch.slice(0, 1900))
    assert whole.metrics["alarm"] == 0
    whole.push(batch.slice(1900))
    for at in range(0, 4000, 333):
        cut.push(batch.slice(at, 333))
    assert whole.metrics == cut.metrics
    assert (whole.metrics["alarm"], whole.metrics["persons"]) == (1, 4000)
    assert abs(whole.metrics["omission_rate"] - 2 / 3) < 0.05


def test_a_value_outside_a_hierarchy_does_not_stop_a_stream(tmp_path):
    batch = people(9, 3).set_column(1, "age", pa.array(["40", "old", None]))
    shown = [line["quasi"]["age"] for line in released(rules(tmp_path), batch, 1)]
    assert shown == ["[40, 50)", "*", None]


def test_corrupt_and_foreign_states_are_refused(tmp_path):
    policy = rules(tmp_path)
    engine = Veil(policy, rng=Rng.from_seed(1))
    engine.push(people(1, 10))
    state = engine.snapshot()
    for bad in (state[:-1], state[:-2] + b"\xff\xff"):
        with pytest.raises(StateError):
            Veil.restore(policy, bad)
    again = Veil.restore(policy, state)
    assert again.push(people(1, 10))[0].tables["data"].column("event").to_pylist() == [1] * 10


def test_a_stream_goes_on_wherever_it_stopped(tmp_path):
    """The verifier's state begins with the last position; no position looks like something else."""
    policy = rules(tmp_path)
    publication = StreamPublication(policy, rng=Rng.from_seed(5))
    batch = people(5, 260)
    for position in range(260):
        assert records(publication.take(publication.reader.table(batch.slice(position, 1))).lines)
        publication = StreamPublication(policy, rng=Rng.from_seed(5), state=publication.snapshot())
