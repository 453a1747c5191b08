"""The laws every Publisher keeps, as functions that raise AssertionError when one is broken."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from cases import Case, run

from reticent.errors import PolicyError, ReticentError, StateError
from reticent.policy import Policy
from reticent.release import RecordCounts
from reticent.verify import verify

N = 240


def rows_of(releases):
    """The input rows that were published, by their number in the plain column `line`."""
    found = []
    for release in releases:
        for table in release.tables.values():
            if "line" in table.column_names:
                found += [int(x) for x in table.column("line").to_pylist() if x is not None]
    return found


def verifies_with_earlier_releases(case: Case) -> None:
    releases, _ = run(case, case.table(1, N), [N // 2])
    assert releases, "nothing was published"
    for i in range(1, len(releases) + 1):
        result = verify(releases[:i], case.rules())
        assert result.holds, [f.claim for f in result.findings if not f.holds]


def loses_and_doubles_nothing(case: Case) -> None:
    engine = case.build()
    table = case.table(2, N)
    releases = []
    pushed = 0
    for start in range(0, N, 60):
        part = table.slice(start, 60)
        pushed += part.num_rows
        releases += engine.push(part)
        adds_up(engine.counts, pushed)
    releases += engine.close()
    adds_up(engine.counts, pushed)
    assert engine.counts.withheld == 0 or case.kind != "table"
    published = rows_of(releases) if not case.cut else rows_of(releases[-1:])
    assert len(published) == len(set(published)), "a row was published twice"
    assert set(published) <= set(range(N)), "a row was made up"
    assert len(published) == engine.counts.published, "the counts do not tell what was published"


def adds_up(counts: RecordCounts, pushed: int) -> None:
    assert counts.input == pushed
    assert counts.input == counts.published + counts.withheld + counts.suppressed
    assert min(counts.published, counts.withheld, counts.suppressed) >= 0


def batches_do_not_change_the_guarantee(case: Case) -> None:
    table = case.table(3, N)
    claims = []
    for cuts in ([], [1], [7, 8, 200]):
        releases, engine = run(case, table, cuts)
        claims.append([dict(release.guarantee.claims) for release in releases[-1:]])
        assert verify(releases, case.rules()).holds
        assert engine.counts.input == N
    assert claims[0] == claims[1] == claims[2]


def restart_changes_nothing(case: Case) -> None:
    table = case.table(4, N)
    straight, _ = run(case, table, [50, 120])
    restarted, _ = run(case, table, [50, 120], restart=True)
    assert same(straight, restarted)


def snapshots_belong_to_their_policy(case: Case) -> None:
    engine = case.build()
    engine.push(case.table(4, N))
    other = Policy.from_dict(case.policy | {"privacy": {"k": 97, "l": 2, "t": 0.9}})
    with pytest.raises(StateError):
        case.type().restore(other, engine.snapshot())
    with pytest.raises(StateError):
        case.type().restore(case.rules(), engine.snapshot()[:40])


def same_seed_same_releases(case: Case) -> None:
    table = case.table(5, N)
    first, second = run(case, table, [100])[0], run(case, table, [100])[0]
    assert same(first, second)
    assert all(release.seeded for release in first)


def same(first, second) -> bool:
    return len(first) == len(second) and all(
        a.records == b.records
        and a.tables.keys() == b.tables.keys()
        and all(a.tables[n].equals(b.tables[n]) for n in a.tables)
        for a, b in zip(first, second, strict=True)
    )


def input_and_policy_are_untouched(case: Case) -> None:
    table = case.table(6, N)
    rules = case.rules()
    before, hash_before = table.to_pylist(), rules.hash
    engine = case.type()(rules, rng=case.build().rng)
    engine.push(table)
    engine.close()
    assert table.to_pylist() == before
    assert Policy.from_dict(rules.to_dict()).hash == hash_before


def publishes_only_the_policys_columns(case: Case) -> None:
    releases, _ = run(case, case.table(7, N), [])
    own = {
        "group",
        "value",
        "count",
        "seq",
        "candidate",
        "stratum",
        "event",
        "person",
        *(f"ill_{i}" for i in range(1, 4)),
    }
    allowed = set(case.rules().released) | own
    if case.kind == "series" and case.method == "veil":
        allowed |= {"person"}  # a pseudonym, the same in all releases of the series
    for release in releases:
        for table in release.tables.values():
            assert set(table.column_names) <= allowed
            assert "CANARY" not in str(table.to_pylist()), "an identifier was published"


def shows_no_cell(case: Case, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    table = case.table(8, N)
    engine = case.build()
    shown = [repr(engine), str(engine)]
    releases = engine.push(table) + engine.close()
    shown += [
        repr(engine),
        *map(repr, releases),
        *[str(r.explain) for r in releases],
        *[r.getMessage() for r in caplog.records],
    ]
    strange = table.set_column(table.column_names.index("age"), "age", pa.array(["CANARY"] * N))
    try:
        fresh = case.build()
        fresh.push(strange)
        fresh.close()
    except ReticentError as error:
        shown += [str(error), repr(error)]
    assert "CANARY" not in " ".join(shown)


def refuses_columns_without_a_role(case: Case) -> None:
    table = case.table(9, N)
    with pytest.raises(PolicyError):
        case.build().push(table.append_column("stranger", pa.array(["x"] * N)))
    with pytest.raises(PolicyError):
        case.build().push(table.drop_columns(["age"]))


LAWS = [
    verifies_with_earlier_releases,
    loses_and_doubles_nothing,
    batches_do_not_change_the_guarantee,
    restart_changes_nothing,
    snapshots_belong_to_their_policy,
    same_seed_same_releases,
    input_and_policy_are_untouched,
    publishes_only_the_policys_columns,
    shows_no_cell,
    refuses_columns_without_a_role,
]
