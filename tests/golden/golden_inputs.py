"""Input tables of the goldens: made with the standard library alone, so that nothing but the code under test can change them."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

ROWS = 40
_ILLNESSES = [f"illness {code}" for code in range(7)]
_WEIGHTS = [20, 18, 15, 12, 10, 10, 8]


def write_inputs(folder: Path) -> None:
    """Writes every input file of the scenarios into a folder."""
    people = _people(random.Random(7))
    _write(folder / "people.csv", people)
    _write(folder / "past.csv", _people(random.Random(6), 200))
    _write(folder / "visits.csv", _visits(people, random.Random(8)))
    for number, rows in enumerate(_versions(people, random.Random(9)), 1):
        _write(folder / f"people-{number}.csv", rows)
    _write(folder / "changed.csv", [people[0], *([*row[:-1], "illness 6"] for row in people[1:4])])
    _write(folder / "deleted.csv", [["patient"], *([row[0]] for row in people[4:7])])
    _write(folder / "days.csv", _with_days(people, random.Random(10)))
    _write(folder / "homes.csv", _with_homes(people, random.Random(11)))
    for name, rows in _linked(random.Random(12)).items():
        (folder / "linked").mkdir(exist_ok=True)
        _write(folder / "linked" / f"{name}.csv", rows)


def _people(rng: random.Random, size: int = ROWS) -> list[list[str]]:
    rows = [["patient", "line", "age", "sex", "zip", "ill"]]
    for line in range(size):
        ill = rng.choices(_ILLNESSES, _WEIGHTS)[0]
        rows.append([f"p{line}", str(line), str(rng.randint(0, 89)), rng.choice("fm"), str(rng.randint(100, 129)), ill])
    return rows


def _visits(people: Sequence[list[str]], rng: random.Random) -> list[list[str]]:
    """The same records of a third of the persons, so that most of them come back."""
    return [people[0], *([f"p{rng.randrange(ROWS // 3)}", *row[1:]] for row in people[1:])]


def _versions(people: Sequence[list[str]], rng: random.Random) -> list[list[list[str]]]:
    """Two releases of a series: some persons leave, some arrive, some illnesses become those of the same branch."""
    branch = {f"illness {code}": f"illness {code ^ 1}" for code in range(6)} | {"illness 6": "illness 6"}
    later = [[*row[:-1], branch[row[-1]] if rng.random() < 0.2 else row[-1]] for row in people[8:]]
    return [people[:-6], [people[0], *later]]


def _with_days(people: Sequence[list[str]], rng: random.Random) -> list[list[str]]:
    """A number of the record, which becomes a pseudonym, and a date, which is shifted."""
    rows = [["patient", "case", "age", "sex", "day", "ill"]]
    cells = ((f"c{row[1]}", row[2], row[3], f"2024-0{rng.randint(1, 6)}-11", row[-1]) for row in people[1:])
    return rows + [[row[0], *more] for row, more in zip(people[1:], cells, strict=True)]


def _with_homes(people: Sequence[list[str]], rng: random.Random) -> list[list[str]]:
    rows = [["patient", "home", "age", "sex", "ill"]]
    return rows + [[row[0], f"h{rng.randrange(ROWS // 2)}", row[2], row[3], row[-1]] for row in people[1:]]


def _linked(rng: random.Random) -> dict[str, list[list[str]]]:
    tables = defaultdict(list)
    tables["patients"].append(["pid", "born", "sex"])
    tables["visits"].append(["pid", "visit", "day", "kind"])
    tables["diagnoses"].append(["pid", "visit", "diagnosis"])
    tables["deaths"].append(["pid", "died"])
    for number in range(ROWS):
        pid = f"x{number}"
        tables["patients"].append([pid, str(rng.randint(1930, 2010)), rng.choice("fm")])
        for turn in range(rng.choice([0, 1, 1, 2])):
            visit, day = f"{pid}-{turn}", f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
            tables["visits"].append([pid, visit, day, rng.choice(["in", "out"])])
            tables["diagnoses"] += [[pid, visit, f"D{rng.randint(1, 12)}"] for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.25:
            tables["deaths"].append([pid, "2024-12-01"])
    return tables


def _write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
