"""Veiled records as a release: published columns, row, event and candidates; and `veil.json` beside them.

Noisy totals say how many first sights of each row of the prior have each value, for recipients to calibrate their counts by.

Guarantee of the totals (to each released person, against a reader who knows everybody else's record): with one record per person, another
    value moves two counts by one, so noise of scale 2 / epsilon makes the table epsilon-differentially private: a weight a becomes
    at most a e^epsilon / (a e^epsilon + 1 - a).
Not covered: a second table of totals over the same persons: epsilon adds, so the ledger lets them stand in no other publication.
Cost: two draws per row and value.
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
    """What a veil claims, and against whom, with the figures that were measured when its prior was made."""
    k = claims(parameters.policy).get("k")
    left_open = (
        (*_list_exclusions(parameters), *VEIL)
        if parameters.policy.household is None
        else (*_list_exclusions(parameters), *VEIL, HOUSEHOLD)
    )
    if k is None:
        return Guarantee({"veil": parameters.l}, AGAINST["veil"], (*left_open, SINGLING_OUT))
    return Guarantee({"veil": parameters.l, "k": k}, AGAINST["veil"], (*left_open, LINKED))


def _list_exclusions(parameters: VeilParameters) -> list[str]:
    figures = parameters.figures or {}
    return [
        _odds_ratio_sentence(figures),
        _kernel_sentence(parameters, figures),
        *_epsilon_sentences(parameters),
        _omission_sentence(figures),
    ]


def _odds_ratio_sentence(figures: dict[str, Any]) -> str:
    bound = "a reader better informed than the prior by a factor kappa: a weight a becomes at most kappa a / (kappa a + 1 - a)"
    if "odds_ratio" not in figures:
        return f"{bound}; nobody measured how far readers are ahead of this prior"
    kappa, reader = figures["odds_ratio"], figures["attacker"]
    before, after = reader["before"], reader["after"]
    return (
        f"{bound}; on {figures['held_out']} held-out persons of the past the best reader we trained reached kappa "
        f"{kappa['mean']:.3g} (geometric mean; 99th percentile {kappa['99']:.3g}), believed her best guess with {after['sure']:.1%} "
        f"(99th percentile {after['sure_99']:.1%}) and was right in {after['right']:.1%} of the cases, in {before['right']:.1%} "
        f"without the release, at l = {figures['l']}"
    )


def _kernel_sentence(parameters: VeilParameters, figures: dict[str, Any]) -> str:
    if parameters.kernel is None:
        return "later values of a person that differ from the first: they are not offered, as there is no kernel"
    words = "values of a person that follow one another otherwise than the published kernel says"
    kernel = figures.get("kernel")
    if not kernel or not kernel["misfit"]:
        return f"{words}; nobody measured how far it is from the truth"
    readers = "".join(
        f"; after {one['events']} events one who knows a finer kernel is right in {one['right']:.1%} of {one['persons']} "
        f"held-out persons, one who knows the published kernel in {one['published']:.1%}"
        for one in kernel["attackers"]
    )
    return f"{words}; its misfit on held-out persons was {kernel['misfit']['gain']:.3g} nats per event{readers}"


def _epsilon_sentences(parameters: VeilParameters) -> list[str]:
    """What was counted on persons of the past, and on the released ones: epsilon adds up over both tables of the latter."""
    spent, words = [], []
    if parameters.epsilon is not None and (parameters.figures or {}).get("source") == "released":
        spent.append(("the prior was", parameters.epsilon))
    elif parameters.epsilon is not None:
        words = [f"persons of the past whom the prior was counted on: it cost them epsilon = {parameters.epsilon:g}"]
    if (asked := counts_epsilon(parameters.policy)) is not None:
        spent.append(("totals by row and value were", asked))
    if not spent:
        return words
    names = " and ".join(what for what, _ in spent)
    epsilon = sum(each for _, each in spent)
    where = f"a reader who knows all other records: {names} counted on the released persons themselves, with noise of"
    bound = "so that a weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a)"
    return [*words, f"{where} epsilon = {epsilon:g}, {bound}"]


def _omission_sentence(figures: dict[str, Any]) -> str:
    share = f"about {figures['omission_rate']:.1%} on held-out persons, and " if "omission_rate" in figures else ""
    return f"truths that are not among their candidates: {share}veil.json says which share, with noise"


def data_table(
    parameters: VeilParameters,
    published: pa.Table,
    events: VeiledEvents | _core.veil.VeiledEvents,
    row_order: Int64s,
    names: pa.Array | None = None,
) -> pa.Table:
    """The published table, its records in the given order; with pseudonyms of the persons where they are linked."""
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
    """A name for each person that says nothing but who is the same."""
    whole, who = np.unique(persons, return_inverse=True)
    names = [hashlib.blake2b(person.tobytes(), key=key, digest_size=8).hexdigest() for person in whole]
    return pa.array(names, pa.string()).take(pa.array(who.reshape(-1)))


def random_order(size: int, rng: Rng, purpose: str) -> Int64s:
    """An order that tells nothing."""
    return _core.random.permutation(size, key=rng.key(purpose))


def omission_rates(
    parameters: VeilParameters, events: VeiledEvents, persons: UInt64s, facts: UInt64s, rng: Rng, epsilon: float
) -> list[float]:
    """Per row of the prior the share of truths that are not offered, each person counting once, with two-sided geometric noise.

    A person stands in one row, whatever number of records he or she has there. Another person in that place moves two counts by one
    at most, so noise of scale 2 / epsilon costs epsilon. It is a function of the row's `facts` under the key of the house: asked for again,
    by whatever run and in whatever order of records, the same truth has the same noise, which nobody can average away.
    """
    rows, weights = len(parameters.strata), record_weights(persons)
    lost = np.bincount(events.strata, weights * ~events.offered, minlength=rows)
    return noisy_shares(
        lost,
        np.bincount(events.strata, weights, minlength=rows),
        sum_by_stratum(events.strata, facts, rows),
        rng,
        epsilon,
    )


def hash_facts(persons: UInt64s, values: UInt64s, offered: Bools) -> UInt64s:
    """A number for whose value each record tells, and whether it is offered; private, like the hashes of the persons."""
    facts = persons ^ ((values * np.uint64(2) + offered.astype(np.uint64) + np.uint64(1)) * _HASH_FACTOR)
    for shift in (30, 27, 31):
        facts = (facts ^ (facts >> np.uint64(shift))) * _HASH_FACTOR
    return facts


def sum_by_stratum(strata: UInt32s, facts: UInt64s, size: int) -> UInt64s:
    """What all facts of a row of the prior come to, in whatever order."""
    sums = np.zeros(size, dtype=np.uint64)
    np.add.at(sums, strata, facts)
    return sums


def record_weights(persons: UInt64s) -> Floats:
    """The part of its person that each record is."""
    _, who, times = np.unique(persons, return_inverse=True, return_counts=True)
    return np.asarray(1 / times[who.reshape(-1)])


def noisy_shares(
    omitted: Int64s | Floats, size: Int64s | Floats, sums: UInt64s, rng: Rng, epsilon: float
) -> list[float]:
    """Shares of lost persons among all, row by row, with the noise of `eta`.

    Persons count in parts where some of their records are lost, and noise in whole steps would leave the part to be read. They are rounded by
    chance, up as often as the part is large: the mean stays, and numbers that differ by one at most still do.
    """
    keys = [rng.veil_key(f"veil eta {row} {total:x}") for row, total in enumerate(sums.tolist())]
    whole = np.floor(omitted + np.array([_uniform_number(key) for key in keys]))
    noisy = whole + np.concatenate([two_sided_geometric(key, 1, epsilon / 2) for key in keys])
    shares = np.where(size > 0, noisy / np.maximum(size, 1), 0)
    return [round(float(share), 6) for share in np.clip(shares, 0, 1)]


def _uniform_number(key: bytes) -> float:
    """A number from 0 to 1, the same for the same key."""
    return int.from_bytes(hashlib.shake_256(b"rounding" + key).digest(4), "little") / 2**32


def counts_epsilon(policy: Policy) -> float | None:
    """The epsilon of the totals that a policy asks for, if it does."""
    return None if policy.prior is None else policy.prior.counts


def refuse_counts(policy: Policy, kind: str) -> None:
    """Refuses totals where epsilon would not stay what is stated."""
    if counts_epsilon(policy) is None:
        return
    if kind != "table":
        raise PolicyError(
            f"prior.totals: a release of kind {kind} has none: every further release of the same persons would cost epsilon anew.",
            hint="Take totals out, or publish them once, with a table.",
        )
    if policy.household is not None:
        raise PolicyError(
            "prior.totals: a unit and totals do not go together: a value that relatives share would be counted several times.",
            hint="Take totals out, or the unit.",
        )


def noisy_counts(
    parameters: VeilParameters, persons: UInt64s, strata: UInt32s, values: Int32s, key: bytes, epsilon: float
) -> dict[str, Any]:
    """The noisy table of first sights, as `veil.json` holds it; refuses persons who would be counted twice. The value -1 counts nowhere."""
    if len(np.unique(persons)) < len(persons):
        raise PolicyError(
            "prior.totals: some persons have several records of their first event.",
            hint="Write person: {records: first}, or take totals out.",
        )
    shape = parameters.segments.shape
    known = values >= 0
    flat = strata[known].astype(np.int64) * shape[1] + values[known]
    exact = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
    noisy = add_noise(exact, epsilon, np.random.default_rng(list(key)))
    return {"epsilon": epsilon, "counts": noisy.tolist()}
