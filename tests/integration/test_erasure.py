"""What was deleted is nowhere: not in the store's file, not in its log, not in folders that a killed process left."""

import os
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from serving import InThread, csv
from store_scenes import BASE, EvolvingScene, StreamScene, ndjson, people

from reticent import EvolvingTable, Series, anonymize
from reticent.cli import main
from reticent.connectors.stream import Stream
from reticent.errors import GuaranteeError, StateError
from reticent.policy import Policy
from reticent.publication import evolving
from reticent.release import folder
from reticent.service.policy_registry import PolicyRegistry
from reticent.store import Store
from reticent.store.backup import check
from reticent.store.erase import erase_dead_letters

CANARY = "Zyxwv8731Qq"


def marked(rows):
    """One person with an illness and a name that nobody else has."""
    one = people(900, 1).set_column(4, "ill", [[f"illness {CANARY}"]]).set_column(0, "patient", [[f"patient {CANARY}"]])
    return pa.concat_tables([rows, one])


def holding(place, word=CANARY):
    return [path.name for path in place.iterdir() if path.is_file() and word.encode() in path.read_bytes()]


def test_a_deleted_person_leaves_no_unique_value(tmp_path):
    table = EvolvingTable(tmp_path / "store.db", EvolvingScene.policy)
    table.insert(marked(people(0, 60)))
    assert holding(tmp_path)
    table.delete([f"patient {CANARY}"])
    assert not holding(tmp_path)
    table.insert(people(60, 30))
    assert table.publish().records.published == 90


def test_a_table_in_memory_forgets_too_and_is_not_read_again_for_it(tmp_path, monkeypatch):
    with EvolvingTable(tmp_path / "store.db", EvolvingScene.policy) as table:
        table.insert(marked(people(0, 60)))
        monkeypatch.setattr(evolving.rows_of, "read", lambda *_: pytest.fail("the whole table is read again"))
        table.delete([f"patient {CANARY}"])
        assert not holding(tmp_path)
        table.insert(people(60, 30))
        records = table.engine.records
        assert CANARY not in str([words.values for words in records.words.values()])
        assert CANARY not in str([value for name, value in vars(records).items() if name != "words"])
        assert table.publish().records.published == 90


def test_a_feed_that_uses_the_row_again_leaves_nothing(tmp_path):
    table, rows = EvolvingTable(tmp_path / "store.db", EvolvingScene.policy), marked(people(0, 60))
    table.insert(rows)
    assert holding(tmp_path)
    gone = rows.slice(rows.column("patient").to_pylist().index(f"patient {CANARY}"), 1)
    table.apply(pa.concat_tables([gone, people(60, 1)]).append_column("op", pa.array(["delete", "insert"])))
    assert not holding(tmp_path)


def test_without_the_scrub_it_would_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(evolving, "forget_words", lambda *_: [])
    table = EvolvingTable(tmp_path / "store.db", EvolvingScene.policy)
    table.insert(marked(people(0, 60)))
    table.delete([f"patient {CANARY}"])
    assert holding(tmp_path)


def test_a_deleted_upload_is_gone_from_the_log(tmp_path):
    running = InThread(tmp_path)
    try:
        with running.client() as client:
            body = csv(marked(people(0, 60)))
            ident = client.post("/tables", content=body, headers={"Content-Type": "text/csv"}).json()["id"]
            assert holding(tmp_path)
            client.delete(f"/tables/{ident}").raise_for_status()
        assert not holding(tmp_path)
    finally:
        running.close()


def test_drafts_of_a_killed_process_are_removed(tmp_path):
    draft = tmp_path / ".release.0123456789ab"
    draft.mkdir()
    (draft / "data.csv").write_text(CANARY)
    os.utime(draft, (time.time() - 7200,) * 2)
    folder._remove_old_drafts(tmp_path / "release")
    assert not draft.exists()


def test_folders_of_a_killed_server_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    (tmp_path / f"reticent-{gone.stdout.strip()}-abc").mkdir()
    registry = PolicyRegistry()
    assert [path.name.split("-")[1] for path in tmp_path.iterdir()] == [str(os.getpid())]
    registry.close()


def words_of(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.mark.parametrize("kind", ["evolving", "series", "stream"])
def test_an_erased_publication_leaves_nothing_and_is_closed(kind, tmp_path):
    where = tmp_path / "store.db"
    rows, word = (people(0, 60), "illness 3") if kind == "stream" else (marked(people(0, 60)), CANARY)
    publish = {
        "evolving": lambda rows: (
            EvolvingTable(where, EvolvingScene.policy).insert(rows),
            EvolvingTable(where).publish(),
        ),
        "series": lambda rows: Series(where, SERIES).publish(rows),
        "stream": lambda rows: pushed(where, rows),
    }[kind]
    publish(rows)
    assert holding(tmp_path, word)
    assert not words_of("store", "erase", where, kind)
    assert not holding(tmp_path, word)
    with pytest.raises(StateError, match="could release the same people a second time"):
        publish(people(500, 60))
    with pytest.raises(GuaranteeError, match="already released from this store"):  # the ledger has not forgotten them
        anonymize(people(0, 60), ANATOMY, store=where)
    with Store.open(where) as store:
        check(store)


def test_dead_letters_are_erased(tmp_path):
    where = tmp_path / "store.db"
    with Stream(StreamScene.policy, store=where) as feed:
        feed.push(ndjson(people(0, 40)) + f'{{"{CANARY}": broken\n'.encode())
    assert holding(tmp_path)
    assert not words_of("store", "erase", where, "--dead-letters", "0")
    assert not holding(tmp_path)
    with Stream(StreamScene.policy, store=where) as feed:
        assert not feed.dead_letters()
        feed.push(ndjson(people(40, 40)))


def test_dead_letters_go_in_their_time(tmp_path):
    """Also next to a stream that runs."""
    where, now = tmp_path / "store.db", time.time()
    with Stream(StreamScene.policy, store=where) as feed:
        feed.push(f'{{"{CANARY}": broken\n'.encode())
        with Store.open(where) as store:
            assert erase_dead_letters(store, 10, now=now) == 0
            assert erase_dead_letters(store, 10, now=now + 9 * 86_400) == 0
            assert holding(tmp_path)
            assert erase_dead_letters(store, 10, now=now + 10 * 86_400) == 1
        assert not holding(tmp_path)


SERIES = Policy.from_dict(BASE | {"series": {"method": "m-invariance", "m": 3}})
ANATOMY = Policy.from_dict(BASE | {"privacy": {"l": 3, "suppression": 0.2}, "table": {"method": "anatomy"}})


def pushed(where, rows):
    with Stream(StreamScene.policy, store=where) as feed:
        feed.push(ndjson(rows))
