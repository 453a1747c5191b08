"""What `reticent init` adds for a kind of release: sections of the policy, files beside it, and the next commands."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from reticent.connectors.inputs import count_values, is_fhir, is_hl7
from reticent.connectors.sql.url import is_sql
from reticent.datasets.writers import csv_text
from reticent.errors import DataError, PolicyError
from reticent.policy.check import KINDS
from reticent.policy.guess import SUPPRESSION, Guess, K, guess_l
from reticent.policy.spec import unknown_word_message

DEFAULT_METHOD = "auto"
"""Of a first table."""
_MAX_L = 10


@dataclass(frozen=True)
class PolicyPlan:
    """Lines for the policy, files beside it, and what to type next."""

    next_commands: tuple[str, ...]
    lines: tuple[str, ...] = ()
    updates: bool = False
    levels: dict[str, int] = field(default_factory=dict)
    records: str | None = None
    files: dict[Path, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def render(
    guesses: list[Guess],
    person: str | None,
    section: str | None,
    plan: PolicyPlan,
    missing: tuple[str, ...],
) -> str:
    """The policy as text, each guess with its reason."""
    lines = ["# Guessed from the data: read every line and correct it.", "version: 1"]
    if person:
        name = json.dumps(person, ensure_ascii=False)
        name = f"{{column: {name}, records: {plan.records}}}" if plan.records else name
        lines.append(f"person: {name}   # the same person across records; never released")
    if section:
        lines.append(f"{section}   # how the data becomes a table")
    if missing:
        lines.append(f"missing: {json.dumps(list(missing), ensure_ascii=False)}   # read as missing cells")
    lines.append("columns:")
    for g in guesses:
        more = "".join(f", {word}: {json.dumps(what, ensure_ascii=False)}" for word, what in g.settings.items())
        if g.role == "quasi" and plan.levels.get(g.column):
            more += f", level: {plan.levels[g.column]}"
        if g.role == "sensitive" and plan.updates:
            more += ", updates: any"
        what = f"{{role: {g.role}{more}}}" if more else g.role
        lines.append(f"  {json.dumps(g.column, ensure_ascii=False)}: {what}   # {g.why}")
    lines += plan.lines or ["privacy: {k: 5, suppression: 0.02}"]
    return "\n".join(lines) + "\n"


def plan_for(
    name: str,
    method: str | None,
    data: str,
    output: Path,
    guesses: list[Guess],
    person: str | None,
    head: pa.Table,
    missing: tuple[str, ...],
) -> PolicyPlan:
    """The kind of release that was asked for, by a method other than the veil, as far as the data tells."""
    _require_quasi(guesses)
    if name == "table":
        return _table(method, data, output, guesses, head)
    sensitive = require_sensitive(name, guesses, person)
    counts = count_values(data, sensitive, missing)
    lines, files = [f"privacy: {{l: {_possible_l(counts, sensitive)}}}", f"{name}: {{method: {method}}}"], {}
    if name == "stream":
        prior = output.with_suffix(".prior.csv")
        files = {prior: _csv(counts)}
        lines[:0] = [f"# {prior.name} counts the values of the data that init was given: it should come from the past."]
        lines.append(f"prior: {{file: {prior.name}}}")
    return PolicyPlan(commands(name, data, output), tuple(lines), updates=name == "series", files=files)


def commands(kind: str, data: str, output: Path, *, keyed: bool = False) -> tuple[str, ...]:
    """What to type next; `keyed`: the table's method keeps a key."""
    store, release = "private.db", "release-1"
    key_store = ("--store", store) if keyed else ()
    return {
        "table": (command("anonymize", data, "-p", output, *key_store, "-o", "release"),),
        "evolving": (
            command("evolve", "init", store, "-p", output),
            command("evolve", "insert", store, data),
            command("evolve", "publish", store, "-o", release),
        ),
        "series": (command("republish", data, "-p", output, "--store", store, "-o", release),),
        "stream": (command("stream", data, "-p", output, "--store", store, "--to", "released.ndjson"),),
    }[kind]


def require_sensitive(name: str, guesses: list[Guess], person: str | None) -> str:
    """The sensitive column; refuses data that lack what a kind cannot do without."""
    sensitive = next((g.column for g in guesses if g.role == "sensitive"), None)
    if sensitive is None:
        raise DataError(
            f"No column looks sensitive, and {name} releases protect one.",
            hint="Say which one: --sensitive COLUMN.",
        )
    if person is None and name != "table":
        raise DataError(
            f"No column names the person, and {name} releases must know who is who.",
            hint="Say which one: --person COLUMN. If there is none, add one to the data, such as patient_id.",
        )
    return sensitive


def refuse_kind(kind: str, data: str) -> None:
    """Refuses a kind that nobody knows, or that cannot be made of such data: a stream reads records, a database has tables."""
    if kind not in KINDS:
        raise PolicyError(f"--for: {unknown_word_message(kind, KINDS)}")
    if is_hl7(data) and kind != "stream":
        raise PolicyError("HL7 messages are released as a stream.", hint="Add --for stream.")
    if kind == "stream" and (is_sql(data) or is_fhir(data)):
        raise PolicyError(
            "A stream reads records one by one: a file, standard input, HL7 messages or a Kafka topic.",
            hint="Use --for evolving, or write the records to a file.",
        )


def _require_quasi(guesses: list[Guess]) -> None:
    """Without a column that others know there is nothing to tell persons apart by, and no release to make."""
    if any(g.role == "quasi" for g in guesses):
        return
    veil = any(g.role == "sensitive" for g in guesses)
    raise DataError(
        "No column is one that others know of a person, such as an age, a sex or a place: there is nothing to make coarser.",
        hint="The veil needs no such column: add --method veil." if veil else "Give the data with such a column.",
    )


def command(*words: object) -> str:
    """A command of ours, as a shell takes it."""
    return shlex.join(["reticent", *map(str, words)])


def _table(method: str | None, data: str, output: Path, guesses: list[Guess], head: pa.Table) -> PolicyPlan:
    """One table: k, and an l that the sensitive columns allow."""
    l, ill = guess_l(head, guesses), [g.column for g in guesses if g.role == "sensitive"]
    if method == "anatomy" and l is None:
        raise DataError("No column can be hidden among others, as Anatomy does.", hint="Leave --method out.")
    demands = [
        *([] if method == "anatomy" else [f"k: {K}"]),
        *([f"l: {l}"] if l else []),
        f"suppression: {SUPPRESSION}",
    ]
    if not ill:
        note = "No column looks sensitive: classes hide who is who, not what they have."
    elif l is None:
        note = f"No l: one value of '{ill[0]}' is too frequent to be hidden among others."
    else:
        note = f"l = {l}: every class shows at least {l} different values of {', '.join(ill)}."
    lines = (f"privacy: {{{', '.join(demands)}}}   # {note}", f"table: {{method: {method or DEFAULT_METHOD}}}")
    return PolicyPlan(commands("table", data, output), lines, notes=(note,))


def _possible_l(counts: dict[str | None, int], column: str) -> int:
    """The largest l up to ten that the most frequent value allows."""
    l = min(_MAX_L, sum(counts.values()) // max(counts.values()))
    if l < 2:
        raise PolicyError(
            f"One value of '{column}' makes up more than half of the records: it cannot be hidden among others.",
            hint="Is it the right sensitive column? Choose another one: --sensitive COLUMN.",
        )
    return l


def _csv(counts: dict[str | None, int]) -> str:
    rows = sorted((value or "", count) for value, count in counts.items())
    return csv_text(pa.table({"value": [value for value, _ in rows], "count": [count for _, count in rows]}))
