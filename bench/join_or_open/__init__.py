"""Join-or-open inference on a stream: a record that opens a group found no group to join, which discloses its value.

Guarantee: the attacker's posterior is exact on short transcripts (all worlds are enumerated) and sampled on long ones
    (particles, then Markov chains). Half of the chains choose the guess and the other half evaluate it, so sampling
    noise does not inflate the expected accuracy. True values, if available, are used only to count right guesses.
Not covered: knowledge of other people's values, correlations between quasi-identifiers and values.
Cost: seconds for a thousand tuples; of a longer stream only the beginning is attacked.
Reference: the algorithm attacked is S. Kim, M. K. Sung, Y. D. Chung, J. Biomed. Inform. 50 (2014), Algorithm 1.
Differences from the paper: it does not consider this attacker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.join_or_open.chains import Chains
from bench.join_or_open.particles import Particles
from bench.join_or_open.possible_worlds import Enumeration, TooManyWorldsError
from bench.join_or_open.rules import Rules, barred_groups, rules_from_prior
from reticent.arrays import Floats, Int64s
from reticent.audit.attack.evidence import Evidence, prior_counts
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.risk_bound import common_bound
from reticent.audit.attack.transcript import Transcript, read_transcript
from reticent.verify.groups import normalize_rows

QUESTION = (
    "Knows the algorithm, the prior and the order of arrival. A record that opens a group had no free slot to join. "
    "Infers from all earlier records which values were still free."
)


@dataclass(frozen=True)
class Effort:
    """The computing effort; larger numbers are slower and more precise."""

    tuples: int = 1000
    worlds: int = 20_000
    particles: int = 800
    chains: int = 80
    sweeps: int = 72
    burn_in: int = 12


@dataclass(frozen=True, repr=False)
class Inference:
    """The posterior per tuple and slot of its group: one to choose the guess, one to evaluate it."""

    guess: Floats
    evaluation: Floats
    exact: bool


def infer(seen: Transcript, known: Rules, rng: np.random.Generator, effort: Effort = Effort()) -> Inference:  # noqa: B008 - frozen
    """Compute the attacker's posterior given the whole transcript."""
    bar = barred_groups(seen)
    if len(seen) <= 24:
        try:
            posterior = Enumeration(seen, known, bar, effort.worlds).posterior()
        except TooManyWorldsError:
            posterior = None
        if posterior is not None:
            return Inference(posterior, posterior, exact=True)
    parts = 4
    worlds = [Particles(seen, known, bar, effort.particles).worlds(rng, effort.chains // parts) for _ in range(parts)]
    chains = Chains(seen, known, bar, np.concatenate(worlds))
    half = parts // 2 * (effort.chains // parts)
    first, second = np.zeros((2, len(seen), seen.slots.shape[1]))
    for sweep in range(effort.sweeps):
        chains.sweep(rng)
        if sweep >= effort.burn_in:
            chains.tally(first, slice(0, half))
            chains.tally(second, slice(half, None))
    return Inference(normalize_rows(first), normalize_rows(second), exact=False)


def join_or_open(evidence: Evidence, effort: Effort = Effort()) -> Outcome | None:  # noqa: B008 - frozen
    """Attack the beginning of a stream's transcript."""
    streams = evidence.of_shape("stream")
    seen = read_transcript(streams, effort.tuples)
    if not len(seen) or (seen.slots >= 0).sum(axis=1).min() < np.bincount(seen.group).max(initial=0):
        return None
    inference = infer(seen, _algorithm_rules(evidence, seen), evidence.rng, effort)
    return _outcome(evidence, seen, inference, _true_slots(evidence, seen), common_bound(evidence))


def _algorithm_rules(evidence: Evidence, seen: Transcript) -> Rules:
    """Return what the attacker knows about the algorithm."""
    policy = evidence.policy
    pool = getattr(policy.stream, "pool", "matched")
    return rules_from_prior(seen.values, prior_counts(policy), policy.l_of("stream"), pool)


def _outcome(
    evidence: Evidence, seen: Transcript, inference: Inference, true_slots: Int64s | None, claim: float | None
) -> Outcome:
    offered, rows = seen.slots[seen.group], np.arange(len(seen))
    guess, evaluation = _by_value(offered, inference.guess), _by_value(offered, inference.evaluation)
    noise = evidence.rng.random(evaluation.shape) * 1e-9  # equal candidates: guess any of them, not the first
    best = (guess + noise).argmax(axis=1)
    highest = evaluation[rows, best]
    hits = highest if true_slots is None else true_slots == (guess + evaluation + noise).argmax(axis=1)
    notes = [] if inference.exact else ["The posteriors are sampled, so those of single records have a sampling error."]
    notes.append(f"The attack covers the first {len(seen):,} records of the stream.")
    return Outcome.from_posterior(
        "join-or-open",
        QUESTION,
        highest,
        evidence.key,
        right=float(hits.sum()),
        counted=true_slots is not None,
        claim=claim,
        bounded=inference.exact and true_slots is None,
        notes=tuple(notes),
        figures={"expected_accuracy": float(highest.mean()), "exact": inference.exact},
    )


def _true_slots(evidence: Evidence, seen: Transcript) -> Int64s | None:
    """Return the first slot that offers each record's true value, -1 if none does; None without the original."""
    original = evidence.original
    if original is None or not len(seen) or int(seen.seq.max()) >= original.num_rows:
        return None
    codes = {value: code for code, value in reversed(list(enumerate(seen.values)))}
    true_values = original[evidence.policy.sensitive[0]].take(seen.seq).to_pylist()
    same = seen.slots[seen.group] == np.array([codes.get(value, -2) for value in true_values])[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _by_value(offered: Int64s, share: Floats) -> Floats:
    """Add up the shares of a value that fills several slots of a group, in the first of these slots."""
    first = (offered[:, :, None] == offered[:, None, :]).argmax(axis=2)
    out = np.zeros_like(share)
    np.add.at(out, (np.arange(len(share))[:, None], first), share)
    return out
