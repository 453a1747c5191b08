"""Veil a table on Spark: a column expression without state, because every person has one record.

The candidates of a record are a function of the veil key, the person, the value and the stratum. So each batch is
veiled by itself, and the batches together equal the release of one machine with the same store.

Guarantee: as in `reticent.engine.table.veil`. The verifier checks candidate sets, strata and columns of all rows on
    Spark.
Not covered: as there; persons in other publications of the store, because Spark adds nobody to its ledger and says so.
    It does not check for disclosive columns and does not report a prior that was fitted with a seed.
Cost: one pass for repeated persons, one for the omission rate, one for the verifier, one to write the result; Python on
    the executors. No state.
Reference: docs/veil.md.
Differences from the single machine: rows are sorted by their published cells; k, households, pseudonyms (`link`) and
    several records per person are refused.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's customary name
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
"""Halves of the hash that seeds the noise of the omission rate: their sums fit into Spark's integers."""
_LOW = np.uint64(0xFFFFFFFF)
_CHECKS = (
    "every candidate is a value of the domain",
    "candidates are in canonical order",
    "every record names a stratum of the prior",
    "every record is its person's only event",
    "the set of every first event is possible in its stratum",
)


def veil(rows: SparkRows, policy: Policy, store: Store | None) -> SparkRelease:
    """Veil every row; only the counts are evaluated here."""
    person = _check_policy(policy)
    if store is None:
        raise PolicyError(
            "The method veil needs a store for its key. Without it, the next release would veil the same persons again.",
            hint="Pass store=, and use the same store for all releases of your institution.",
        )
    if check_persons(rows, person):
        raise DataError(
            f"Column '{person}': a person has several records.", hint="Choose one record per person beforehand."
        )
    for name in policy.sensitive:
        refuse_variants(split_counts(rows.count_combinations([name]), [name])[0], policy)
    parameters = VeilParameters.of(policy, "table")
    rng = replace(Rng.fresh(), veil_secret=store.veil_key(parameters.pin_digest))
    veiled = _map_batches(rows.frame.select(*[quote_column(name) for name in policy.columns]), policy, rng)
    omitted, size, facts = _count_omissions(veiled, len(parameters.strata))
    if (omission_rate := float(omitted.sum() / max(1, size.sum()))) > MAX_OMISSION_RATE:
        raise GuaranteeError(
            f"{omission_rate:.0%} of the sensitive values would not be among their candidates; nothing was published.",
            hint="Fit the prior again to similar data, or use a coarser value domain.",
        )
    shares = noisy_shares(omitted, size, facts, rng, OMISSION_EPSILON)
    veil_guarantee, records = guarantee(parameters), int(size.sum())
    published = veiled.drop(_OFFERED, *_NOISE_FACTS)
    names = [quote_column(name) for name in published.columns]
    return SparkRelease(
        # The input order may follow something the attacker knows; the order of published cells discloses nothing more.
        frame=published.repartition(*names).sortWithinPartitions(*names),
        guarantee=replace(veil_guarantee, not_covered=(*veil_guarantee.not_covered, NOT_IN_LEDGER)),
        records=RecordCounts(records, records, 0, 0),
        policy_hash=policy.hash,
        metadata={
            "veil": parameters.to_metadata()
            | {
                "omission_rate": shares,
                "omission_rate_epsilon": OMISSION_EPSILON,
                "parameters_digest": parameters.digest,
            }
        },
        shape="veil",
        method=METHOD,
    )


def _check_policy(policy: Policy) -> str:
    settings = policy.prior
    if policy.person is None:
        raise PolicyError(
            "The veil on Spark needs a person column.", hint="Add person: with the identifier column to the policy."
        )
    if policy.privacy.k is not None:
        raise PolicyError("Spark does not support k with the veil.", hint="Remove k from the policy.")
    if settings is not None and (settings.household or settings.link):
        raise PolicyError(
            "Spark does not support households and pseudonyms with the veil.",
            hint="Remove household and link from prior.",
        )
    return policy.person


