"""What `reticent init` adds for the veil: published levels, a noisy prior from the data, and the next commands."""

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
# With fewer persons per candidate, the noise dominates the prior.
_PERSONS_PER_CANDIDATE = 80
_VALUES_PER_CANDIDATE = 3
"""Minimum number of values per candidate."""


_FEWER_VALUES_NOTE = (
    "After noise, the prior distinguishes {} values (rarer values are merged into their parents), enough for l = {}. A prior from past "
    "data or public statistics allows a larger l (reticent prior)."
)

_FIRST_RECORD_NOTE = (
    "{:,} records are later records of the same persons; only the first record of each person is released (records: first). To release "
    "all, name the column that orders them: person: {{column: ..., events: ...}}."
)

_NO_KERNEL_NOTE = (
    "No transition kernel: values that change later are omitted, and Reticent refuses to publish if they are more than 10%. If values change, "
    "make a kernel before the first publication, from past exports in one file: reticent prior PAST -p POLICY -o prior.csv."
)


def method_of(kind: str, method: str | None) -> str | None:
    """Return the given method or the default: the veil for everything that is published more than once."""
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
    """Return the plan for the veil. Refuse data with too few persons, or without a sensitive column or the person."""
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
            f"Column '{person}': {table.num_rows - persons:,} records belong to a person who has another record, but a series needs "
            "one record per person.",
            hint="Keep one record per person, or use --for evolving or --for stream.",
        )
    l = possible_l(persons, pc.count_distinct(table.column(sensitive), mode="all").as_py())
    prior = output.with_suffix(".prior.csv")
    # A stream has all events of a person; other kinds release one record per person, unless the user changes the policy.
    rng = np.random.default_rng()
    fitted = fit_on_release(table, policy, l=l, epsilon=EPSILON, kernel=kind == "stream", rng=rng)
    values = int(fitted.prior.shares.any(axis=0).sum())
    supported_l = possible_l(persons, values)
    notes = [] if supported_l == l else [_FEWER_VALUES_NOTE.format(values, supported_l)]
    first = kind in ("table", "evolving") and persons < table.num_rows
    notes += [_FIRST_RECORD_NOTE.format(table.num_rows - persons)] if first else []
    notes += [_NO_KERNEL_NOTE] if kind in ("evolving", "series") else []
    l, fitted = supported_l, fitted.for_l(supported_l)
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
    """Return the largest l up to 10 for so many persons and values: with few values per candidate, counts cannot be estimated."""
    l = min(_MAX_L, persons // _PERSONS_PER_CANDIDATE, max(min(values, 2), values // _VALUES_PER_CANDIDATE))
    if l < 2:
        raise DataError(
            f"{persons:,} persons with {values} values are too few for a prior.",
            hint="Use more persons, give the sensitive column a hierarchy, or write prior: {file: prior.csv} with public statistics.",
        )
    return l


def _lines(kind: str, l: int, prior: Path, *, kernel: bool) -> list[str]:
    """Return the sections of the policy."""
    steps = f", kernel: {{file: {kernel_name(prior.name)}}}" if kernel else ""
    return [
        f"privacy: {{l: {l}}}",
        f"# {prior.name} was made from the data given to init, with noise (epsilon = {EPSILON:g}). A prior from past data is better and",
        "# reports what an informed attacker gains: reticent prior PAST -p POLICY -o prior.csv. Values that change from one event",
        "# of a person to the next need a transition kernel. The same command makes it if persons have several records.",
        f"prior: {{file: {prior.name}{steps}}}",
        f"{kind}: {{method: veil}}   # each sensitive value is shown among {l} candidates",
    ]
