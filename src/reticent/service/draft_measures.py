"""Measures of a draft: a private release of a table, computed in a child process and then deleted, never published."""

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
"""Sizes of equivalence classes on the risk curve."""
_BARS = 12
_ROWS = 8
_MAX_VALUES = 200
"""Most values for which counts of a veiled draft are estimated: each stratum inverts a matrix of this size."""
_MIN_RECORDS = 20
"""Fewest records of a value whose count is estimated."""
_POLL_SECONDS = 0.2
"""Seconds between two checks whether a draft was cancelled."""


def measure_in_subprocess(
    data: bytes, bundle: bytes, kind: str = "table", *, is_cancelled: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Return the measures of a table under a policy; the child process ends when `is_cancelled` returns true.

    Raises:
        ServiceError: the policy cannot be met, or does not fit the table.
        UnwantedError: the draft was cancelled.
    """
    process = ChildProcess(_run_measurement, data, bundle, kind)
    try:
        while not process.pipe.poll(_POLL_SECONDS):
            if is_cancelled():
                raise WorkCancelledError("The draft was cancelled.")
        answer: tuple[dict[str, Any], ServiceError | None] = process.pipe.recv()
    except (EOFError, OSError):
        words = "The process of this draft ended early; it may have run out of memory."
        raise ServiceError(500, "draft", words, "Make the draft from fewer rows.") from None
    finally:
        process.end()
    figures, problem = answer
    if problem is not None:
        raise problem
    return figures


def _run_measurement(link: Connection, data: bytes, bundle: bytes, kind: str) -> None:
    """Measure a draft in the child process and send the result or the error."""
    set_idle_priority()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # warnings of libraries may quote data
    try:
        with tempfile.TemporaryDirectory(prefix="reticent-try-") as folder:
            policy = Bundle.from_bytes(bundle).unpack(Path(folder))
            link.send((measure(read_upload(data), policy, kind), None))
    except Exception as error:  # noqa: BLE001 - the parent process raises it
        link.send((None, to_service_error(error)))


def measure(table: pa.Table, policy: Policy, kind: str = "table") -> dict[str, Any]:
    """Measure the risk and the utility that a release of the table would have, without weights for columns."""
    policy.check_columns(table.column_names)
    if kind == "stream":
        return _stream_figures(table, policy)
    return _release_figures(table, policy, _publish_draft(table, policy, kind))


def _publish_draft(table: pa.Table, policy: Policy, kind: str) -> Release:
    """Return a first release from a temporary store, with a parameter set of its own."""
    from reticent.publication import table as tables
    from reticent.publication.evolving import Evolving
    from reticent.publication.series import Series
    from reticent.store import Store

    if kind == "table":
        # With a random seed, a draft under the veil does not pin a parameter set.
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
    """Measure the sample as a stream would release it; records that are pending at the end stay pending."""
    from reticent.publication.stream import StreamPublication
    from reticent.read.received import Received
    from reticent.read.wire import from_lines

    publication = StreamPublication(policy)
    batch = publication.reader.table(table)
    if batch.rejected:
        row, reason, _ = batch.rejected[0]
        raise DataError(
            f"Record {row + 1}: {reason}.", hint="Correct the sample; a stream rejects a batch with such a record."
        )
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
    offers = [
        " / ".join(map(str, r.get("candidates", ()))) or str(r.get("group") or r.get("sensitive")) for r in records
    ]
    rows = [[*(str(r["quasi"].get(n)) for n in names), words] for r, words in zip(records, offers, strict=True)]
    return {"names": [*names, "offered"], "rows": rows}


def _base_figures(
    method: str, guarantee: Guarantee, counts: dict[str, Any], table: pa.Table, policy: Policy
) -> dict[str, Any]:
    """Return the measures of every draft; a measure that the kind or method does not have is None or empty."""
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
    """Return the error of a recipient's estimated counts of the frequent values."""
    if method == "veil" and len(received.values) > _MAX_VALUES:
        return {}
    if method == "veil" and policy.person is not None:  # the estimate counts only the first record of a person
        who = table.column(policy.person).cast("string").to_numpy(zero_copy_only=False)
        table = table.take(np.sort(np.unique(who.astype(str), return_index=True)[1]))
    values = pc.value_counts(table[policy.sensitive[0]].cast("string")).to_pylist()
    true_counts = {str(item["values"]): item["counts"] for item in values}
    name = received.sensitive
    rows = received.count(None, [], [name]).to_list()
    known = [(row, true_counts[str(row[name])]) for row in rows if true_counts.get(str(row[name]), 0) >= _MIN_RECORDS]
    if not known:
        return {}
    error = np.median([abs(row["estimate"] - count) / count for row, count in known])
    width = np.median([(row["high"] - row["low"]) / 2 / count for row, count in known])
    return {"error": float(error), "half_width": float(width), "values": float(len(known))}


def _veiled_guess(received: Received) -> float | None:
    """Return the share of records whose most frequent candidate is the true value by the veil's weights; None without a veil."""
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
    published = read_release(release, "draft")
    guess = homogeneity(Evidence((published,), policy))
    useful = utility([published], text, policy, np.random.default_rng(0))
    reconstruction = reconstruct(published, text, policy)
    losses = {name: float(item["loss"]) for name, item in useful.get("attributes", {}).items()}
    count_error, veiled = {}, None
    if policy.sensitive:
        with tempfile.TemporaryDirectory(prefix="reticent-try-") as folder:
            received = read(release.to_dir(Path(folder) / "release", format="parquet"))
            count_error, veiled = _count_error(received, table, policy, release.method), _veiled_guess(received)
    return _base_figures(release.method, release.guarantee, asdict(release.records), table, policy) | {
        "loss": float(np.mean(list(losses.values()))) if losses else _stated_loss(policy, release),
        "guess": guess.accuracy if guess else veiled,
        "risk": asdict(assess(published, policy).prosecutor),
        "count_error": count_error,
        "curve": {"before": _risk_curve(text, policy), "now": _risk_curve(_person_table(release), policy)},
        "query_error": useful.get("query_error", {}),
        "model": useful.get("classifier", {}),
        "columns": _column_figures(table, release, policy, losses),
        "distributions": _distributions(reconstruction, policy) if reconstruction and policy.sensitive else {},
        "neighbors": _neighbors(table, policy, release),
        "preview": _row_preview(release),
    }


def _stated_loss(policy: Policy, release: Release) -> float | None:
    """Return the loss that the release states, if the policy has no sensitive column and no column weights."""
    known = not policy.sensitive and not policy.table.weights
    return release.metrics.get("loss") if known else None


def _person_table(release: Release) -> pa.Table:
    """Return the table of a release that has a row per record."""
    return release.tables.get("data", release.tables.get("qit", next(iter(release.tables.values()))))


def _risk_curve(table: pa.Table, policy: Policy) -> list[float]:
    """Return, for each size in `GROUP_SIZES`, the share of records in an equivalence class of at most this size."""
    from reticent.verify.groups import number_rows

    names = [name for name in policy.quasi if name in table.column_names]
    if not names or not table.num_rows:
        return [0.0] * len(GROUP_SIZES)
    rows, size = number_rows(table.select(names), names)
    class_sizes = np.bincount(rows, minlength=size)[rows]
    return [round(float((class_sizes <= limit).mean()), 4) for limit in GROUP_SIZES]


def _column_figures(
    table: pa.Table, release: Release, policy: Policy, losses: dict[str, float]
) -> list[dict[str, Any]]:
    """Return the role, the numbers of distinct values before and after, the level and the loss of each column."""
    levels = release.explain.get("attributes", {})
    tables = {name: part for part in release.tables.values() for name in part.column_names}
    return [
        {
            "name": name,
            "role": column.role,
            "before": len(table.column(name).unique()),
            "after": len(tables[name].column(name).unique()) if name in tables else None,
            "level": levels.get(name, {}).get("level"),
            "height": levels.get(name, {}).get("height"),
            "loss": losses.get(name),
        }
        for name, column in policy.columns.items()
    ]


def _distributions(reconstruction: Reconstruction, policy: Policy) -> dict[str, Any]:
    """Return shares of values before, and after as a recipient reconstructs them: numbers in bins, words by frequency."""
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
    frequent = np.argsort(-before, kind="stable")[:_BARS]
    codes = sorted(frequent.tolist(), key=lambda code: str(values[code])) if len(values) <= _BARS else frequent.tolist()
    words = ["missing" if values[code] is None else str(values[code]) for code in codes]
    sums = [[round(float(shares[code]), 4) for code in codes] for shares in (before, after)]
    return {"values": words, "before": sums[0], "after": sums[1]}


def _neighbors(table: pa.Table, policy: Policy, release: Release) -> list[dict[str, Any]]:
    """Return the lattice nodes one step finer or coarser, with their small classes; only for one level per column."""
    from reticent.encode import encode_table
    from reticent.encode.dictionary import pack_codes
    from reticent.policy.hierarchy import build_levels

    attributes = release.explain.get("attributes", {})
    levels = {name: at["level"] for name, at in attributes.items() if at.get("level") is not None}
    if release.shape != "generalized" or set(levels) != set(policy.quasi):
        return []
    encoded = encode_table(table, list(policy.quasi))
    hierarchies = {
        name: build_levels(
            policy.columns[name].hierarchy, encoded.dictionaries[name].values, column=name, base=policy.base
        )
        for name in policy.quasi
    }
    choices = []
    for name in policy.quasi:
        for step in (-1, 1):
            level = levels[name] + step
            if not 0 <= level <= hierarchies[name].height:
                continue
            at = {**levels, name: level}
            nodes = [hierarchies[other].node_ids[at[other]][encoded.codes[other]] for other in policy.quasi]
            key = pack_codes([(part.astype(np.int64), int(part.max()) + 1) for part in nodes])
            sizes = np.unique(key, return_counts=True)[1]
            small = int(sizes[sizes < (policy.privacy.k or 1)].sum())
            fits = small <= policy.privacy.may_suppress(table.num_rows)
            choices.append({"column": name, "finer": step < 0, "small": small, "rows": table.num_rows, "fits": fits})
    return choices


def _row_preview(release: Release) -> dict[str, Any]:
    """Return the first rows that recipients would get."""
    table = _person_table(release)
    return {"names": table.column_names, "rows": first_rows(table, _ROWS)}
