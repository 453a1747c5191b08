"""Join-or-open inference on a stream: who opened a group had nowhere to join, and that tells about everybody.

Guarantee: the posterior is exact on short transcripts (all worlds are enumerated) and sampled on long ones (particles,
    then Markov chains). With half of the chains choosing the guess and the other half judging it, the expected
    accuracy is not flattered by sampling noise. The truth, where it is at hand, counts right guesses and nothing
    else.
Not covered: knowledge of other people's values, correlations between quasi-identifiers and values.
Cost: seconds for a thousand tuples; longer streams are attacked on their beginning, a transcript in its own right.
Reference: the algorithm attacked is S. Kim, M. K. Sung, Y. D. Chung, J. Biomed. Inform. 50 (2014), Algorithm 1.
Differences from the paper: it does not consider this attacker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.chains import Chains
from reticent.audit.attack.evidence import Evidence, prior_counts
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.particles import Particles
from reticent.audit.attack.possible_worlds import Enumeration, TooManyWorldsError
from reticent.audit.attack.risk_bound import common_bound
from reticent.audit.attack.rules import Rules, barred_groups, rules_from_prior
from reticent.audit.attack.transcript import Transcript, read_transcript
from reticent.verify.groups import normalize_rows

QUESTION = (
    "Knows the algorithm, the prior and the order of arrival. A record that opens a group had no free slot to join; "
    "which values were still free follows from all records before it."
)


@dataclass(frozen=True)
class Effort:
    """How hard to try: more of everything is slower and sharper."""

    tuples: int = 1000
    worlds: int = 20_000
    particles: int = 800
    chains: int = 80
    sweeps: int = 72
    burn_in: int = 12


@dataclass(frozen=True, repr=False)
class Inference:
    """Per tuple and slot of its group the posterior, once for guessing and once for judging the guess."""

    guess: Floats
    evaluation: Floats
    exact: bool


def infer(seen: Transcript, known: Rules, rng: np.random.Generator, effort: Effort = Effort()) -> Inference:  # noqa: B008 - frozen
    """The attacker's posterior given the whole transcript."""
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
    """What the attacker knows of the algorithm."""
    policy = evidence.policy
    pool = getattr(policy.stream, "pool", "matched")
    return rules_from_prior(seen.values, prior_counts(policy), policy.l_of("stream"), pool)


def _outcome(
    evidence: Evidence, seen: Transcript, inference: Inference, truth: Int64s | None, claim: float | None
) -> Outcome:
    offered, rows = seen.slots[seen.group], np.arange(len(seen))
    guess, judge = _by_value(offered, inference.guess), _by_value(offered, inference.evaluation)
    noise = evidence.rng.random(judge.shape) * 1e-9  # equal candidates: guess any of them, not the first
    promised = (guess + noise).argmax(axis=1)
    highest = judge[rows, promised]
    hits = highest if truth is None else truth == (guess + judge + noise).argmax(axis=1)
    notes = [] if inference.exact else ["Sampled: posteriors of single records carry sampling error."]
    notes.append(f"Attacked: the first {len(seen):,} records of the stream.")
    return Outcome.from_posterior(
        "join-or-open",
        QUESTION,
        highest,
        evidence.key,
        right=float(hits.sum()),
        counted=truth is not None,
        claim=claim,
        bounded=inference.exact and truth is None,
        notes=tuple(notes),
        figures={"expected_accuracy": float(highest.mean()), "exact": inference.exact},
    )


def _true_slots(evidence: Evidence, seen: Transcript) -> Int64s | None:
    """The first slot that offers each record's true value, where the original is at hand."""
    original = evidence.original
    if original is None or not len(seen) or int(seen.seq.max()) >= original.num_rows:
        return None
    return seen.slot_of(original[evidence.policy.sensitive[0]].take(seen.seq).to_pylist())


def _by_value(offered: Int64s, share: Floats) -> Floats:
    """A value in several slots of a group: the first of them stands for all."""
    first = (offered[:, :, None] == offered[:, None, :]).argmax(axis=2)
    out = np.zeros_like(share)
    np.add.at(out, (np.arange(len(share))[:, None], first), share)
    return out
