"""What `reticent init` adds for a kind of release: policy sections, additional files and the next commands."""

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
"""The method of a table, unless --method names one."""
_MAX_L = 10


@dataclass(frozen=True)
class PolicyPlan:
    """Lines for the policy, additional files, and the next commands."""

    next_commands: tuple[str, ...]
    lines: tuple[str, ...] = ()
    updates: bool = False
    levels: dict[str, int] = field(default_factory=dict)
    records: str | None = None
    files: dict[Path, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def render(
    guesses: list[Guess], person: str | None, section: str | None, plan: PolicyPlan, missing: tuple[str, ...]
) -> str:
    """Return the policy as text, each guess with its reason."""
    lines = ["# Guessed from the data: review and correct every line.", "version: 1"]
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
    """Return the plan for a kind of release by a method other than the veil, from the data."""
    _require_quasi(guesses)
    if name == "table":
        return _table(method, data, output, guesses, head)
    sensitive = require_sensitive(name, guesses, person)
    counts = count_values(data, sensitive, missing)
    lines, files = [f"privacy: {{l: {_possible_l(counts, sensitive)}}}", f"{name}: {{method: {method}}}"], {}
    if name == "stream":
        prior = output.with_suffix(".prior.csv")
        files = {prior: _csv(counts)}
        lines[:0] = [
            f"# {prior.name} has the value counts of the data given to init: replace it with counts of past data."
        ]
        lines.append(f"prior: {{file: {prior.name}}}")
    return PolicyPlan(commands(name, data, output), tuple(lines), updates=name == "series", files=files)


def commands(kind: str, data: str, output: Path, *, keyed: bool = False) -> tuple[str, ...]:
    """Return the next commands. `keyed`: the table's method needs a store for its key."""
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
    """Return the sensitive column. Refuse data without a column that the kind of release needs."""
    sensitive = next((g.column for g in guesses if g.role == "sensitive"), None)
    if sensitive is None:
        raise DataError(
            f"No column looks sensitive, but a {name} release needs one.", hint="Name it with --sensitive COLUMN."
        )
    if person is None and name != "table":
        raise DataError(
            f"No column identifies the person, but a {name} release needs one.",
            hint="Name it with --person COLUMN. If there is none, add one to the data, such as patient_id.",
        )
    return sensitive


def refuse_kind(kind: str, data: str) -> None:
    """Refuse an unknown kind, or one that does not fit the data, such as a stream from a database."""
    if kind not in KINDS:
        raise PolicyError(f"--for: {unknown_word_message(kind, KINDS)}")
    if is_hl7(data) and kind != "stream":
        raise PolicyError("HL7 messages can only be released as a stream.", hint="Add --for stream.")
    if kind == "stream" and (is_sql(data) or is_fhir(data)):
        raise PolicyError(
            "A stream cannot read this source. It reads a file, standard input, HL7 messages or a Kafka topic.",
            hint="Use --for evolving, or write the records to a file.",
        )


def _require_quasi(guesses: list[Guess]) -> None:
    """Refuse data without a quasi-identifier: there is nothing to generalize."""
    if any(g.role == "quasi" for g in guesses):
        return
    veil = any(g.role == "sensitive" for g in guesses)
    raise DataError(
        "No column looks like a quasi-identifier, such as an age, a sex or a place: there is nothing to generalize.",
        hint="Add --method veil, which needs no such column." if veil else "Add such a column to the data.",
    )


def command(*words: object) -> str:
    """Return a reticent command, quoted for a shell."""
    return shlex.join(["reticent", *map(str, words)])


def _table(method: str | None, data: str, output: Path, guesses: list[Guess], head: pa.Table) -> PolicyPlan:
    """Return the plan of one table: k, and an l that the sensitive columns allow."""
    l, sensitive = guess_l(head, guesses), [g.column for g in guesses if g.role == "sensitive"]
    if method == "anatomy" and l is None:
        raise DataError("No sensitive column is diverse enough for Anatomy.", hint="Remove --method.")
    demands = [
        *([] if method == "anatomy" else [f"k: {K}"]),
        *([f"l: {l}"] if l else []),
        f"suppression: {SUPPRESSION}",
    ]
    if not sensitive:
        note = "No column looks sensitive: the policy protects identities only (k), not values (l)."
    elif l is None:
        note = f"No l: one value of '{sensitive[0]}' is too frequent for l-diversity."
    else:
        note = f"l = {l}: every class has at least {l} different values of {', '.join(sensitive)}."
    lines = (f"privacy: {{{', '.join(demands)}}}   # {note}", f"table: {{method: {method or DEFAULT_METHOD}}}")
    return PolicyPlan(commands("table", data, output), lines, notes=(note,))


def _possible_l(counts: dict[str | None, int], column: str) -> int:
    """Return the largest l up to 10 that the most frequent value allows."""
    l = min(_MAX_L, sum(counts.values()) // max(counts.values()))
    if l < 2:
        raise PolicyError(
            f"Column '{column}': one value is in more than half of the records, so no l is possible.",
            hint="Check that this is the sensitive column, or name another one with --sensitive COLUMN.",
        )
    return l


def _csv(counts: dict[str | None, int]) -> str:
    rows = sorted((value or "", count) for value, count in counts.items())
    return csv_text(pa.table({"value": [value for value, _ in rows], "count": [count for _, count in rows]}))
