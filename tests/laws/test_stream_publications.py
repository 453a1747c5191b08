"""The laws of streams on what is published: lines that verify, each position once, the same again after any restart."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pytest
from cases import CASES, people

from reticent import verify
from reticent.connectors.stream import FileSource, Stream
from reticent.connectors.stream.sink import FileSink
from reticent.engine.rng import Rng
from reticent.engine.stream.base import Groups, PlacedBatch
from reticent.engine.stream.delay_free import DelayFree
from reticent.engine.stream.veil import Veil
from reticent.errors import GuaranteeError
from reticent.publication import stream_publication
from reticent.publication.stream import StreamPublication
from reticent.store import Store

STREAMS = [case for case in CASES if case.kind == "stream"]
AT_ONCE = [case for case in STREAMS if case.method != "castle"]
N = 400


@pytest.fixture(params=STREAMS, ids=lambda case: case.method)
def case(request):
    return request.param


def written(path, case):
    rows = case.table(1, N).to_pylist()
    rows[7]["patient"] = None
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return str(path)


def release(case, folder, name, source, *, block=1 << 20, seed=3):
    ends = Stream(case.rules(), store=folder / f"{name}.db", seed=seed), closing(FileSource(source, block=block))
    with ends[0] as stream, ends[1] as file:
        stream.run(file, str(folder / f"{name}.ndjson"))
    return (folder / f"{name}.ndjson").read_bytes()


class KilledError(Exception):
    """The process is gone."""


def killed(case, folder, name, source, monkeypatch, *, block, batches, after):
    """A run that dies at some batch, before or after its commit; then one that goes on."""
    write, counted = Stream._write, iter(range(10_000))

    def fatal(self, step):
        last = next(counted) == batches
        if last and not after:
            raise KilledError
        number = write(self, step)
        if last:
            raise KilledError
        return number

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(Stream, "_write", fatal)
        release(case, folder, name, source, block=block)
    return release(case, folder, name, source, block=block)


def test_lines_verify_and_every_position_comes_once(case, tmp_path):
    shown = release(case, tmp_path, "a", written(tmp_path / "in.ndjson", case))
    result = verify(tmp_path / "a.ndjson", case.rules())
    assert result.holds, result.refuted
    seqs = [line["seq"] for line in map(orjson.loads, shown.splitlines()) if "seq" in line]
    assert len(set(seqs)) == len(seqs)
    assert 7 not in seqs
    if case.method != "castle":
        assert seqs == [i for i in range(N) if i != 7]


def test_the_same_seed_gives_the_same_lines(case, tmp_path):
    source = written(tmp_path / "in.ndjson", case)
    whole = release(case, tmp_path, "a", source)
    assert release(case, tmp_path, "b", source) == whole
    assert release(case, tmp_path, "c", source, seed=4) != whole


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case.method)
def test_lines_do_not_depend_on_how_the_input_is_cut(case, tmp_path):
    source = written(tmp_path / "in.ndjson", case)
    assert release(case, tmp_path, "b", source, block=700) == release(case, tmp_path, "a", source)


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case.method)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("journal", [0, 1 << 20])
def test_a_restart_gives_the_same_bytes(case, tmp_path, monkeypatch, journal, after):
    """From snapshot and journal (long), or from snapshots alone (none); killed before and after a commit."""
    source = written(tmp_path / "in.ndjson", case)
    whole = release(case, tmp_path, "a", source)
    monkeypatch.setattr(stream_publication, "_MAX_JOURNAL", journal)
    for batches in (1, 4):
        name = f"killed{batches}"
        assert killed(case, tmp_path, name, source, monkeypatch, block=3000, batches=batches, after=after) == whole
        with Store.open(tmp_path / f"{name}.db") as store:
            assert [letter.position for letter in store.dead_letters("stream")] == ["7"]


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case.method)
def test_dying_at_any_commit_loses_and_doubles_nothing(case, tmp_path):
    """Whatever is stored is stored together: there is no moment between the lines and the position."""
    source = written(tmp_path / "in.ndjson", case)
    whole = release(case, tmp_path, "a", source)

    def dying(store, last):
        left = iter(range(last))

        def commit(change):
            if next(left, None) is None:
                raise KilledError
            with store.transaction() as tx:
                return change(tx)

        return commit

    for last in range(1, 8):
        place, out = tmp_path / f"{last}.db", str(tmp_path / f"{last}.ndjson")
        with (
            suppress(KilledError),
            Store.open(place) as store,
            Stream(case.rules(), store=store, seed=3, commit=dying(store, last)) as stream,
            closing(FileSource(source, block=5000)) as file,
        ):
            stream.run(file, out)
        assert release(case, tmp_path, str(last), source, block=5000) == whole


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case.method)
@pytest.mark.parametrize("fails", [1, 2, 4])
def test_a_sink_that_fails_while_the_next_batch_is_stored_loses_and_doubles_nothing(case, tmp_path, monkeypatch, fails):
    """One batch is being sent and the one behind it stored: the first is not sent yet, and both must come again."""
    source = written(tmp_path / "in.ndjson", case)
    whole = release(case, tmp_path, "a", source)
    stored = threading.Semaphore(0)
    write, counted = FileSink.write, iter(range(10_000))

    def commit(store):
        def step(change):
            with store.transaction() as tx:
                number = change(tx)
            stored.release()
            return number

        return step

    def failing(self, payload):
        if next(counted) + 1 == fails:
            for _ in range(fails + 1):
                assert stored.acquire(timeout=60), "the next batch is stored meanwhile"
            write(self, payload[: len(payload) // 2])
            raise KilledError
        write(self, payload)

    ends = Store.open(tmp_path / "b.db"), closing(FileSource(source, block=3000))
    with monkeypatch.context() as patch, ends[0] as store, ends[1] as file:
        patch.setattr(FileSink, "write", failing)
        with Stream(case.rules(), store=store, seed=3, commit=commit(store)) as stream, suppress(KilledError):
            stream.run(file, str(tmp_path / "b.ndjson"))
    with Store.open(tmp_path / "b.db") as store:
        assert [entry.number for entry in store.iter_undelivered_batches("stream")][:2] == [fails - 1, fails]
    assert release(case, tmp_path, "b", source, block=3000) == whole


def test_batches_pushed_over_many_starts_are_those_of_one(case, tmp_path):
    rows = [case.table(1, N).slice(at, 50) for at in range(0, N, 50)]
    with Stream(case.rules(), store=tmp_path / "one.db", seed=3) as stream:
        whole = b"".join(map(stream.push, rows)) + stream.close()
    shown = b""
    for batch in rows:
        with Stream(case.rules(), store=tmp_path / "many.db", seed=3) as stream:
            lines = stream.push(batch)
        with Stream(case.rules(), store=tmp_path / "many.db", seed=3) as stream:
            assert stream.undelivered == lines, "lines that were not delivered are still there"
        shown += lines
    with Stream(case.rules(), store=tmp_path / "many.db", seed=3) as stream:
        assert shown + stream.close() == whole
    (tmp_path / "all.ndjson").write_bytes(whole)
    assert verify(tmp_path / "all.ndjson", case.rules()).holds


def test_a_file_is_pushed_as_it_is_run(tmp_path):
    case = AT_ONCE[0]
    source = written(tmp_path / "in.ndjson", case)
    with Stream(case.rules(), store=tmp_path / "b.db", seed=3) as stream:
        assert stream.push(source) == release(case, tmp_path, "a", source)
        assert [letter.reason for letter in stream.dead_letters()] == ["no person"]


def test_nothing_that_the_verifier_refutes_is_delivered(tmp_path, monkeypatch):
    """An engine that offers one candidate too few: nothing reaches sink or store, through any interface."""
    case = next(case for case in STREAMS if case.method == "delay-free")
    put = DelayFree._push_records

    def narrow(self, records):
        groups = put(self, records)
        keep = np.ones(len(groups.codes), dtype=bool)
        keep[groups.offsets[:-1]] = False
        sizes = np.diff(groups.offsets) - 1
        return groups._replace(
            codes=groups.codes[keep], counts=groups.counts[keep], offsets=np.cumsum([0, *sizes]).astype(np.int64)
        )

    monkeypatch.setattr(DelayFree, "_push_records", narrow)
    source = written(tmp_path / "in.ndjson", case)
    with pytest.raises(GuaranteeError, match="nothing of it was delivered"):
        release(case, tmp_path, "a", source)
    assert (tmp_path / "a.ndjson").read_bytes() == b""
    with Store.open(tmp_path / "a.db") as store:
        assert list(store.outbox("stream")) == []
        assert store.position("stream") is None


def test_generalised_records_below_k_are_not_delivered(monkeypatch):
    case = next(case for case in STREAMS if case.method == "castle")
    publication = StreamPublication(case.rules())
    lone = pa.table({"seq": [0], "age": ["1"], "sex": ["m"], "zip": ["100"], "ill": ["x"], "row": ["1"]})
    monkeypatch.setattr(publication.engine, "place", lambda *_: PlacedBatch(np.empty(0, dtype=np.uint64), records=lone))
    with pytest.raises(GuaranteeError):
        publication.take(publication.reader.table(people(1, 5)))


def test_a_group_that_the_verifier_has_not_seen_is_not_joined(monkeypatch):
    case = next(case for case in STREAMS if case.method == "delay-free")
    publication = StreamPublication(case.rules())
    none = np.empty(0, dtype=np.int64)
    stranger = Groups(
        np.array([5], dtype=np.uint64), none.astype(np.uint64), none, np.zeros(1, dtype=np.int64), none, none
    )
    placed = PlacedBatch(np.zeros(1, dtype=np.uint64), stranger, labels=["a"], journal=b"x")
    monkeypatch.setattr(publication.engine, "place", lambda *_: placed)
    with pytest.raises(GuaranteeError):
        publication.take(publication.reader.table(people(1, 1)))


def turned(veiled):
    return {"candidates": veiled.candidates[:, ::-1].copy()}


def uncounted(veiled):
    return {"events": np.zeros_like(veiled.events)}


def torn(veiled):
    """Every set from the same neighbour: later sets do not follow those before them, first ones are of other strata."""
    return {"candidates": np.roll(veiled.candidates, 1, axis=0).copy(), "strata": veiled.strata}


def elsewhere(veiled):
    return {"strata": np.where(veiled.events > 0, 1 - veiled.strata, veiled.strata).astype(np.uint32)}


def rare(veiled):
    return {"candidates": np.zeros_like(veiled.candidates)}


def named(veiled):
    return {"pseudonyms": veiled.persons}


FORGED = [(forge, size) for forge in (turned, uncounted, torn, elsewhere, rare, named) for size in (1, 400)]
FORGED.remove((torn, 1))  # which needs a neighbour


@pytest.mark.parametrize(("forge", "size"), FORGED)
def test_a_veil_that_is_not_one_is_not_delivered(monkeypatch, forge, size):
    """Record by record and in one batch: the verifier checks each set, and what follows what."""
    case = next(case for case in STREAMS if case.method == "veil")
    place = Veil.place

    def forged(*given):
        placed = place(*given)
        return replace(placed, veiled=placed.veiled._replace(**forge(placed.veiled)))

    monkeypatch.setattr(Veil, "place", forged)
    publication = StreamPublication(case.rules(), rng=Rng.from_seed(1))
    parts = [publication.reader.table(case.table(1, N).slice(at, size)) for at in range(0, N, size)]
    with pytest.raises(GuaranteeError, match="nothing of it was delivered"):
        list(map(publication.take, parts))
