"""Try-outs: a table under a policy, measured in a process of its own and then forgotten; nothing of it is published."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow.compute as pc

from reticent.disk import set_idle_priority
from reticent.errors import DataError, WorkCancelledError
from reticent.policy.bundle import Bundle
from reticent.service.child_process import ChildProcess
from reticent.service.problems import ServiceError, to_service_error
from reticent.service.releases import first_rows
from reticent.service.uploads import read_upload

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import pyarrow as pa

    from reticent.policy import Policy
    from reticent.read.received import Received
    from reticent.release import Guarantee, Release
    from reticent.report.reconstruction import Reconstruction

GROUP_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)
"""Sizes of groups that the curve of risk is drawn for."""
_BARS = 12
_ROWS = 8
_MAX_VALUES = 200
"""Different values up to which a veiled draft is asked: the estimator inverts a matrix of that size per stratum."""
_MIN_RECORDS = 20
"""Records that a value has at least whose count is asked for."""
_POLL_SECONDS = 0.2
"""Seconds between two looks at whether a try-out is still wanted."""


def measure_in_subprocess(
    data: bytes, bundle: bytes, kind: str = "table", *, is_cancelled: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """The figures of a table under a policy, both as they were sent; the process ends once `unwanted`, asked again and again, says so.

    Raises:
        ServiceError: the policy cannot be met, or does not fit the table.
        UnwantedError: nobody wants them any more.
    """
    apart = ChildProcess(_run_measurement, data, bundle, kind)
    try:
        while not apart.pipe.poll(_POLL_SECONDS):
            if is_cancelled():
                raise WorkCancelledError("The try-out was not wanted any more.")
        answer: tuple[dict[str, Any], ServiceError | None] = apart.pipe.recv()
    except (EOFError, OSError):
        words = "The try-out ended early, perhaps for want of memory."
        raise ServiceError(500, "draft", words, "Try fewer rows.") from None
    finally:
        apart.end()
    figures, problem = answer
    if problem is not None:
        raise problem
    return figures


def _run_measurement(link: Connection, data: bytes, bundle: bytes, kind: str) -> None:
    """The other side."""
    set_idle_priority()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries may quote what they warn of
    try:
        with tempfile.TemporaryDirectory(prefix="reticent-try-") as folder:
            policy = Bundle.from_bytes(bundle).unpack(Path(folder))
            link.send((measure(read_upload(data), policy, kind), None))
    except Exception as error:  # noqa: BLE001 - it is told on the other side
        link.send((None, to_service_error(error)))


def measure(table: pa.Table, policy: Policy, kind: str = "table") -> dict[str, Any]:
    """What a release of the table would show and cost; the same measures for every kind and method, no column weighted."""
    policy.check_columns(table.column_names)
    if kind == "stream":
        return _stream_figures(table, policy)
    return _release_figures(table, policy, _publish_draft(table, policy, kind))


def _publish_draft(table: pa.Table, policy: Policy, kind: str) -> Release:
    """A first release in a store that goes at once, with a house of its own."""
    from reticent.publication import table as tables
    from reticent.publication.evolving import Evolving
    from reticent.publication.series import Series
    from reticent.store import Store

    if kind == "table":
        # A seed of its own: a draft under the veil must not begin a house.
        return tables.publish(table, policy, seed=secrets.randbits(32)).release
    name = f"{kind}:draft"
    with tempfile.TemporaryDirectory(prefix="reticent-try-") as folder, Store.open(Path(folder) / "store.db") as store:
        store.register(name, policy_hash=policy.hash)
        with store.lock(name):
            if kind == "series":
                return Series(store, policy, name=name).publish(table).release
            evolving = Evolving(store, policy, name=name)
            evolving.push(table)
            return evolving.publish().release


def _stream_figures(table: pa.Table, policy: Policy) -> dict[str, Any]:
    """The sample as a stream would release it, record by record; what is held back at its end stays held."""
    from reticent.publication.stream import StreamPublication
    from reticent.read.received import Received
    from reticent.read.wire import from_lines

    publication = StreamPublication(policy)
    batch = publication.reader.table(table)
    if batch.rejected:
        row, reason, _ = batch.rejected[0]
        raise DataError(f"Record {row + 1}: {reason}.", hint="A stream refuses such a batch; correct the sample.")
    released = publication.take(batch)
    lines = (released.lines + released.late_lines).decode().splitlines()
    engine = publication.engine
    figures = _base_figures(policy.stream.method, engine.guarantee, asdict(engine.counts), table, policy)
    if lines:
        received = Received.of(from_lines(lines, orjson.loads(publication.codebook())))
        figures |= {
            "count_error": _count_error(received, table, policy, policy.stream.method),
            "preview": _line_preview(lines),
        }
        figures["guess"] = _veiled_guess(received)
    return figures | {"metrics": {name: float(value) for name, value in engine.metrics.items()}}


def _line_preview(lines: list[str]) -> dict[str, Any]:
    records = [record for record in map(orjson.loads, lines[: 8 * _ROWS]) if record["type"] != "group"][:_ROWS]
    names = list(records[0]["quasi"]) if records else []
    said = [" / ".join(map(str, r.get("candidates", ()))) or str(r.get("group") or r.get("sensitive")) for r in records]
    rows = [[*(str(r["quasi"].get(n)) for n in names), words] for r, words in zip(records, said, strict=True)]
    return {"names": [*names, "offered"], "rows": rows}


def _base_figures(
    method: str, guarantee: Guarantee, counts: dict[str, Any], table: pa.Table, policy: Policy
) -> dict[str, Any]:
    """What every draft has; a measure that its kind or method does not have is None, or empty."""
    from reticent.audit.risk.assessment import initial_risk
    from reticent.verify.published import text_table

    text = text_table(table)
    return {
        "method": method,
        "claims": dict(guarantee.claims),
        "against": guarantee.against,
        "not_covered": list(guarantee.not_covered),
        "records": counts,
        "loss": None,
        "guess": None,
        "risk": None,
        "before": asdict(initial_risk(text, policy)) if policy.quasi else None,
        "curve": {"before": _risk_curve(text, policy), "now": []},
        "query_error": {},
        "model": {},
        "columns": [],
        "distributions": {},
        "neighbors": [],
        "count_error": {},
        "metrics": {},
        "preview": {"names": [], "rows": []},
    }


def _count_error(received: Received, table: pa.Table, policy: Policy, method: str) -> dict[str, float]:
    """How far a recipient's counts of the more frequent values are off, by what was published alone."""
    if method == "veil" and len(received.values) > _MAX_VALUES:
        return {}
    if method == "veil" and policy.person is not None:  # of a person's records it counts the first
        who = table.column(policy.person).cast("string").to_numpy(zero_copy_only=False)
        table = table.take(np.sort(np.unique(who.astype(str), return_index=True)[1]))
    values = pc.value_counts(table[policy.sensitive[0]].cast("string")).to_pylist()
    often = {str(one["values"]): one["counts"] for one in values}
    name = received.sensitive
    rows = received.count(None, [], [name]).to_list()
    known = [(row, often[str(row[name])]) for row in rows if often.get(str(row[name]), 0) >= _MIN_RECORDS]
    if not known:
        return {}
    error = np.median([abs(row["estimate"] - truth) / truth for row, truth in known])
    width = np.median([(row["high"] - row["low"]) / 2 / truth for row, truth in known])
    return {"error": float(error), "half_width": float(width), "values": float(len(known))}


