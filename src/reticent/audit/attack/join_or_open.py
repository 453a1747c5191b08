"""Join-or-open inference on a stream: who opened a group had nowhere to join, and that tells about everybody.

Guarantee: the posterior is exact on short transcripts (all worlds are enumerated) and sampled on long ones (particles,
    then Markov chains). With half of the chains choosing the guess and the other half judging it, the expected
    accuracy is not flattered by sampling noise.
Not covered: knowledge of other people's values, correlations between quasi-identifiers and values.
Cost: seconds for a thousand tuples; longer streams are attacked on their beginning, a transcript in its own right.
Reference: the algorithm attacked is S. Kim, M. K. Sung, Y. D. Chung, J. Biomed. Inform. 50 (2014), Algorithm 1.
Differences from the paper: it does not consider this attacker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.attack.chains import Chains
from reticent.audit.attack.outcome import Outcome, binned, design_effect, worst_of
from reticent.audit.attack.particles import Particles
from reticent.audit.attack.prior import prior_counts
from reticent.audit.attack.rules import barred, rules
from reticent.audit.attack.transcript import Transcript, transcript
from reticent.audit.attack.worlds import Enumeration, TooManyWorldsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.audit.attack.evidence import Evidence
    from reticent.audit.attack.rules import Rules

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
    sweeps: int = 36
    burn: int = 6


@dataclass(frozen=True, repr=False)
class Inference:
    """Per tuple and slot of its group the posterior, once for guessing and once for judging the guess."""

    guess: NDArray[np.float64]
    judge: NDArray[np.float64]
    exact: bool


def infer(seen: Transcript, known: Rules, rng: np.random.Generator, effort: Effort = Effort()) -> Inference:  # noqa: B008 - frozen
    """The attacker's posterior given the whole transcript."""
    bar = barred(seen)
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
    first, second = np.zeros((2, len(seen), seen.slots.shape[1]), dtype=np.int64)
    for sweep in range(effort.sweeps):
        chains.sweep(rng)
        if sweep >= effort.burn:
            chains.tally(first, slice(0, half))
            chains.tally(second, slice(half, None))
    return Inference(_shares(first), _shares(second), exact=False)


def join_or_open(evidence: Evidence, effort: Effort = Effort()) -> Outcome | None:  # noqa: B008 - frozen
    """Attack the beginning of a stream's transcript."""
    streams = evidence.of_kind("stream")
    seen = transcript(streams, effort.tuples)
    if not len(seen) or (seen.slots >= 0).sum(axis=1).min() < np.bincount(seen.group).max(initial=0):
        return None
    sealed = (streams[0].method or evidence.policy.stream.method) == "sealed"
    if not sealed:
        return _with_model(evidence, seen, effort, by_class=False, claim=None)
    claim = 1 / evidence.policy.stream.l
    careful = _with_model(evidence, seen, effort, by_class=True, claim=claim)
    if _truth(evidence, seen) is None:
        return careful
    # Where guesses can be counted, a release is not believed to be sealed because it says so.
    plain = _with_model(evidence, seen, effort, by_class=False, claim=claim)
    return max(careful, plain, key=lambda outcome: outcome.right)


def _with_model(
    evidence: Evidence, seen: Transcript, effort: Effort, *, by_class: bool, claim: float | None
) -> Outcome:
    """Attack with one idea of which groups a tuple may join: those of its class, or all."""
    stream = evidence.policy.stream
    model = seen.by_class() if by_class else seen
    counts = None if by_class else prior_counts(evidence.policy)
    known = rules(model.values, counts, stream.l, "uniform" if by_class else getattr(stream, "pool", "matched"))
    return _outcome(evidence, model, infer(model, known, evidence.rng, effort), claim)


def _outcome(evidence: Evidence, seen: Transcript, found: Inference, claim: float | None) -> Outcome:
    both = (found.guess + found.judge) / 2
    noise = evidence.rng.random(both.shape) * 1e-9  # equal candidates: guess any of them, not the first
    rows = np.arange(len(seen))
    truth = _truth(evidence, seen)
    design = 1.0
    if truth is not None:
        hits = truth == (both + noise).argmax(axis=1)
        right, counted = float(hits.sum()), True
        _, alike = np.unique(seen.slots, axis=0, return_inverse=True)
        design = design_effect(hits, alike.reshape(-1)[seen.group])
    else:
        right, counted = float(found.judge[rows, (found.guess + noise).argmax(axis=1)].sum()), False
    highest = found.judge[rows, (found.guess + noise).argmax(axis=1)]
    notes = [] if found.exact else ["Sampled: posteriors of single records carry sampling error."]
    notes.append(f"Attacked: the first {len(seen):,} records of the stream.")
    return Outcome(
        attack="join-or-open",
        question=QUESTION,
        tried=len(seen),
        right=right,
        counted=counted,
        claim=claim,
        highest=float(highest.max(initial=0)),
        sure=int((highest > 0.999).sum()),
        bins=binned(highest),
        worst=worst_of(highest, evidence.key),
        bounded=found.exact,
        notes=tuple(notes),
        figures={"expected_accuracy": float(highest.mean()), "exact": found.exact},
        design=design,
    )


def _truth(evidence: Evidence, seen: Transcript) -> NDArray[np.int64] | None:
    """The slot each record really belongs to, where the original is at hand."""
    original = evidence.original
    if original is None or not len(seen) or int(seen.seq.max()) >= original.num_rows:
        return None
    column = original[evidence.policy.sensitive[0]].take(seen.seq)
    return _same_value(seen, column.to_pylist())


def _same_value(seen: Transcript, truth: list[str | None]) -> NDArray[np.int64]:
    texts = np.array([*seen.values, None], dtype=object)[seen.slots[seen.group]]
    same = texts == np.array(truth, dtype=object)[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
