"""Published and stored bytes stay what they were: made anew with seeds, compared with what was recorded.

`RETICENT_RECORD=1 pytest tests/golden/test_golden_bytes.py` records them again; then empty key_map.toml, and read the diff.
A renamed public name goes into key_map.toml: recorded files are compared under the new name, and nothing else may differ.
"""

from __future__ import annotations

import os
import shutil

import pytest
from golden_files import comparable, decoded
from golden_key_map import SECTIONS, KeyMap
from golden_runs import HERE, SCENARIOS, Scenario, run

RECORDED = HERE / "bytes"
MAP = KeyMap.load(HERE / "key_map.toml")
_LIMIT = 400_000


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_bytes_are_those_recorded(scenario: Scenario, tmp_path):
    made = run(scenario, tmp_path)
    folder = RECORDED / scenario.name
    if os.environ.get("RETICENT_RECORD"):
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in made.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return
    recorded = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sorted(made) == sorted(map(MAP.file, recorded))
    for name, content in recorded.items():
        _compare(name, content, made[MAP.file(name)])


def _compare(name: str, recorded: bytes, made: bytes) -> None:
    if not MAP:
        assert made.decode() == recorded.decode(), name
    elif name != "digests.json":  # they are of bytes with names in them
        expected = MAP.value(name, decoded(name, recorded))
        assert comparable(name, decoded(MAP.file(name), made)) == comparable(name, expected), name


def test_each_recorded_folder_has_its_scenario():
    names = {scenario.name for scenario in SCENARIOS} | {"policies"}
    assert {path.name for path in RECORDED.iterdir()} == names
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file()) < _LIMIT


def test_the_key_map_renames_names_and_nothing_else():
    pairs = {
        "json_keys": {"release.json:counts.held": "withheld", "counts": "records"},
        "stream_keys": {"q": "quasi"},
        "column_names": {"row": "stratum"},
        "file_names": {"st.csv": "values.csv"},
        "store_tables": {"reticent_kv": "reticent_state"},
        "store_columns": {"reticent_kv.space": "area"},
        "values": {"format=2": 1, "generalised": "generalized"},
        "labels": {"a reader": "an attacker"},
    }
    new = KeyMap({name: pairs.get(name, {}) for name in SECTIONS})
    old = {
        "counts": {"held": 1},
        "held": 2,
        "format": 2,
        "shape": "generalised",
        "who": "a reader",
        "files": {"st.csv": ""},
    }
    assert new.value("a/release.json", old) == {
        "records": {"withheld": 1},
        "held": 2,
        "format": 1,
        "shape": "generalized",
        "who": "an attacker",
        "files": {"values.csv": ""},
    }
    assert new.value("a/data.csv", [["row", "held"], ["row", "1"]]) == [["stratum", "held"], ["row", "1"]]
    assert new.value("lines.ndjson", [{"q": {"q_1": 2}}]) == [{"quasi": {"q_1": 2}}]
    assert new.value("store.json", {"reticent_kv": [{"space": "x"}]}) == {"reticent_state": [{"area": "x"}]}
    assert new.file("release/st.csv") == "release/values.csv"