def _veiled_guess(received: Received) -> float | None:
    """How often the candidate with the most copies is right, by the weights that the veil states; None without a veil."""
    table = received.shape.table
    slots = [table.column(name) for name in table.column_names if name.startswith(f"{received.sensitive}_")]
    if not slots or not table.num_rows:
        return None
    cells = np.array([slot.cast("string").to_numpy(zero_copy_only=False) for slot in slots], dtype=object)
    copies = np.max([(cells == cell).sum(axis=0) for cell in cells], axis=0)
    return float(copies.mean() / len(slots))


def _release_figures(table: pa.Table, policy: Policy, release: Release) -> dict[str, Any]:
    from reticent.audit.attack import Evidence
    from reticent.audit.attack.homogeneity import homogeneity
    from reticent.audit.risk import assess
    from reticent.read.received import read
    from reticent.report.reconstruction import reconstruct
    from reticent.report.utility import utility
    from reticent.verify.published import read_release, text_table

    text = text_table(table)
    seen = read_release(release, "draft")
    guess = homogeneity(Evidence((seen,), policy))
    useful = utility([seen], text, policy, np.random.default_rng(0))
    beside = reconstruct(seen, text, policy)
    losses = {name: float(one["loss"]) for name, one in useful.get("attributes", {}).items()}
    asked, veiled = {}, None
    if policy.sensitive:
        with tempfile.TemporaryDirectory(prefix="reticent-try-") as folder:
            received = read(release.to_dir(Path(folder) / "release", format="parquet"))
            asked, veiled = _count_error(received, table, policy, release.method), _veiled_guess(received)
    return _base_figures(release.method, release.guarantee, asdict(release.records), table, policy) | {
        "loss": float(np.mean(list(losses.values()))) if losses else _stated_loss(policy, release),
        "guess": guess.accuracy if guess else veiled,
        "risk": asdict(assess(seen, policy).prosecutor),
        "count_error": asked,
        "curve": {"before": _risk_curve(text, policy), "now": _risk_curve(_person_table(release), policy)},
        "query_error": useful.get("query_error", {}),
        "model": useful.get("classifier", {}),
        "columns": _column_figures(table, release, policy, losses),
        "distributions": _distributions(beside, policy) if beside and policy.sensitive else {},
        "neighbors": _neighbors(table, policy, release),
        "preview": _row_preview(release),
    }


