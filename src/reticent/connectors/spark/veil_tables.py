"""The veil over a table on Spark: a column expression without state, since everybody has one record.

What is offered for a record is a function of the house's key, the person, the value and the row of the prior alone, so each batch
is veiled by itself, and all together are what one machine with the same store would publish.

Guarantee: that of `reticent.engine.table.veil`. The auditor's checks of sets, rows and columns run on Spark, over all published rows.
Not covered: as there; and persons who stand in other publications of the store: Spark puts nobody into its ledger, and says so. Columns
    that tell the value are not looked for, and a prior that was made with a seed is not told.
Cost: one pass for repeated persons, one for the share of truths that are not offered, one for the judge, one when the result is
    written; Python on the executors. No state.
Reference: docs/veil.md.
Differences from the single machine: rows stand in the order of their published cells; k, units, pseudonyms (`link`) and several
    records of a person are refused.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every user of Spark knows
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from reticent import _core
from reticent.connectors.pushdown.rows import split_counts
from reticent.connectors.pushdown.tables import check_persons, refuse_variants
from reticent.connectors.spark.policy_bundle import pack_policy, unpack_policy
from reticent.connectors.spark.rows import SparkRelease, quote_column
from reticent.engine.rng import Rng
from reticent.engine.veil.batch_veiler import MAX_OMISSION_RATE, OMISSION_EPSILON, hash_persons
from reticent.engine.veil.parameters import VeilParameters
from reticent.engine.veil.release import data_table, guarantee, hash_facts, noisy_shares
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.release import RecordCounts
from reticent.release.wording import NOT_IN_LEDGER
from reticent.verify.generalized import check_counts, unchecked_claims
from reticent.verify.published import Published, text_table
from reticent.verify.result import VerificationResult, none_of
from reticent.verify.veil.possible_sets import PossibleSets
from reticent.verify.veil.verifier import candidate_codes, line_findings, prior_findings, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt

    from reticent._core.veil import Veil
    from reticent.connectors.spark.rows import SparkRows
    from reticent.policy import Policy
    from reticent.store import Store

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

METHOD = "veil"
_OFFERED, _RECORDS = "__offered", "__records"
_NOISE_FACTS = ("__fact_low", "__fact_high")
"""Halves of what the noise of eta is a function of: their sums fit in what Spark counts with."""
_LOW = np.uint64(0xFFFFFFFF)
_CHECKS = (
    "every candidate is a value of the domain",
    "candidates are in canonical order",
    "every record names a stratum of the prior",
    "every record is its person's only event",
    "the set of every first event is possible in its stratum",
)


def veil(rows: SparkRows, policy: Policy, store: Store | None) -> SparkRelease:
    """Veils every row; nothing is evaluated but the counts."""
    person = _check_policy(policy)
    if store is None:
        raise PolicyError(
            "The method veil needs a store for its key: without it the same persons would be veiled anew next time.",
            hint="Give store=: one that this house keeps, and uses for all its releases.",
        )
    if check_persons(rows, person):
        raise DataError(
            f"Column '{person}': somebody has several records.", hint="Choose one per person in the frame before."
        )
    for name in policy.sensitive:
        refuse_variants(split_counts(rows.count_combinations([name]), [name])[0], policy)
    house = VeilParameters.of(policy, "table")
    rng = replace(Rng.fresh(), veil_secret=store.veil_key(house.pin_digest))
    whole_ = _map_batches(rows.frame.select(*[quote_column(name) for name in policy.columns]), policy, rng)
    lost, size, facts = _count_omissions(whole_, len(house.strata))
    if (unseen := float(lost.sum() / max(1, size.sum()))) > MAX_OMISSION_RATE:
        raise GuaranteeError(
            f"{unseen:.0%} of the sensitive values are not offered by the prior; nothing was published.",
            hint="Make the prior again from data like these, or with a coarser domain.",
        )
    shares = noisy_shares(lost, size, facts, rng, OMISSION_EPSILON)
    told, records = guarantee(house), int(size.sum())
    published = whole_.drop(_OFFERED, *_NOISE_FACTS)
    names = [quote_column(name) for name in published.columns]
    return SparkRelease(
        # The order of the input may follow something a reader knows; that of the published cells tells what they tell.
        frame=published.repartition(*names).sortWithinPartitions(*names),
        guarantee=replace(told, not_covered=(*told.not_covered, NOT_IN_LEDGER)),
        counts=RecordCounts(records, records, 0, 0),
        policy_hash=policy.hash,
        metadata={
            "veil": house.to_metadata()
            | {"omission_rate": shares, "omission_rate_epsilon": OMISSION_EPSILON, "parameters_digest": house.digest}
        },
        shape="veil",
        method=METHOD,
    )


def _check_policy(policy: Policy) -> str:
    settings = policy.prior
    if policy.person is None:
        raise PolicyError(
            "The veil on Spark needs to know who is who.", hint="Write person: and the identifier column."
        )
    if policy.privacy.k is not None:
        raise PolicyError("Spark keeps no k under the veil.", hint="Take k out of the policy.")
    if settings is not None and (settings.household or settings.link):
        raise PolicyError("Spark veils persons one by one, without pseudonyms.", hint="Leave unit and link out.")
    return policy.person


def _count_omissions(
    frame: DataFrame, strata: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Per row of the prior how many truths are not offered, how many records there are, and what their facts come to."""
    sums = (F.sum(F.when(F.col(_OFFERED), 0).otherwise(1)).alias("lost"), F.count(F.lit(1)).alias("size"))
    counted = frame.groupBy("stratum").agg(*sums, *(F.sum(half).alias(half) for half in _NOISE_FACTS)).toArrow()
    at, whole = counted.column("stratum").to_numpy(), np.zeros((4, strata), np.int64)
    for place, name in enumerate(("lost", "size", *_NOISE_FACTS)):
        whole[place, at] = counted.column(name).to_numpy()
    low, high = whole[2:].astype(np.uint64)
    return whole[0], whole[1], low + (high << np.uint64(32))


