"""Turn veiled records into a release: published columns, stratum, event and candidates, with `veil.json`.

Noisy counts of first events by stratum and value let recipients calibrate their estimates.

Guarantee of the noisy counts (to each released person, against an attacker who knows all other records): with one record per
    person another value changes two counts by one, so noise of scale 2 / epsilon makes the table epsilon-differentially private.
    A weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a).
Not covered: a second table of counts of the same persons: epsilon adds up, so the ledger refuses them in another publication.
Cost: two draws per stratum and value.
Reference: `engine/veil/prior/noise.py`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Bools, Floats, Int32s, Int64s, UInt32s, UInt64s
from reticent.engine.base import claims
from reticent.engine.rng import Rng
from reticent.engine.veil.prior.noise import add_noise, two_sided_geometric
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.release import Guarantee
from reticent.release.wording import AGAINST, HOUSEHOLD, LINKED, SINGLING_OUT, VEIL

if TYPE_CHECKING:
    from reticent.engine.veil.batch_veiler import VeiledEvents
    from reticent.engine.veil.parameters import VeilParameters

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def guarantee(parameters: VeilParameters) -> Guarantee:
    """Return the guarantee of a veil and its attacker, with the figures that were measured when the prior was made."""
    k = claims(parameters.policy).get("k")
    exclusions = (
        (*_list_exclusions(parameters), *VEIL)
        if parameters.policy.household is None
        else (*_list_exclusions(parameters), *VEIL, HOUSEHOLD)
    )
    if k is None:
        return Guarantee({"veil": parameters.l}, AGAINST["veil"], (*exclusions, SINGLING_OUT))
    return Guarantee({"veil": parameters.l, "k": k}, AGAINST["veil"], (*exclusions, LINKED))


def _list_exclusions(parameters: VeilParameters) -> list[str]:
    figures = parameters.figures or {}
    return [
        _odds_ratio_sentence(figures),
        _kernel_sentence(parameters, figures),
        *_epsilon_sentences(parameters),
        _omission_sentence(figures),
    ]


def _odds_ratio_sentence(figures: dict[str, Any]) -> str:
    bound = (
        "an attacker better informed than the prior by an odds ratio r: a weight a becomes at most ra / (ra + 1 - a)"
    )
    if "odds_ratio" not in figures:
        return f"{bound}; the odds ratio was not measured for this prior"
    odds_ratio, attacker = figures["odds_ratio"], figures["attacker"]
    before, after = attacker["before"], attacker["after"]
    return (
        f"{bound}; on {figures['held_out']} held-out persons of the past the best attacker we trained reached an odds ratio of "
        f"{odds_ratio['mean']:.3g} (geometric mean; 99th percentile {odds_ratio['99']:.3g}), gave the best guess a probability of "
        f"{after['sure']:.1%} (99th percentile {after['sure_99']:.1%}) and was right in {after['right']:.1%} of the cases, in "
        f"{before['right']:.1%} without the release, at l = {figures['l']}"
    )


def _kernel_sentence(parameters: VeilParameters, figures: dict[str, Any]) -> str:
    if parameters.kernel is None:
        return "later values of a person that differ from the first: they are omitted, as there is no transition kernel"
    sentence = "values of a person that follow one another in another way than the published transition kernel says"
    kernel = figures.get("kernel")
    if not kernel or not kernel["misfit"]:
        return f"{sentence}; the misfit of the kernel was not measured"
    attackers = "".join(
        f"; after {score['events']} events an attacker with a finer kernel is right for {score['right']:.1%} of {score['persons']} "
        f"held-out persons, an attacker with the published kernel for {score['published']:.1%}"
        for score in kernel["attackers"]
    )
    return f"{sentence}; its misfit on held-out persons was {kernel['misfit']['gain']:.3g} nats per event{attackers}"


def _epsilon_sentences(parameters: VeilParameters) -> list[str]:
    """State the cost to persons of the past, and to the released persons, for whom the epsilons of both tables add up."""
    spent, sentences = [], []
    if parameters.epsilon is not None and (parameters.figures or {}).get("source") == "released":
        spent.append(("the prior was", parameters.epsilon))
    elif parameters.epsilon is not None:
        sentences = [f"persons of the past from whom the prior was made: it cost them epsilon = {parameters.epsilon:g}"]
    if (counts_cost := counts_epsilon(parameters.policy)) is not None:
        spent.append(("counts by stratum and value were", counts_cost))
    if not spent:
        return sentences
    names = " and ".join(source for source, _ in spent)
    epsilon = sum(cost for _, cost in spent)
    where = f"an attacker who knows all other records: {names} computed from the released persons, with noise of"
    bound = "so that a weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a)"
    return [*sentences, f"{where} epsilon = {epsilon:g}, {bound}"]


def _omission_sentence(figures: dict[str, Any]) -> str:
    share = f"about {figures['omission_rate']:.1%} on held-out persons, and " if "omission_rate" in figures else ""
    return f"true values that are not among their candidates: {share}veil.json states the omission rate, with noise"


def data_table(
    parameters: VeilParameters,
    published: pa.Table,
    events: VeiledEvents | _core.veil.VeiledEvents,
    row_order: Int64s,
    names: pa.Array | None = None,
) -> pa.Table:
    """Build the published table with its rows in the given order, and with pseudonyms of persons where given."""
    labels = pa.array(parameters.domain.labels, pa.string())
    take = pa.array(row_order)
    columns: dict[str, Any] = {name: published.column(name).take(take) for name in published.column_names}
    columns |= {
        "stratum": pa.array(events.strata[row_order], pa.int64()),
        "event": pa.array(events.events[row_order], pa.int64()),
    }
    if names is not None:
        columns["person"] = names.take(take)
    for slot in range(parameters.l):
        codes = pa.array(events.candidates[row_order, slot].astype(np.int32))
        columns[f"{parameters.sensitive}_{slot + 1}"] = labels.take(codes)
    return pa.table(columns)


def pseudonyms(persons: UInt64s, key: bytes) -> pa.Array:
    """Return a pseudonym for each person, which shows only which records belong to one person."""
    whole, who = np.unique(persons, return_inverse=True)
    names = [hashlib.blake2b(person.tobytes(), key=key, digest_size=8).hexdigest() for person in whole]
    return pa.array(names, pa.string()).take(pa.array(who.reshape(-1)))


def random_order(size: int, rng: Rng, purpose: str) -> Int64s:
    """Return a random order for a purpose."""
    return _core.random.permutation(size, key=rng.key(purpose))


def omission_rates(
    parameters: VeilParameters, events: VeiledEvents, persons: UInt64s, facts: UInt64s, rng: Rng, epsilon: float
) -> list[float]:
    """Return the omission rate of each stratum, where each person counts once, with two-sided geometric noise.

    A person is in one stratum, with any number of records. Replacing a person changes two counts by at most one, so noise of
    scale 2 / epsilon costs epsilon. The noise is a function of the stratum's `facts` under the veil key: the same facts have the
    same noise in every run and in every order of records, so repeated releases do not average it away.
    """
    size, weights = len(parameters.strata), record_weights(persons)
    omitted = np.bincount(events.strata, weights * ~events.offered, minlength=size)
    return noisy_shares(
        omitted,
        np.bincount(events.strata, weights, minlength=size),
        sum_by_stratum(events.strata, facts, size),
        rng,
        epsilon,
    )


def hash_facts(persons: UInt64s, values: UInt64s, offered: Bools) -> UInt64s:
    """Hash the person, the value and whether it is offered, per record; private, like the hashes of the persons."""
    facts = persons ^ ((values * np.uint64(2) + offered.astype(np.uint64) + np.uint64(1)) * _HASH_FACTOR)
    for shift in (30, 27, 31):
        facts = (facts ^ (facts >> np.uint64(shift))) * _HASH_FACTOR
    return facts


def sum_by_stratum(strata: UInt32s, facts: UInt64s, size: int) -> UInt64s:
    """Sum the hashes of the facts per stratum; the order of records does not matter."""
    sums = np.zeros(size, dtype=np.uint64)
    np.add.at(sums, strata, facts)
    return sums


def record_weights(persons: UInt64s) -> Floats:
    """Return the weight of each record: 1 / the number of its person's records."""
    _, who, times = np.unique(persons, return_inverse=True, return_counts=True)
    return np.asarray(1 / times[who.reshape(-1)])