def _stated_loss(policy: Policy, release: Release) -> float | None:
    """What the release says itself, where there is no sensitive value to measure beside and no column weighs more than another."""
    known = not policy.sensitive and not policy.table.weights
    return release.metrics.get("loss") if known else None


def _person_table(release: Release) -> pa.Table:
    """The table of a release that shows persons."""
    return release.tables.get("data", release.tables.get("qit", next(iter(release.tables.values()))))


def _risk_curve(table: pa.Table, policy: Policy) -> list[float]:
    """Share of the records that are found with at least a chance of 1/1, 1/2, 1/3 and so on, as `SIZES` says."""
    from reticent.verify.groups import number_rows

    names = [name for name in policy.quasi if name in table.column_names]
    if not names or not table.num_rows:
        return [0.0] * len(GROUP_SIZES)
    rows, size = number_rows(table.select(names), names)
    mates = np.bincount(rows, minlength=size)[rows]
    return [round(float((mates <= limit).mean()), 4) for limit in GROUP_SIZES]


def _column_figures(
    table: pa.Table, release: Release, policy: Policy, losses: dict[str, float]
) -> list[dict[str, Any]]:
    """Per column: its role, how many different values before and after, at which level, at which loss."""
    levels = release.explain.get("attributes", {})
    places = {name: shown for shown in release.tables.values() for name in shown.column_names}
    return [
        {
            "name": name,
            "role": column.role,
            "before": len(table.column(name).unique()),
            "after": len(places[name].column(name).unique()) if name in places else None,
            "level": levels.get(name, {}).get("level"),
            "height": levels.get(name, {}).get("height"),
            "loss": losses.get(name),
        }
        for name, column in policy.columns.items()
    ]


def _distributions(reconstruction: Reconstruction, policy: Policy) -> dict[str, Any]:
    """Shares of values before, and after as a reader would reconstruct them; numbers in bins, words by frequency."""
    columns = {policy.sensitive[0]: reconstruction} | dict(reconstruction.columns)
    return {name: _bars(list(column.values), *column.shares()) for name, column in columns.items()}


def _bars(values: list[Any], before: Any, after: Any) -> dict[str, list[Any]]:
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return _word_bars(values, before, after)
    known = np.isfinite(numbers)
    if known.sum() <= _BARS:
        return _word_bars(values, before, after)
    edges = np.linspace(numbers[known].min(), numbers[known].max(), _BARS + 1)
    bins = np.clip(np.digitize(numbers[known], edges) - 1, 0, _BARS - 1)
    sums = [np.bincount(bins, weights=shares[known], minlength=_BARS).round(4).tolist() for shares in (before, after)]
    return {"values": [f"{edge:.4g}" for edge in edges[:-1]], "before": sums[0], "after": sums[1]}


def _word_bars(values: list[Any], before: Any, after: Any) -> dict[str, list[Any]]:
    often = np.argsort(-before, kind="stable")[:_BARS]
    first = sorted(often.tolist(), key=lambda code: str(values[code])) if len(values) <= _BARS else often.tolist()
    words = ["missing" if values[code] is None else str(values[code]) for code in first]
    sums = [[round(float(shares[code]), 4) for code in first] for shares in (before, after)]
    return {"values": words, "before": sums[0], "after": sums[1]}


def _neighbors(table: pa.Table, policy: Policy, release: Release) -> list[dict[str, Any]]:
    """The nodes of the lattice one step finer or coarser, judged by k and the suppression allowed, where the method has one level per column."""
    from reticent.encode import encode_table
    from reticent.encode.dictionary import pack_codes
    from reticent.policy.hierarchy import build_levels

    attributes = release.explain.get("attributes", {})
    levels = {name: at["level"] for name, at in attributes.items() if at.get("level") is not None}
    if release.shape != "generalized" or set(levels) != set(policy.quasi):
        return []
    encoded = encode_table(table, list(policy.quasi))
    rungs = {
        name: build_levels(
            policy.columns[name].hierarchy, encoded.dictionaries[name].values, column=name, base=policy.base
        )
        for name in policy.quasi
    }
    choices = []
    for name in policy.quasi:
        for step in (-1, 1):
            level = levels[name] + step
            if not 0 <= level <= rungs[name].height:
                continue
            at = {**levels, name: level}
            nodes = [rungs[other].node_ids[at[other]][encoded.codes[other]] for other in policy.quasi]
            key = pack_codes([(part.astype(np.int64), int(part.max()) + 1) for part in nodes])
            sizes = np.unique(key, return_counts=True)[1]
            small = int(sizes[sizes < (policy.privacy.k or 1)].sum())
            fits = small <= policy.privacy.may_suppress(table.num_rows)
            choices.append({"column": name, "finer": step < 0, "small": small, "rows": table.num_rows, "fits": fits})
    return choices


def _row_preview(release: Release) -> dict[str, Any]:
    """The first rows that would leave the house."""
    table = _person_table(release)
    return {"names": table.column_names, "rows": first_rows(table, _ROWS)}
