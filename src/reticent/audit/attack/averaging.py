"""Averaging: a person is published several times; the true value is in all of the person's groups.

Guarantee: the attacker combines the shares of the groups exactly, as if the groups were independent.
Not covered: persons who cannot be recognized again.
Cost: linear in the records of recognized persons.
Reference: the repeated-query attack on random answers, D. Denning, P. Denning, M. Schwartz, "The tracker", TODS 4 (1979).
Differences from the paper: the repeated answer is a group that a person is published in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import GroupedRecords, group_records, group_stream
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.risk_bound import claimed_bound

QUESTION = "Recognizes a person in several publications or records, and combines the values that each group offers."

Shares = dict[str | None, float]


def averaging(evidence: Evidence) -> Outcome | None:
    """Attack the persons who occur more than once in all releases."""
    if not evidence.policy.sensitive:
        return None
    seen: dict[str, list[Shares]] = defaultdict(list)
    for keys, shown in _iter_publications(evidence):
        _add_observations(seen, keys, shown, evidence.sample)
    names = [who for who, shares in seen.items() if len(shares) > 1]
    if not names:
        return None
    guesses = [combine(seen[who]) for who in names]
    posterior = np.array([chance for _, chance in guesses])
    true_values = _true_values(evidence)
    hits = [guess in true_values[who] for (guess, _), who in zip(guesses, names, strict=True) if who in true_values]
    counted = len(hits) == len(names)
    bounds = [claimed_bound(release) for release in evidence.releases if "posterior" in release.claims]
    claim = max((bound for bound in bounds if bound is not None), default=None)
    return Outcome.from_posterior(
        "averaging",
        QUESTION,
        posterior,
        evidence.key,
        right=float(sum(hits)) if counted else float(posterior.sum()),
        counted=counted,
        claim=claim if len(bounds) == len(evidence.releases) else None,
        notes=(
            "Persons are recognized by their quasi-identifiers; in streams by the person column if the original has it.",
        ),
        figures={"observations": float(np.mean([len(seen[who]) for who in names]))},
    )


def combine(shares: Iterable[dict[str | None, float]]) -> tuple[str | None, float]:
    """Return the most likely value given all groups, and its probability; missing values are nearly excluded."""
    listed = list(shares)
    values = {value for share in listed for value in share}
    logs = {value: sum(np.log(share.get(value, 1e-6)) for share in listed) for value in values}
    top = max(logs.values())
    weights = {value: float(np.exp(log - top)) for value, log in logs.items()}
    best = max(weights, key=lambda value: (weights[value], str(value)))
    return best, weights[best] / sum(weights.values())


def _iter_publications(evidence: Evidence) -> Iterable[tuple[pa.Array, GroupedRecords]]:
    """Yield each publication with a name per record; null if several records have the same name."""
    streams = evidence.of_shape("stream")
    if streams and (shown := group_stream(streams)) is not None:
        yield _stream_names(evidence, shown), shown
    for release in evidence.of_shape("anatomy", "m-distinct"):
        shown = group_records(release, evidence.policy, evidence.policy.sensitive[0])
        names = [name for name in evidence.policy.quasi if shown is not None and name in shown.fields.column_names]
        if shown is not None and names:
            yield _unique_names(_join_columns(shown.fields.select(names))), shown


def _join_columns(quasi: pa.Table) -> pa.Array:
    columns = [quasi[name].fill_null("\x00").combine_chunks() for name in quasi.column_names]
    return pc.binary_join_element_wise(*columns, "\x1f")


def _unique_names(names: pa.Array) -> pa.Array:
    """Return the names that occur once, and null for the others."""
    counts = pc.value_counts(names)
    unique = counts.field("values").filter(pc.equal(counts.field("counts"), 1))
    return pc.if_else(pc.is_in(names, unique), names, None)


def _stream_names(evidence: Evidence, shown: GroupedRecords) -> pa.Array:
    original, person = evidence.original, evidence.policy.person
    if original is not None and person in original.column_names and shown.position is not None:
        return original[person].take(pa.array(shown.position)).combine_chunks()
    return shown.fields["quasi"].combine_chunks()


def _add_observations(seen: dict[str, list[Shares]], names: pa.Array, shown: GroupedRecords, limit: int) -> None:
    """Add the shares of this publication for the persons followed, and follow new persons up to the limit."""
    if len(seen) < limit:
        often = pc.value_counts(names.drop_null())
        order = np.argsort(-often.field("counts").to_numpy(), kind="stable")[: limit - len(seen)]
        for who in often.field("values").take(order).to_pylist():
            seen.setdefault(who, [])
    rows = np.flatnonzero(pc.is_in(names, pa.array(list(seen), names.type)).to_numpy(zero_copy_only=False))
    offers, shares = shown.offers, shown.offers.shares()
    for row, who in zip(rows, names.take(rows).to_pylist(), strict=True):
        low, high = np.searchsorted(offers.group, [shown.group[row], shown.group[row] + 1])
        values = [offers.values[code] for code in offers.value[low:high]]
        seen[who].append(dict(zip(values, shares[low:high].tolist(), strict=True)))


def _true_values(evidence: Evidence) -> dict[str, set[str | None]]:
    """Return the true values per person, named as in `_iter_publications`."""
    original, policy = evidence.original, evidence.policy
    if original is None:
        return {}
    if evidence.of_shape("stream"):
        if policy.person not in original.column_names:
            return {}
        names = original[policy.person].to_pylist()
    else:
        names = _join_columns(original.select(list(policy.quasi))).to_pylist()
    out: dict[str, set[str | None]] = defaultdict(set)
    for who, value in zip(names, original[policy.sensitive[0]].to_pylist(), strict=True):
        out[who].add(value)
    return out