def _map_batches(frame: DataFrame, policy: Policy, rng: Rng) -> DataFrame:
    bundle = pack_policy(policy)
    empty = to_arrow_schema(frame.schema).empty_table()
    schema = _veil_batch(bundle, rng, empty, None).schema
    return frame.mapInArrow(make_veil(bundle, rng, schema), from_arrow_schema(schema))


def make_veil(bundle: bytes, rng: Rng, schema: pa.Schema) -> Batches:
    """What the executors run: records in, veiled records out. The key stays inside: it must not show up in a query plan."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _veil_batch(bundle, rng, pa.Table.from_batches([batch]), schema).to_batches()

    return work


def _veil_batch(bundle: bytes, rng: Rng, table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    house, core = _load_parameters(bundle, rng)
    assert house.policy.person is not None  # noqa: S101 - checked on the driver
    persons = hash_persons(table.column(house.policy.person), rng, house.policy.person)
    published, rows = house.levels.publish(table)
    values = house.domain.encode(table.column(house.sensitive))
    seen = _core.veil.People(core).add_events(persons, persons, rows, values)
    data = data_table(house, published, seen, np.arange(table.num_rows))
    facts = hash_facts(persons, values.astype(np.uint64), seen.offered)
    more = {_OFFERED: seen.offered, **dict(zip(_NOISE_FACTS, (facts & _LOW, facts >> np.uint64(32)), strict=True))}
    for name, cells in more.items():
        data = data.append_column(name, pa.array(cells if name == _OFFERED else cells.astype(np.int64)))
    if schema is None:  # columns without a value have no type of their own
        kinds = {field.name: field.type for field in table.schema}
        return data.cast(
            pa.schema(
                [(f.name, kinds.get(f.name, pa.string()) if pa.types.is_null(f.type) else f.type) for f in data.schema]
            )
        )
    return data.cast(schema)


@functools.lru_cache(maxsize=4)
def _load_parameters(bundle: bytes, rng: Rng) -> tuple[VeilParameters, Veil]:
    """The house with its lines, once per process."""
    house = VeilParameters.of(unpack_policy(bundle), "table")
    return house, house.veil(rng.veil_key("veil"))


def verify_frame(
    frame: DataFrame, policy: Policy, metadata: Mapping[str, Any], claims: Mapping[str, Any], counts: RecordCounts
) -> VerificationResult:
    """The auditor's checks of a veiled release: of its line here, of its records on Spark."""
    line = PossibleSets(metadata).line
    release = Published("", "veil", kind="table", claims=claims)
    findings = [*line_findings(line, policy, release), *prior_findings(line, metadata, policy)]
    own = {"stratum", "event", *(f"{line.sensitive}_{slot}" for slot in range(1, line.l + 1))}
    allowed = {*own, *policy.quasi, *policy.plain}
    findings += [
        none_of("only columns that the policy releases are published", len(set(frame.columns) - allowed)),
        none_of("row, event, l candidates and all fields are there", len(allowed - set(frame.columns))),
    ]
    if not all(finding.holds for finding in findings):  # no sets can be told from such a line
        return VerificationResult(tuple(findings))
    names = [f"offences{at}" for at in range(len(_CHECKS))]
    schema = ", ".join(f"{name} long" for name in [*names, _RECORDS])
    told = frame.select(*[quote_column(name) for name in sorted(own)]).mapInArrow(make_verifier(dict(metadata)), schema)
    sums = told.agg(*[F.sum(name) for name in [*names, _RECORDS]]).collect()[0]
    offences = [int(number or 0) for number in sums]
    findings += [none_of(claim, number) for claim, number in zip(_CHECKS, offences, strict=False)]
    findings += check_counts(vars(counts), offences[-1], None)
    return VerificationResult(tuple(findings), (), unchecked_claims(claims, ("veil", "l", "k")))


def make_verifier(metadata: dict[str, Any]) -> Batches:
    """What the executors run of the judge: published records in, counts of offences out."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        possible = PossibleSets(metadata)
        for batch in batches:
            yield _count_offenses(possible, text_table(pa.Table.from_batches([batch])))

    return work


def _count_offenses(possible: PossibleSets, data: pa.Table) -> pa.RecordBatch:
    line = possible.line
    listed, rows, events = candidate_codes(line, data), whole_numbers(data["stratum"]), whole_numbers(data["event"])
    strangers = (listed < 0).any(axis=1)
    nowhere = (rows < 0) | (rows >= len(line.strata))
    sound = ~(strangers | nowhere)
    numbers = [
        strangers.sum(),
        (np.diff(listed, axis=1) < 0).any(axis=1).sum(),
        nowhere.sum(),
        (events != 0).sum(),
        possible.count_impossible_sets(listed[sound], rows[sound]) if sound.any() else 0,
        data.num_rows,
    ]
    names = [*(f"offences{at}" for at in range(len(_CHECKS))), _RECORDS]
    return pa.RecordBatch.from_arrays([pa.array([int(number)], pa.int64()) for number in numbers], names=names)