def noisy_shares(
    omitted: Int64s | Floats, size: Int64s | Floats, sums: UInt64s, rng: Rng, epsilon: float
) -> list[float]:
    """Return the share of omitted persons in each stratum, with noise.

    A person counts in part where only some records are omitted, and integer noise would reveal the fraction. So counts are rounded
    at random with the fraction as probability: the mean is unchanged, and counts that differ by at most one still do.
    """
    keys = [rng.veil_key(f"veil eta {stratum} {total:x}") for stratum, total in enumerate(sums.tolist())]
    whole = np.floor(omitted + np.array([_uniform_number(key) for key in keys]))
    noisy = whole + np.concatenate([two_sided_geometric(key, 1, epsilon / 2) for key in keys])
    shares = np.where(size > 0, noisy / np.maximum(size, 1), 0)
    return [round(float(share), 6) for share in np.clip(shares, 0, 1)]


def _uniform_number(key: bytes) -> float:
    """Return a number from 0 to 1, the same for the same key."""
    return int.from_bytes(hashlib.shake_256(b"rounding" + key).digest(4), "little") / 2**32


def counts_epsilon(policy: Policy) -> float | None:
    """Return the epsilon of the noisy counts that a policy asks for, or None."""
    return None if policy.prior is None else policy.prior.counts


def refuse_counts(policy: Policy, kind: str) -> None:
    """Refuse noisy counts where the stated epsilon would not hold."""
    if counts_epsilon(policy) is None:
        return
    if kind != "table":
        raise PolicyError(
            f"prior.counts: not available for a release of kind {kind}: every further release of the same persons would cost epsilon again.",
            hint="Remove counts, or publish them once, with a table.",
        )
    if policy.household is not None:
        raise PolicyError(
            "prior.counts: noisy counts and a household cannot be combined: a value that members share would be counted several times.",
            hint="Remove counts, or remove household.",
        )


def noisy_counts(
    parameters: VeilParameters, persons: UInt64s, strata: UInt32s, values: Int32s, key: bytes, epsilon: float
) -> dict[str, Any]:
    """Return the noisy counts of first events for `veil.json`; refuses a person with two records, ignores the value -1."""
    if len(np.unique(persons)) < len(persons):
        raise PolicyError(
            "prior.counts: some persons have several records of their first event.",
            hint="Write person: {records: first}, or remove counts.",
        )
    shape = parameters.segments.shape
    known = values >= 0
    flat = strata[known].astype(np.int64) * shape[1] + values[known]
    exact = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
    noisy = add_noise(exact, epsilon, np.random.default_rng(list(key)))
    return {"epsilon": epsilon, "counts": noisy.tolist()}
