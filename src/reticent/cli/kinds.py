"""What `reticent init` adds for each kind of release: its section, the files it names, and the command that comes next."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reticent.errors import DataError, PolicyError

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.policy.guess import Guess

KINDS = ("table", "evolving", "series", "stream")
_L = 10


@dataclass(frozen=True)
class Kind:
    """Lines for the policy, files beside it, and what to type next."""

    then: tuple[str, ...]
    lines: tuple[str, ...] = ()
    updates: bool = False
    levels: dict[str, int] = field(default_factory=dict)
    records: str | None = None
    files: dict[Path, str] = field(default_factory=dict)


def kind_for(name: str, data: str, output: Path, guesses: list[Guess], person: str | None) -> Kind:
    """The kind of release that was asked for, as far as the data tells.

    Raises:
        DataError: the data lacks what the kind cannot do without.
    """
    if name == "table":
        return Kind((command("anonymize", data, "-p", output, "-o", "release"),))
    sensitive = required(name, guesses, person)
    return {"evolving": _evolving, "series": _series, "stream": _stream}[name](data, output, sensitive)


def required(name: str, guesses: list[Guess], person: str | None) -> str:
    """The sensitive column; refuses data that lack what a kind cannot do without."""
    sensitive = next((g.column for g in guesses if g.role == "sensitive"), None)
    if sensitive is None:
        raise DataError(
            f"No column looks sensitive, and {name} releases protect one.",
            hint="Run init without --for, give one column the role sensitive, and see docs/policy.md for the section.",
        )
    if person is None and name not in ("table", "stream"):
        raise DataError(
            f"No column names the person, and {name} releases must know who is who.",
            hint="Add a column such as patient_id to the data.",
        )
    return sensitive


def _evolving(data: str, output: Path, sensitive: str) -> Kind:
    l = _possible(_counts(data, sensitive), sensitive)
    return Kind(
        (
            command("evolve", "init", "private.db", "-p", output),
            command("evolve", "insert", "private.db", data),
            command("evolve", "publish", "private.db", "-o", "release-1"),
        ),
        (
            f"privacy: {{l: {l}}}",
            f"evolving: {{method: sealed}}   # {l} values stay possible for everybody, over all publications together",
        ),
    )


def _series(data: str, output: Path, sensitive: str) -> Kind:
    m = min(4, _possible(_counts(data, sensitive), sensitive))
    return Kind(
        (command("republish", data, "-p", output, "--store", "private.db", "-o", "release-1"),),
        (
            "# updates: any says that readers know nothing of how values change. If they know that some changes never happen,",
            "# say so, or they can rule candidates out: updates: {file: updates.csv} with value,next,probability per line,",
            "# or {tree: 1} for values under the same parent of the column's hierarchy.",
            f"privacy: {{l: {m}}}",
            "series: {method: m-distinct, max_risk: 0.5}",
        ),
        updates=True,
    )


def _stream(data: str, output: Path, sensitive: str) -> Kind:
    counts = _counts(data, sensitive)
    prior = output.with_suffix(".prior.csv")
    l = _possible(counts, sensitive)
    return Kind(
        (command("stream", data, "-p", output, "--store", "private.db", "--to", "released.ndjson"),),
        (
            f"# {prior.name} counts the values of the data that init was given. It shapes the groups, and readers can guess it from them:",
            "# it should come from the past, not from the feed that is to be released. A value that may come but has not yet: count 0.",
            f"privacy: {{l: {l}}}",
            f"prior: {{file: {prior.name}}}",
            "stream: {method: sealed}",
        ),
        files={prior: _csv(counts)},
    )


def command(*words: object) -> str:
    """A command of ours, as a shell takes it."""
    return shlex.join(["reticent", *map(str, words)])


def _counts(data: str, column: str) -> dict[str | None, int]:
    from reticent.connectors.inputs import count_values

    return count_values(data, column)


def _possible(counts: dict[str | None, int], column: str) -> int:
    """The largest l up to ten that the most frequent value allows, with room for the widening of a prior."""
    from reticent.engine.stream.design import Prior, widened

    wide = widened(Prior(counts, "past"), "other")
    l = min(_L, sum(wide.values()) // max(wide.values()), sum(counts.values()) // max(counts.values()))
    if l < 2:
        raise PolicyError(
            f"One value of '{column}' makes up more than half of the records: it cannot be hidden among others.",
            hint="Is it the right sensitive column? Run init without --for and choose another one.",
        )
    return l


def _csv(counts: dict[str | None, int]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("value", "count"))
    writer.writerows(sorted((value or "", count) for value, count in counts.items()))
    return text.getvalue()
