"""Every engine keeps every law; and every law notices the bug it is there for."""

import inspect
import os
from dataclasses import replace

import pyarrow as pa
import pytest
from cases import CASES

import laws
from reticent.engine import PUBLISHERS
from reticent.engine.rng import Rng
from reticent.engine.table.anatomy import Anatomy
from reticent.release import RecordCounts


def apply(law, case, caplog):
    law(case, caplog) if "caplog" in inspect.signature(law).parameters else law(case)


def test_every_engine_has_a_case():
    assert {(case.kind, case.method) for case in CASES} == set(PUBLISHERS)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_law(case, law, caplog):
    apply(law, case, caplog)


class Homogeneous(Anatomy):
    """Shows one value for everybody in a group."""

    def release(self, table):
        made = super().release(table)
        st = made.tables["st"].to_pylist()
        for row in st:
            row["value"] = st[0]["value"] if row["group"] == st[0]["group"] else row["value"]
        return replace(made, tables={**made.tables, "st": pa.Table.from_pylist(st, made.tables["st"].schema)})


class Lossy(Anatomy):
    """Forgets a row without saying so."""

    def release(self, table):
        return super().release(table.slice(1))


class Doubling(Anatomy):
    """Publishes a row twice and counts rows, not persons."""

    def release(self, table):
        last, again = table.slice(table.num_rows - 1), table.slice(0, 1)
        if self.policy.person is not None:  # under another name, since a person twice would be noticed
            at = table.column_names.index(self.policy.person)
            again = again.set_column(at, self.policy.person, last.column(self.policy.person))
        return super().release(pa.concat_tables([table.slice(0, table.num_rows - 1), again]))


class Forgetful(Anatomy):
    """Draws a new key after a restart."""

    @classmethod
    def restore(cls, policy, state):
        engine = super().restore(policy, state)
        engine.rng = Rng(os.urandom(32), seeded=True)
        return engine


class Trusting(Anatomy):
    """Takes any snapshot."""

    @classmethod
    def restore(cls, policy, state):
        return cls(policy, rng=Rng.from_seed(1))


class Unseeded(Anatomy):
    """Ignores the seed."""

    def release(self, table):
        self.rng = Rng(os.urandom(32), seeded=True)
        return super().release(table)


class Meddling(Anatomy):
    """Changes the policy it was given."""

    def release(self, table):
        self.policy.columns["sex"] = self.policy.columns["zip"]
        return super().release(table)


class Leaking(Anatomy):
    """Publishes the identifier."""

    def release(self, table):
        made = super().release(table)
        qit = made.tables["qit"]
        return replace(
            made, tables={**made.tables, "qit": qit.append_column("patient", table["patient"].slice(0, qit.num_rows))}
        )


class Talkative(Anatomy):
    """Shows what it holds."""

    def __repr__(self):
        return f"Talkative({self._batches})"

    def push(self, batch):
        super().push(batch)
        raise_if_odd(batch)
        return []


def raise_if_odd(batch):
    from reticent.errors import DataError

    if pa.types.is_string(batch["age"].type):
        raise DataError(f"strange value {batch['age'][0]}")


class Hungry(Anatomy):
    """Takes columns that have no role, and guesses those that are missing."""

    def push(self, batch):
        names = list(self.policy.columns)
        for name in names:
            if name not in batch.column_names:
                batch = batch.append_column(name, pa.array(["?"] * batch.num_rows))
        return super().push(batch.select(names))


class Stingy(Anatomy):
    """Claims less when the input comes in pieces."""

    def release(self, table):
        made = super().release(table)
        return replace(
            made, guarantee=replace(made.guarantee, claims={"l": {"distinct": 3 if len(self._batches) == 1 else 2}})
        )


class Boastful(Anatomy):
    """Its counts do not add up."""

    @property
    def counts(self):
        true = super().counts
        return RecordCounts(true.input, true.input, true.withheld, true.suppressed)


PLANTED = [
    (Homogeneous, laws.verifies_with_earlier_releases),
    (Lossy, laws.loses_and_doubles_nothing),
    (Doubling, laws.loses_and_doubles_nothing),
    (Boastful, laws.loses_and_doubles_nothing),
    (Stingy, laws.batches_do_not_change_the_guarantee),
    (Forgetful, laws.restart_changes_nothing),
    (Trusting, laws.snapshots_belong_to_their_policy),
    (Unseeded, laws.same_seed_same_releases),
    (Meddling, laws.input_and_policy_are_untouched),
    (Leaking, laws.publishes_only_the_policys_columns),
    (Talkative, laws.shows_no_cell),
    (Hungry, laws.refuses_columns_without_a_role),
]


@pytest.mark.parametrize(("bug", "law"), PLANTED, ids=lambda x: x.__name__)
def test_the_law_notices_a_planted_bug(bug, law, caplog):
    case = replace(CASES[0], engine=bug)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        apply(law, case, caplog)


def test_every_law_has_a_planted_bug():
    assert {law for _, law in PLANTED} == set(laws.LAWS)
