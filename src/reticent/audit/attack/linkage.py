"""Linkage: match persons of another table with published records by their quasi-identifiers.

Guarantee: exact for the persons attacked: every published record that could be theirs counts as a candidate.
Not covered: errors in the other table; probabilistic matching.
Cost: persons attacked x classes; the persons are a random sample where there are many.
Reference: L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10 (2002).
Differences from the paper: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.audit.attack.outcome import Outcome, Person, binned, pseudonyms
from reticent.audit.attack.view import View, view
from reticent.audit.cover import cover
from reticent.audit.groups import codes, histograms, numbered
from reticent.audit.requirements import requirements
from reticent.audit.veil.judge import SHAPE, codes_of, line_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.audit.attack.evidence import Evidence
    from reticent.audit.published import Published
    from reticent.policy import Policy

QUESTION = "Has a table with names and the same quasi-identifiers, and looks for each person's record in the release."
_CELLS = 400_000_000  # comparisons at most: beyond, fewer persons are attacked


def linkage(evidence: Evidence) -> Outcome | None:
    """Attack the latest release with the external table, or with the original's quasi-identifiers."""
    release, policy = evidence.releases[-1], evidence.policy
    known = evidence.external if evidence.external is not None else evidence.original
    column = policy.sensitive[0] if policy.sensitive else ""
    seen = _seen(release, policy, column)
    if known is None or seen is None:
        return None
    shared = [name for name in seen.quasi.column_names if name in known.column_names]
    if not shared or not known.num_rows:
        return None
    group, size = numbered(seen.quasi, shared)
    many = int(max(100, min(evidence.sample, _CELLS // max(1, size * len(shared)))))
    chosen = np.sort(evidence.rng.permutation(known.num_rows)[:many])
    match = _matches(known.select(shared).take(chosen), seen.quasi, (group, size), policy)
    candidates = match @ np.bincount(group, minlength=size)
    posterior = np.divide(1.0, candidates, out=np.zeros(len(chosen)), where=candidates > 0)
    possible = posterior > 0
    order = np.argsort(-posterior, kind="stable")[:10]
    worst = tuple(
        Person(name, float(posterior[place]))
        for name, place in zip(pseudonyms(chosen[order], evidence.key), order, strict=True)
    )
    claim = _claim(release)
    return Outcome(
        attack="linkage",
        question=QUESTION,
        tried=int(possible.sum()),
        right=float(posterior.sum()),
        counted=False,
        claim=claim,
        highest=float(posterior.max(initial=0)),
        sure=int((posterior >= 1).sum()),
        bins=binned(posterior[possible]),
        worst=worst,
        bounded=claim is not None,
        notes=(
            f"Matched on {', '.join(shared)}; {int((~possible).sum()):,} of {len(chosen):,} persons match no record.",
        ),
        figures=_values(evidence, seen, (group, size), match, chosen),
    )


def _seen(release: Published, policy: Policy, column: str) -> View | None:
    """The release as records with quasi-identifiers; a veil offers what stands among the candidates of a class."""
    data, line = release.tables.get("data"), line_of(release) if release.shape == SHAPE else None
    if data is None or line is None:
        return view(release, policy, column) if release.shape != "stream" else None
    quasi = data.select([name for name in policy.quasi if name in data.column_names])
    group, size = numbered(quasi, quasi.column_names)
    candidates = pa.chunked_array([pa.array(line.domain).take(pa.array(codes_of(line, data).reshape(-1)))])
    return View(quasi, group, histograms(np.repeat(group, line.l), size, candidates))


def _claim(release: Published) -> float | None:
    sizes = [r.numbers[0] for r in requirements(release.claims) if r.model == "k"]
    return float(1 / max(sizes)) if sizes and release.shape in ("generalised", "veil") else None


def _matches(
    persons: pa.Table, quasi: pa.Table, grouped: tuple[NDArray[np.int64], int], policy: Policy
) -> NDArray[np.bool_]:
    """Per person and class, whether the class may hold the person's record."""
    group, size = grouped
    first = np.zeros(size, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    out = np.ones((persons.num_rows, size), dtype=np.bool_)
    for name in persons.column_names:
        value, values = codes(persons[name])
        label, labels = codes(quasi[name])
        allowed = cover(values, labels, policy, name)
        out &= allowed[value].toarray()[:, label[first]]
    return out


def _values(
    evidence: Evidence,
    seen: View,
    grouped: tuple[NDArray[np.int64], int],
    match: NDArray[np.bool_],
    chosen: NDArray[np.int64],
) -> dict[str, float]:
    """How often the most frequent sensitive value among the candidates is the true one."""
    if evidence.external is not None or evidence.original is None or not evidence.policy.sensitive:
        return {}
    group, size = grouped
    offers = seen.offers
    weight = offers.count / np.maximum(offers.sizes(), 1)[offers.group]
    from scipy.sparse import csr_array  # of the extra `audit`

    inside = csr_array((weight, (offers.group, offers.value)), shape=(offers.size, len(offers.values)))
    members = csr_array((np.ones(len(group)), (group, seen.group)), shape=(size, offers.size))
    guess = (csr_array(match) @ (members @ inside)).toarray().argmax(axis=1)
    truth = evidence.original[evidence.policy.sensitive[0]].take(chosen).to_pylist()
    hits = [offers.values[code] == value for code, value in zip(guess, truth, strict=True)]
    return {"value_accuracy": float(np.mean(hits)), "persons": len(hits)}
