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
    """Lines for the policy, files beside it, and what to type next: what the policy needs before it can be checked, and then."""

    then: tuple[str, ...]
    lines: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    files: dict[Path, str] = field(default_factory=dict)


def kind_for(name: str, data: str, output: Path, guesses: list[Guess], person: str | None) -> Kind:
    """The kind of release that was asked for, as far as the data tells.

    Raises:
        DataError: the data lacks what the kind cannot do without.
    """
    if name == "table":
        return Kind((_command("anonymize", data, "-p", output, "-o", "release"),))
    sensitive = next((g.column for g in guesses if g.role == "sensitive"), None)
    if sensitive is None:
        raise DataError(
            f"No column looks sensitive, and {name} releases protect one.",
            hint="Run init without --for, give one column the role sensitive, and see docs/policy.md for the section.",
        )
    if person is None and name != "stream":
        raise DataError(
            f"No column names the person, and {name} releases must know who is who.",
            hint="Add a column such as patient_id to the data.",
        )
    return {"evolving": _evolving, "series": _series, "stream": _stream}[name](data, output, sensitive)


_PAST = (
    "# What a reader knows already. It must not come from the data that are to be released: take public statistics (value,count),",
    "# or make it from a past or a disjoint sample with the command below.",
)


def _prior(output: Path) -> tuple[str, str]:
    """The name of the file of the prior, and the command that makes it."""
    prior = output.with_suffix(".prior.csv")
    return prior.name, _command("prior", "PAST.csv", "-p", output, "-o", prior)


def _evolving(data: str, output: Path, sensitive: str) -> Kind:
    l = _possible(_counts(data, sensitive), sensitive)
    prior, fit = _prior(output)
    return Kind(
        (
            _command("evolve", "init", "private.db", "-p", output),
            _command("evolve", "insert", "private.db", data),
            _command("evolve", "publish", "private.db", "-o", "release-1"),
        ),
        (
            f"privacy: {{l: {l}}}",
            *_PAST,
            f"prior: {{file: {prior}}}",
            f"evolving: {{method: veil}}   # everybody stands among {l} candidates, over all publications together",
        ),
        before=(fit,),
    )


def _series(data: str, output: Path, sensitive: str) -> Kind:
    l = _possible(_counts(data, sensitive), sensitive)
    prior, fit = _prior(output)
    return Kind(
        (_command("republish", data, "-p", output, "--store", "private.db", "-o", "release-1"),),
        (
            f"privacy: {{l: {l}}}",
            *_PAST,
            "# kernel: {file: kernel.csv} beside it says what values become from release to release (value,next,probability); without it",
            "# everybody shows the first candidates for ever, and a value that changed is not among them.",
            f"prior: {{file: {prior}}}",
            f"series: {{method: veil}}   # everybody stands among {l} candidates, over all releases together",
        ),
        before=(fit,),
    )


def _stream(data: str, output: Path, sensitive: str) -> Kind:
    counts = _counts(data, sensitive)
    prior = output.with_suffix(".prior.csv")
    l = _possible(counts, sensitive)
    return Kind(
        (_command("stream", data, "-p", output, "--store", "private.db", "--to", "released.ndjson"),),
        (
            f"# {prior.name} counts the values of the data that init was given. It shapes the groups, and readers can guess it from them:",
            "# it should come from the past, not from the feed that is to be released. A value that may come but has not yet: count 0.",
            f"privacy: {{l: {l}}}",
            f"prior: {{file: {prior.name}}}",
            "stream: {method: sealed}",
        ),
        files={prior: _csv(counts)},
    )


def _command(*words: object) -> str:
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
