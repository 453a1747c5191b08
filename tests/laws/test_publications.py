"""The laws of publications: every kind through every interface, on what was published."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
import pytest
from cases import CASES
from interfaces import INTERFACES, CommandLine, RefusedError, read, stored

from reticent import _core
from reticent import engine as engines
from reticent.engine.evolving.base import EvolvingPublisher
from reticent.engine.evolving.person_state import decode_memories
from reticent.engine.evolving.red import Red
from reticent.engine.evolving.veil import Veil as EvolvingVeil
from reticent.engine.series.history import History
from reticent.engine.series.m_distinct import MDistinct
from reticent.engine.series.update_graph import risk_of
from reticent.engine.series.veil import Veil as SeriesVeil
from reticent.engine.table.anatomy import Anatomy
from reticent.release.codec import from_bytes
from reticent.store import Store
from reticent.verify import verify

N = 240
BY_NAME = {case.name: case for case in CASES}
SEVERAL = [case for case in CASES if case.kind == "series" or (case.kind == "evolving" and case.cut)]
PUBLISHED = [case for case in CASES if case.kind != "stream" and case.method in ("anatomy", "optimal", "red")] + SEVERAL
# What a release folder and its manifest may contain.
FILES = {
    "release.json",
    "data.parquet",
    "qit.parquet",
    "st.parquet",
    "counterfeits.parquet",
    "plain.parquet",
    "veil.json",
    "codebook.json",
    "README.txt",
}
KEYS = {
    *("kind", "shape", "method", "policy_hash", "guarantee", "records", "metrics", "explain", "seeded"),
    *("format", "files", "versions", "time"),
}
STORED = KEYS | {"store"}
"""A release of a store says which one."""


@pytest.fixture(params=INTERFACES)
def open_interface(request, tmp_path, capsys):
    opened = []

    def make(case, **more):
        folder = tmp_path / f"interface {len(opened)}"
        folder.mkdir()
        opened.append(INTERFACES[request.param](case, folder, capsys, **more))
        return opened[-1]

    yield make
    for interface in opened:
        interface.close()


def each(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def steps(case, seed=1):
    """What is sent for two publications: an evolving table gains rows, a series shows everybody again."""
    table = case.table(seed, N)
    if case.kind == "evolving":
        return [table.slice(0, N // 2), table.slice(N // 2)]
    return [table, table] if case.kind == "series" else [table]


@dataclass(frozen=True)
class Published:
    """What a case published through an interface: the parts sent, the folders, the ledger after each, and what the store kept of all."""

    interface: str
    sent: list
    folders: list
    ledgers: list
    kept: list


@pytest.fixture(scope="module")
def cache():
    """What was published already: several laws look at the same releases."""
    return {}


@pytest.fixture(params=INTERFACES)
def published(request, case, cache, tmp_path_factory, capsys):
    key = request.param, case.name
    if key not in cache:
        interface = INTERFACES[request.param](case, tmp_path_factory.mktemp("interface"), capsys)
        sent = steps(case)[: 2 if case in SEVERAL else 1]
        folders, ledgers = [], []
        try:
            for part in sent:
                folders.append(interface.publish(part))
                ledgers.append(_ledger(interface, case))
            cache[key] = Published(request.param, sent, folders, ledgers, stored(interface))
        finally:
            interface.close()
    return cache[key]


def _ledger(interface, case):
    if case.kind == "table":
        return None
    with Store.open(interface.store, create=False) as store:
        return store.ledger(interface.publisher)


@each(PUBLISHED)
def test_every_release_verifies_with_all_earlier_ones(case, published):
    for number, ledger in enumerate(published.ledgers, 1):
        assert verify(published.folders[:number], case.rules(), ledger=ledger).holds
    releases = [read(folder)[0] for folder in published.folders]
    assert [release.kind for release in releases] == [case.kind] * len(published.folders)


@each(PUBLISHED)
def test_rows_add_up_and_the_ledger_lists_every_person(case, published):
    sent = 0
    parts = zip(published.sent, published.folders, published.ledgers, strict=True)
    for number, (part, folder, ledger) in enumerate(parts, 1):
        release, _ = read(folder)
        sent = sent + part.num_rows if case.kind == "evolving" else part.num_rows
        counts = release.records
        assert (counts.input, counts.published + counts.withheld + counts.suppressed) == (sent, sent)
        if "qit" in release.tables:
            rows = release.tables["qit"].column("line").to_pylist()
            assert len(rows) == len(set(rows)) == counts.published
        if case.kind != "table":
            assert len(ledger) == number
            assert len(ledger.persons[-1]) == len(set(ledger.persons[-1].tolist())) == counts.published


@each(SEVERAL)
def test_a_restart_changes_nothing(case, open_interface, tmp_path):
    first, second = steps(case)
    interface = open_interface(case)
    interface.publish(first)
    restarted = interface.restarted(tmp_path / "copy")
    try:
        straight, again = read(interface.publish(second))[0], read(restarted.publish(second))[0]
    finally:
        restarted.close()
    assert straight.records == again.records
    assert all(straight.tables[name].equals(again.tables[name]) for name in straight.tables)


@each(PUBLISHED)
def test_the_same_seed_gives_the_same_releases(case, tmp_path, capsys):
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        interface = CommandLine(case, tmp_path / name, capsys, seed=7)
        made.append([read(interface.publish(part))[0] for part in steps(case)[: 2 if case in SEVERAL else 1]])
    for one, two in zip(*made, strict=True):
        assert one.seeded
        assert all(one.tables[name].equals(two.tables[name]) for name in one.tables)


@each(PUBLISHED)
def test_files_columns_and_manifest_keys_are_a_closed_list(case, published):
    folder = published.folders[0]
    release, manifest = read(folder)
    assert {file.name for file in folder.iterdir()} <= FILES
    assert set(manifest) in (KEYS, STORED)
    allowed = {*case.rules().released, "group", "value", "count"}
    if release.shape == "veil":
        slots = range(1, case.rules().l_of(case.kind) + 1)
        allowed = allowed - {"ill"} | {"stratum", "event", *(f"ill_{slot}" for slot in slots)}
        allowed |= {"person"} if case.kind == "series" else set()
    assert all(set(table.column_names) <= allowed for table in release.tables.values())
    assert all(b"CANARY" not in file.read_bytes() for file in folder.iterdir())


def fair(ups: int, downs: int) -> bool:
    """Whether ups and downs may come from coin flips; a fair coin fails once in a million times."""
    total = ups + downs
    return total >= 30 and abs(ups - downs) <= 5 * math.sqrt(total)


def ascents(groups) -> tuple[int, int]:
    pairs = [(a, b) for values in groups for a, b in pairwise(values) if a != b]
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)


def suppressing(case):
    """The same under an l that some values are too frequent for."""
    return replace(case, policy=case.policy | {"privacy": {"l": 6, "suppression": 0.5}})


@each([case for case in PUBLISHED if case.method == "veil"])
def test_the_order_of_veiled_rows_discloses_nothing(case, open_interface):
    """Not in the order of the input or of the true values, and in another one each time."""
    table = case.table(3, 2 * N)
    interface = open_interface(case)
    orders = [
        [int(line) for line in read(interface.publish(part))[0].tables["data"].column("line").to_pylist()]
        for part in ([table.slice(1), table.slice(0, 1)] if case.kind == "evolving" else [table, table])
    ]
    values = ["" if value is None else value for value in table.column("ill").to_pylist()]
    for order in orders:
        assert fair(*ascents([order]))
        assert fair(*ascents([[values[line] for line in order]]))
    places = {line: place for place, line in enumerate(orders[1])}
    assert fair(*ascents([[places[line] for line in orders[0]]]))


@each(
    [case for case in PUBLISHED if case.kind != "series" and case.method not in ("optimal", "veil")]
    + [suppressing(BY_NAME["table/anatomy"])]
)
def test_the_order_of_rows_and_groups_discloses_nothing(case, open_interface):
    """Not in the order of the input, of the true values or of the classes."""
    table = case.table(3, 8 * N)
    release, _ = read(open_interface(case).publish(table))
    values = ["" if value is None else value for value in table.column("ill").to_pylist()]
    qit, st = release.tables["qit"], release.tables["st"]
    rows_of: dict[int, list[int]] = {}
    for group, row in zip(qit.column("group").to_pylist(), qit.column("line").to_pylist(), strict=True):
        rows_of.setdefault(group, []).append(int(row))
    assert fair(*ascents(rows_of.values())), "rows of a group are in the order of the input"
    assert fair(*ascents([[values[row] for row in rows] for rows in rows_of.values()])), "in the order of the values"
    order = sorted(rows_of)
    assert fair(*ascents([[min(rows_of[group]) for group in order]])), "groups are numbered in the order of the input"
    shown: dict[int, set] = {}
    for group, value in zip(st.column("group").to_pylist(), st.column("value").to_pylist(), strict=True):
        shown.setdefault(group, set()).add(value)
    sets = [frozenset(shown[group]) for group in order]
    chance = sum(count * (count - 1) for count in Counter(sets).values()) / len(sets)
    alike = sum(a == b for a, b in pairwise(sets))
    assert alike <= chance + 5 * math.sqrt(chance) + 5, "groups are numbered class by class"
    for value in set().union(*sets):
        places = [place for place, values in enumerate(sets) if value in values]
        off = sum(places) / len(places) - (len(sets) - 1) / 2
        assert abs(off) <= 5 * len(sets) / math.sqrt(12 * len(places)), "groups with a value are numbered early or late"


@each([case for case in PUBLISHED if case.kind == "series" and case.method.startswith("m-")])
def test_values_of_a_group_of_a_series_have_one_order(case, published):
    data = read(published.folders[0])[0].tables["data"]
    groups: dict[int, list[str]] = {}
    for group, value in zip(data.column("group").to_pylist(), data.column("ill").to_pylist(), strict=True):
        groups.setdefault(group, []).append("" if value is None else value)
    orders = {}
    for values in groups.values():
        for a, b in pairwise(values):
            assert orders.setdefault(frozenset((a, b)), (a, b)) == (a, b), (
                "the order inside a group discloses something"
            )


@each(PUBLISHED)
def test_no_error_contains_a_cell(case, open_interface):
    table = case.table(8, N)
    at = table.column_names.index
    strange = table.set_column(at("age"), "age", pa.array(["CANARY"] * N))
    doubled = pa.concat_tables([table, table]).append_column("stranger", pa.array(["CANARY"] * 2 * N))
    words = []
    for data in (strange, doubled):
        try:
            open_interface(case).publish(data)
        except RefusedError as error:
            words.append(error.words)
    assert words
    assert "CANARY" not in " ".join(words)


@each(PUBLISHED)
def test_the_ledger_has_the_digest_of_what_was_published(case, published):
    folders, kept = published.folders, published.kept
    if case.kind == "table" and published.interface == "command line":
        assert not kept  # a table that is given away once has no store
        return
    assert len(kept) == len(folders)
    for folder, (payload, digest) in zip(folders, kept, strict=True):
        assert digest == hashlib.sha256(payload).hexdigest()
        release, inside = read(folder)[0], from_bytes(payload)
        assert all(release.tables[name].equals(inside.tables[name]) for name in inside.tables)


# -- what the verifier refutes is never delivered -----------------------------------------------------------------


class HomogeneousTable(Anatomy):
    """Shows one value in every group."""

    def release(self, table):
        return homogeneous(super().release(table))


class HomogeneousEvolving(Red):
    """The same, of an evolving table."""

    def _publish(self, rows):
        return homogeneous(super()._publish(rows))


class HomogeneousSeries(MDistinct):
    """Shows one value in every group of a series."""

    def _publish(self, table):
        made = super()._publish(table)
        data = made.tables["data"]
        same = pa.array(["illness 0"] * data.num_rows)
        data = data.set_column(data.column_names.index("ill"), "ill", same)
        return replace(made, tables={**made.tables, "data": data})


class FreshEvolving(EvolvingVeil):
    """Draws every veil anew at every publication."""

    def _publish(self, rows):
        veil = self._veiler.parameters.veil(self.rng.veil_key(f"veil {self.publications}"))
        strata, codes = (
            decode_memories(self.records.memories[rows]).strata,
            self._domain_codes(self.records.values(rows)),
        )
        self.records.memories[rows] = veil.begin(self.records.hashes[rows, 1], strata, codes).memories
        return super()._publish(rows)


class FreshSeries(SeriesVeil):
    """The same, of a series."""

    def cut(self):
        parameters = self._veiler.parameters
        self._veiler.people = _core.veil.People(parameters.veil(self.rng.veil_key(f"veil {self.releases}")))
        return super().cut()


def homogeneous(made):
    st = made.tables["st"]
    same = st.set_column(1, "value", pa.array(["illness 0"] * st.num_rows))
    return replace(made, tables={**made.tables, "st": same})


class ForgetfulSeries(MDistinct):
    """Groups everybody anew at every release, as if nothing had been published."""

    def _group(self, people, updates, where):
        history, self.history = self.history, History()
        self.release = history.releases
        try:
            return super()._group(people, updates, where)
        finally:
            self.history = history

    def _key(self, purpose):
        return self.rng.key(f"{purpose} {self.release}")

    def _enforce_limit(self, people, updates, grouping):
        rows, group, value = grouping.published_records()
        shown = (people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value))
        alone = History().extend(*shown)
        return grouping, self.history.extend(*shown), risk_of(alone, updates, alone.last(people.hashes[rows]))


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("table/anatomy", HomogeneousTable),
        ("evolving/red", HomogeneousEvolving),
        ("series/m-distinct", HomogeneousSeries),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_what_the_verifier_refutes_is_never_published(name, bug, open_interface, monkeypatch):
    case = BY_NAME[name]
    plant(monkeypatch, case, bug)
    interface = open_interface(case)
    with pytest.raises(RefusedError, match="verifier refuted") as refused:
        interface.publish(steps(case)[0])
    assert refused.value.code == interface.guarantee
    assert not stored(interface)
    assert not [folder for folder in interface.folder.iterdir() if folder.name.startswith(("out", "release"))]


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("evolving/red", Red),
        ("evolving/red", type("RedAgain", (Red,), {"can_republish": True})),
        ("series/m-distinct", ForgetfulSeries),
        ("evolving/veil", FreshEvolving),
        ("series/veil", FreshSeries),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
@pytest.mark.parametrize("again", [False, True])
def test_a_release_is_verified_with_the_earlier_ones_even_if_again_is_set(
    name, bug, again, open_interface, monkeypatch
):
    """Each of the two releases holds by itself; together they disclose who has what."""
    case = BY_NAME[name]
    plant(monkeypatch, case, bug)
    interface = open_interface(case)
    first, second = steps(case)
    interface.publish(first)
    with pytest.raises(RefusedError) as refused:
        interface.publish(second, again=again)
    assert refused.value.code == interface.guarantee
    if again or bug is not Red:
        assert "verifier refuted" in refused.value.words
    assert len(stored(interface)) == 1


def plant(monkeypatch, case, bug):
    """Puts an engine in the place of a registered one, for every interface."""
    real = engines.publisher_class

    def chosen(kind, method):
        return bug if (kind, method) == (case.kind, case.method) else real(kind, method)

    monkeypatch.setattr(engines, "publisher_class", chosen)
    for module in ("reticent.publication.series", "reticent.publication.evolving", "reticent.service.hub"):
        monkeypatch.setattr(f"{module}.publisher_class", chosen)


def test_evolving_engines_have_the_type_that_the_interfaces_expect():
    for case in CASES:
        if case.kind == "evolving":
            assert issubclass(case.type(), EvolvingPublisher)
