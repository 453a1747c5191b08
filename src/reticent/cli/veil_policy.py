"""What `reticent init` adds for the veil: published levels, a prior counted on the data with noise, and the next commands."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import pyarrow.compute as pc
import yaml

from reticent.cli.policy_plan import PolicyPlan, commands, render, require_sensitive
from reticent.connectors.inputs import is_hl7, read_hl7, read_input
from reticent.engine.veil.prior.fit_on_release import fit_on_release
from reticent.engine.veil.prior.fitted_prior import FittedPrior, kernel_name, write_fit
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.policy.guess import SAMPLE, Guess
from reticent.policy.level_proposal import propose_levels
from reticent.policy.spec import unknown_word_message

VEIL = "veil"
EPSILON = 1.0
_MAX_L = 10
# Persons per candidate below which a prior says too little.
_PERSONS_PER_CANDIDATE = 80
_VALUES_PER_CANDIDATE = 3
"""Values per candidate, at least."""


_FEWER_VALUES_NOTE = (
    "With noise the records tell {} values apart, rarer ones under their parents: that carries l = {}. A prior of the past or of public "
    "statistics carries more (reticent prior)."
)

_FIRST_RECORD_NOTE = (
    "{:,} records are further ones of somebody: the first of each person is released (records: first). For all of them name the column "
    "of their order: person: {{column: ..., events: ...}}."
)

_NO_KERNEL_NOTE = (
    "No kernel: values that change later are not offered, and nothing is published where they are more than a tenth. If values change, make one "
    "before the first publication, of past exports one below the other: reticent prior PAST -p POLICY -o prior.csv."
)


def method_of(kind: str, method: str | None) -> str | None:
    """The method that was asked for, or the usual one: the veil for all that is published more than once."""
    section: Any = Policy.model_fields[kind].annotation
    known = get_args(section.model_fields["method"].annotation)
    if method is not None and method not in known:
        raise PolicyError(f"--method: {unknown_word_message(method, known)}")
    return method or (None if kind == "table" else VEIL)


def veil_plan(
    kind: str,
    data: str,
    output: Path,
    guesses: list[Guess],
    person: str | None,
    section: str | None,
    missing: tuple[str, ...],
) -> PolicyPlan:
    """Levels, sections and files for the veil; refuses data that are too few, or lack a sensitive column or the person."""
    sensitive = require_sensitive(kind, guesses, person)

    def draft_policy(levels: dict[str, int]) -> Policy:
        text = render(guesses, person, section, PolicyPlan((), ("privacy: {l: 2}",), levels=levels), missing)
        return Policy.from_dict(yaml.safe_load(text), base=output.parent)

    policy = draft_policy({})
    table = without_markers(read_hl7(data), policy.missing) if is_hl7(data) else read_input(data, policy)
    levels = propose_levels(table.slice(0, SAMPLE), policy)
    policy = draft_policy(levels)
    persons = table.num_rows if person is None else pc.count_distinct(table.column(person)).as_py()
    if kind == "series" and persons < table.num_rows:
        raise DataError(
            f"Column '{person}': {table.num_rows - persons:,} records are further ones of somebody, and a release of a series "
            "has one record of each person.",
            hint="Keep one record per person, or use --for evolving or --for stream.",
        )
    l = possible_l(persons, pc.count_distinct(table.column(sensitive), mode="all").as_py())
    prior = output.with_suffix(".prior.csv")
    # A stream has all events of a person; elsewhere one record of each stands for all, unless the policy is changed by hand.
    rng = np.random.default_rng()
    fitted = fit_on_release(table, policy, l=l, epsilon=EPSILON, kernel=kind == "stream", rng=rng)
    offered = int(fitted.prior.shares.any(axis=0).sum())
    carried = possible_l(persons, offered)
    notes = [] if carried == l else [_FEWER_VALUES_NOTE.format(offered, carried)]
    first = kind in ("table", "evolving") and persons < table.num_rows
    notes += [_FIRST_RECORD_NOTE.format(table.num_rows - persons)] if first else []
    notes += [_NO_KERNEL_NOTE] if kind in ("evolving", "series") else []
    l, fitted = carried, fitted.for_l(carried)
    return PolicyPlan(
        commands(kind, data, output, keyed=True),
        tuple(_lines(kind, l, prior, kernel=fitted.kernel is not None)),
        levels=levels,
        records="first" if first else None,
        files=_files(fitted, prior),
        notes=tuple(notes),
    )


def _files(fitted: FittedPrior, prior: Path) -> dict[Path, str]:
    with TemporaryDirectory() as folder:
        written = write_fit(fitted, Path(folder) / prior.name)
        return {prior.with_name(path.name): path.read_text(encoding="utf-8") for path in written}


def possible_l(persons: int, values: int) -> int:
    """The largest l up to ten that so many persons and values carry: where most sets offer most values, nothing can be counted."""
    l = min(_MAX_L, persons // _PERSONS_PER_CANDIDATE, max(min(values, 2), values // _VALUES_PER_CANDIDATE))
    if l < 2:
        raise DataError(
            f"{persons:,} persons with {values} values are too few for a prior.",
            hint="Give more persons or a hierarchy to the sensitive column, or write prior: {file: prior.csv} with public statistics.",
        )
    return l


def _lines(kind: str, l: int, prior: Path, *, kernel: bool) -> list[str]:
    """The sections of the policy."""
    steps = f", kernel: {{file: {kernel_name(prior.name)}}}" if kernel else ""
    return [
        f"privacy: {{l: {l}}}",
        f"# {prior.name} was counted on the data that init was given, with noise for epsilon = {EPSILON:g}. One from the past is better",
        "# and says what an informed reader gains: reticent prior PAST -p POLICY -o prior.csv. Values that change from one event",
        "# of a person to the next need a kernel, which the same command makes where persons have several records.",
        f"prior: {{file: {prior.name}{steps}}}",
        f"{kind}: {{method: veil}}   # each sensitive value stands among {l} candidates",
    ]
