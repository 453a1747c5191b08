"""A crash between a folder and the note that it is there: the release was handed over, and is not handed over again."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from store_scenes import EvolvingScene, SeriesScene, people

from reticent import EvolvingTable, Series
from reticent.store import Store, Transaction


@pytest.fixture
def forgetful(monkeypatch):
    """What is noted of the next delivery is lost, as with the power."""

    def lose():
        monkeypatch.setattr(Transaction, "confirm_delivery", lambda *_, **__: None)
        return monkeypatch.undo

    return lose


def digests(place):
    with Store.open(place, create=False) as store:
        return [entry.digest for name in store.publishers() for entry in store.ledger(name).entries]


def test_an_evolving_table_goes_on_with_its_next_publication(tmp_path, forgetful):
    table = EvolvingTable(tmp_path / "store.db", EvolvingScene.policy)
    table.insert(people(0, 60))
    noted = forgetful()
    first = table.publish(tmp_path / "release-0")
    noted()
    assert table.status()["undelivered"] == 1
    table.insert(people(60, 60))
    second = table.publish(tmp_path / "release-1", again=True)
    assert [first.store["digest"], second.store["digest"]] == digests(tmp_path / "store.db")
    assert table.status()["undelivered"] == 0


def test_a_series_goes_on_with_its_next_release(tmp_path, forgetful):
    series = Series(tmp_path / "store.db", SeriesScene.policy)
    noted = forgetful()
    first = series.publish(people(0, 60), tmp_path / "release-0")
    noted()
    second = series.publish(people(0, 70), tmp_path / "release-1")
    assert [first.store["digest"], second.store["digest"]] == digests(tmp_path / "store.db")


@pytest.mark.parametrize("place", ["elsewhere/release-0", ".release-0.draft"])
def test_what_no_folder_shows_is_handed_over_first(tmp_path, forgetful, place):
    table = EvolvingTable(tmp_path / "store.db", EvolvingScene.policy)
    table.insert(people(0, 60))
    noted = forgetful()
    first = table.publish(tmp_path / place)
    noted()
    table.insert(people(60, 60))
    again = table.publish(tmp_path / "release-0", again=True)
    assert again.store["digest"] == first.store["digest"]
    assert (tmp_path / "release-0" / "qit.csv").exists() or (tmp_path / "release-0" / "data.csv").exists()