def _count_omissions(
    frame: DataFrame, strata: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return per stratum the number of omitted true values, the number of records, and the sum of the noise facts."""
    sums = (F.sum(F.when(F.col(_OFFERED), 0).otherwise(1)).alias("lost"), F.count(F.lit(1)).alias("size"))
    counts = frame.groupBy("stratum").agg(*sums, *(F.sum(half).alias(half) for half in _NOISE_FACTS)).toArrow()
    at, totals = counts.column("stratum").to_numpy(), np.zeros((4, strata), np.int64)
    for place, name in enumerate(("lost", "size", *_NOISE_FACTS)):
        totals[place, at] = counts.column(name).to_numpy()
    low, high = totals[2:].astype(np.uint64)
    return totals[0], totals[1], low + (high << np.uint64(32))


def _map_batches(frame: DataFrame, policy: Policy, rng: Rng) -> DataFrame:
    bundle = pack_policy(policy)
    empty = to_arrow_schema(frame.schema).empty_table()
    schema = _veil_batch(bundle, rng, empty, None).schema
    return frame.mapInArrow(make_veil(bundle, rng, schema), from_arrow_schema(schema))


def make_veil(bundle: bytes, rng: Rng, schema: pa.Schema) -> Batches:
    """Return the executors' function that veils batches; the key stays inside, so that no query plan shows it."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _veil_batch(bundle, rng, pa.Table.from_batches([batch]), schema).to_batches()

    return work


def _veil_batch(bundle: bytes, rng: Rng, table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    parameters, core = _load_parameters(bundle, rng)
    assert parameters.policy.person is not None  # noqa: S101 - checked on the driver
    persons = hash_persons(table.column(parameters.policy.person), rng, parameters.policy.person)
    published, rows = parameters.levels.publish(table)
    values = parameters.domain.encode(table.column(parameters.sensitive))
    events = _core.veil.People(core).add_events(persons, persons, rows, values)
    data = data_table(parameters, published, events, np.arange(table.num_rows))
    facts = hash_facts(persons, values.astype(np.uint64), events.offered)
    more = {_OFFERED: events.offered, **dict(zip(_NOISE_FACTS, (facts & _LOW, facts >> np.uint64(32)), strict=True))}
    for name, cells in more.items():
        data = data.append_column(name, pa.array(cells if name == _OFFERED else cells.astype(np.int64)))
    if schema is None:  # an empty column has no type
        kinds = {field.name: field.type for field in table.schema}
        return data.cast(
            pa.schema(
                [(f.name, kinds.get(f.name, pa.string()) if pa.types.is_null(f.type) else f.type) for f in data.schema]
            )
        )
    return data.cast(schema)


@functools.lru_cache(maxsize=4)
def _load_parameters(bundle: bytes, rng: Rng) -> tuple[VeilParameters, Veil]:
    """Return the parameter set with its cumulative lines, once per process."""
    parameters = VeilParameters.of(unpack_policy(bundle), "table")
    return parameters, parameters.veil(rng.veil_key("veil"))


def verify_frame(
    frame: DataFrame, policy: Policy, metadata: Mapping[str, Any], claims: Mapping[str, Any], counts: RecordCounts
) -> VerificationResult:
    """Run the verifier on a veiled release: on its parameters here, on its records on Spark."""
    line = PossibleSets(metadata).line
    release = Published("", "veil", kind="table", claims=claims)
    findings = [*line_findings(line, policy, release), *prior_findings(line, metadata, policy)]
    own = {"stratum", "event", *(f"{line.sensitive}_{slot}" for slot in range(1, line.l + 1))}
    allowed = {*own, *policy.quasi, *policy.plain}
    findings += [
        none_of("only columns that the policy releases are published", len(set(frame.columns) - allowed)),
        none_of("row, event, l candidates and all fields are there", len(allowed - set(frame.columns))),
    ]
    if not all(finding.holds for finding in findings):  # sets cannot be checked against an invalid line
        return VerificationResult(tuple(findings))
    names = [f"offenses{at}" for at in range(len(_CHECKS))]
    schema = ", ".join(f"{name} long" for name in [*names, _RECORDS])
    sums_frame = frame.select(*[quote_column(name) for name in sorted(own)]).mapInArrow(
        make_verifier(dict(metadata)), schema
    )
    sums = sums_frame.agg(*[F.sum(name) for name in [*names, _RECORDS]]).collect()[0]
    offenses = [int(number or 0) for number in sums]
    findings += [none_of(claim, number) for claim, number in zip(_CHECKS, offenses, strict=False)]
    findings += check_counts(vars(counts), offenses[-1], None)
    return VerificationResult(tuple(findings), (), unchecked_claims(claims, ("veil", "l", "k")))


def make_verifier(metadata: dict[str, Any]) -> Batches:
    """Return the verifier's function for the executors: published records in, counts of offenses out."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        possible = PossibleSets(metadata)
        for batch in batches:
            yield _count_offenses(possible, text_table(pa.Table.from_batches([batch])))

    return work


def _count_offenses(possible: PossibleSets, data: pa.Table) -> pa.RecordBatch:
    line = possible.line
    candidates, rows, events = candidate_codes(line, data), whole_numbers(data["stratum"]), whole_numbers(data["event"])
    unknown = (candidates < 0).any(axis=1)
    no_stratum = (rows < 0) | (rows >= len(line.strata))
    valid = ~(unknown | no_stratum)
    numbers = [
        unknown.sum(),
        (np.diff(candidates, axis=1) < 0).any(axis=1).sum(),
        no_stratum.sum(),
        (events != 0).sum(),
        possible.count_impossible_sets(candidates[valid], rows[valid]) if valid.any() else 0,
        data.num_rows,
    ]
    names = [*(f"offenses{at}" for at in range(len(_CHECKS))), _RECORDS]
    return pa.RecordBatch.from_arrays([pa.array([int(number)], pa.int64()) for number in numbers], names=names)
