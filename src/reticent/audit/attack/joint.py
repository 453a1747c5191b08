"""Joint: an attacker who combines several publications of any kind about the same persons.

Guarantee: exact products of the publications' likelihoods if their draws are independent. Under one parameter set the
    attacker sees a person's candidate sets as one draw; the latest counts once.
Not covered: persons who cannot be recognized; values that changed between publications (see `sug`).
Cost: linear in the records of all publications.
Reference: S. R. Ganta, S. Kasiviswanathan, A. Smith, "Composition attacks and auxiliary information in data privacy", KDD 2008.
Differences from the paper: where a publication states the shares of values, shares are multiplied instead of
    intersecting sets.
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.observations import Observations, VeiledRecords, observations_of
from reticent.audit.attack.outcome import CERTAIN, Outcome
from reticent.audit.attack.person_links import link
from reticent.verify.groups import normalize_rows
from reticent.verify.veil.true_values import true_value_codes

QUESTION = "Has all publications, recognizes persons by their published fields, and keeps the values that fit all publications."
PERSONS = 20_000
_NEARLY = 1e-6  # likelihood of a value that a publication does not show


def joint(evidence: Evidence) -> Outcome | None:
    """Attack the persons whom at least two publications single out."""
    original, policy = evidence.original, evidence.policy
    if original is None or len(evidence.releases) < 2 or policy.sensitive[0] not in original.column_names:
        return None
    shown = [one for release in evidence.releases if (one := observations_of(release, policy)) is not None]
    places = [_record_positions(one, evidence) for one in shown]
    appearances = sum((place >= 0).astype(np.int64) for place in places) if places else np.zeros(0)
    persons = np.flatnonzero(appearances >= 2)[:PERSONS]
    if not len(persons):
        return None
    values = tuple(sorted({value for one in shown for value in one.values}, key=str))
    posterior = normalize_rows(combine_publications(shown, [place[persons] for place in places], values))
    true_values = true_value_codes(values, original[policy.sensitive[0]], policy, policy.sensitive[0])[persons]
    noise = evidence.rng.random(posterior.shape) * 1e-9
    top = posterior.max(axis=1)
    parameter_sets = {one.parameters_digest for one in shown if isinstance(one, VeiledRecords)}
    return Outcome.from_posterior(
        "joint",
        QUESTION,
        top,
        evidence.key,
        right=float(((posterior + noise).argmax(axis=1) == true_values).sum()),
        counted=True,
        claim=_claim(shown, parameter_sets, places, persons),
        notes=(
            f"{len(persons):,} persons are recognized in two or more of {len(shown)} publications.",
            *_parameter_warnings(parameter_sets),
        ),
        figures={
            "publications": len(shown),
            "parameter_sets": len(parameter_sets),
            "sure": float((top > CERTAIN).mean()),
        },
    )


def _record_positions(seen: Observations, evidence: Evidence) -> Int64s:
    """Return, per person of the original, the one record that is theirs; -1 if it is not certain."""
    assert evidence.original is not None  # noqa: S101 - `joint` checked it
    match = link(seen, evidence.original, evidence.policy)
    return np.full(evidence.original.num_rows, -1) if match is None else match.only_record


def combine_publications(shown: list[Observations], places: list[Int64s], values: tuple[str | None, ...]) -> Floats:
    """Multiply the likelihoods of all publications, persons x values; count one parameter set only once."""
    number = {value: code for code, value in enumerate(values)}
    logs = np.zeros((len(places[0]), len(values)))
    latest = {one.parameters_digest: at for at, one in enumerate(shown) if isinstance(one, VeiledRecords)}
    base = np.zeros(len(values))
    for at, (seen, place) in enumerate(zip(shown, places, strict=True)):
        if isinstance(seen, VeiledRecords) and latest[seen.parameters_digest] != at:
            continue
        rows = np.flatnonzero(place >= 0)
        likelihood = np.full((len(rows), len(values)), _NEARLY)
        likelihood[:, [number[value] for value in seen.values]] = np.maximum(_likelihood(seen, place[rows]), _NEARLY)
        logs[rows] += np.log(likelihood)
        base = np.maximum(base, _prior_shares(seen, number))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)) * base)


def _likelihood(seen: Observations, records: Int64s) -> Floats:
    """Return the likelihood of the publication given each value: its stated share divided by its prior."""
    prior = seen.prior(records)
    return np.divide(seen.stated_shares(records), prior, out=np.zeros_like(prior), where=prior > 0)


def _prior_shares(seen: Observations, number: dict[str | None, int]) -> Floats:
    base = np.zeros(len(number))
    base[[number[value] for value in seen.values]] = seen.prior(np.arange(min(len(seen), 5000))).mean(axis=0)
    return base


def _claim(shown: list[Observations], parameter_sets: set[str], places: list[Int64s], persons: Int64s) -> float | None:
    """Return the stated weight of the best guess under one parameter set; otherwise None: nothing is bounded."""
    last = shown[-1]
    if (
        len(parameter_sets) != 1
        or not all(isinstance(one, VeiledRecords) for one in shown)
        or not isinstance(last, VeiledRecords)
    ):
        return None
    records = places[-1][persons]
    return float(last.stated_shares(records[records >= 0]).max(axis=1).mean())


def _parameter_warnings(parameter_sets: set[str]) -> tuple[str, ...]:
    if len(parameter_sets) < 2:
        return ()
    return (
        f"{len(parameter_sets)} veil parameter sets show the same persons; their candidates share little but the true value.",
    )
