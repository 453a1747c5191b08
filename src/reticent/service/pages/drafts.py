"""Private drafts: releases of a table under several policies, measured but never published."""

from __future__ import annotations

import threading
from functools import partial
from itertools import product
from typing import Any

from reticent.errors import PolicyError
from reticent.service.documents import new_id, now
from reticent.service.hub import Hub
from reticent.service.jobs import OPEN_STATES
from reticent.service.pages.plan import Plan

_VEIL = {"veil": "veil: the true value among candidates drawn from a prior"}
METHODS = {
    "stream": _VEIL
    | {
        "delay-free": "delay-free: groups of candidates, without delay",
        "castle": "castle: records are pending until their group is large enough",
    },
    "evolving": _VEIL | {"indexed": "indexed: persons stay in their groups"},
    "series": _VEIL
    | {
        "m-distinct": "m-distinct: groups keep their sets of values",
        "m-invariance": "m-invariance: a person's group has the same values in every release",
        "l-diversity": "l-diversity: each release separately; no guarantee across releases",
    },
    "table": {
        "auto": "auto: mondrian, local or optimal, with the lowest loss",
        "optimal": "optimal: one level per column, lowest loss",
        "local": "local: levels differ from group to group",
        "mondrian": "mondrian: splits the table at medians",
        "anatomy": "anatomy: unchanged values, linked by group",
    }
    | _VEIL,
}
"""Methods of each kind, the default first."""
MAX_DRAFTS = 12
_LOCK = threading.Lock()
# The measures of a draft; they are the same for every method.
MEASURES = {
    "records": "records released",
    "suppressed": "records suppressed",
    "withheld": "records withheld at the end",
    "risk before": "highest re-identification risk, original",
    "risk": "highest re-identification risk, release",
    "guess": "attacker's best guess of a value correct",
    "loss": "information loss, mean of the quasi-identifiers",
    "query error": "median error of a count query",
    "count error": "median error of a recipient's count of a value",
    "half width": "half width of the 95% interval of this count",
    "model": "accuracy of a model trained on the release",
    "original": "accuracy of a model trained on the original",
    "constant": "accuracy of always predicting the most frequent value",
}
_SUMMARY_PHRASES = {
    "records": "{} records released",
    "suppressed": "{} suppressed",
    "withheld": "{} withheld",
    "risk": "re-identification risk {}",
    "guess": "best guess correct {}",
    "loss": "information loss {}",
}


def begin(hub: Hub, plan: Plan, policies: list[tuple[str, dict[str, Any]]]) -> None:
    """Start drafts of a table under several policies, each given as a name and the sections that it replaces."""
    if len(policies) > MAX_DRAFTS:
        raise PolicyError(f"The form asks for {len(policies)} drafts.", hint=f"Make at most {MAX_DRAFTS} at once.")
    with _LOCK:
        _begin(hub, plan, policies)


def _begin(hub: Hub, plan: Plan, policies: list[tuple[str, dict[str, Any]]]) -> None:
    accepted = [(name, hub.accept(plan.bundle(**sections))) for name, sections in policies]
    new = [(name, policy) for name, policy in accepted if not _is_known(hub, plan, name, policy.hash)]
    if not new:
        raise PolicyError("These drafts exist already.", hint="Choose other methods or other values of k and l.")
    for name, policy in new:
        policy.check_columns(plan.table["columns"])
        draft: dict[str, Any] = {
            "id": new_id(),
            "created": now(),
            "table": plan.table["id"],
            "name": name,
            "kind": plan.kind,
            "method": getattr(policy, plan.kind).method,
            "policy_hash": policy.hash,
            "figures": None,
        }
        hub.write(partial(hub.drafts.put, ident=draft["id"], value=draft))
        hub.jobs.begin("draft", plan.table["name"], {"table": plan.table["id"], "draft": draft["id"]})


def _is_known(hub: Hub, plan: Plan, name: str, policy_hash: str) -> bool:
    """Return whether such a draft is running or measured, so that a double click makes no second draft."""
    same = [draft for draft in of_table(hub, plan.table["id"]) if draft["policy_hash"] == policy_hash]
    return any(
        (draft["name"], draft["kind"]) == (name, plan.kind) and draft["job"]["state"] in (*OPEN_STATES, "done")
        for draft in same
    )


def table_variants(
    plan: Plan, methods: list[str], ks: list[int], privacy: dict[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    """Return every method with every k, as names and sections of a policy."""
    weights = {key: value for key, value in plan.settings.get("table", {}).items() if key not in ("method", "weights")}
    drafts = {}
    for method, k in product(methods, ks):
        own = dict(privacy)
        if method in ("anatomy", "veil"):  # k and t do not apply to these methods
            own.pop("t", None)
        elif k > 1:
            own["k"] = k
        words = [method, *(f"{name} = {value}" for name, value in own.items() if name in ("k", "l", "t"))]
        drafts[", ".join(words)] = {"privacy": own, "table": weights | {"method": method}}
    return list(drafts.items())


def source_variants(plan: Plan, methods: list[str], ks: list[int], ls: list[int]) -> list[tuple[str, dict[str, Any]]]:
    """Return every method with every l, CASTLE also with every k, as names and sections of a policy."""
    settings = {name: value for name, value in plan.settings.get(plan.kind, {}).items() if name == "record"}
    policy_l = plan.settings.get("privacy", {}).get("l")
    drafts = {}
    for method, l, k in product(methods, ls, ks):
        privacy: dict[str, Any] = {"l": policy_l if isinstance(policy_l, dict) else l}
        words = [method, f"l = {l}"]
        if method == "castle":
            privacy["k"] = k
            words.append(f"k = {k}")
        own = settings | {"method": method} | ({"m": l} if plan.kind == "series" and method != "veil" else {})
        drafts[", ".join(words)] = {"privacy": privacy, plan.kind: own}
    return list(drafts.items())


def of_table(hub: Hub, table: str) -> list[dict[str, Any]]:
    """Return the drafts of a table, oldest first, each with the state of its job."""
    drafts = [draft for draft in hub.drafts.all() if draft["table"] == table]
    jobs = {job["request"]["draft"]: hub.jobs.show(job) for job in hub.jobs.documents.all() if job["kind"] == "draft"}
    waiting = {"state": "queued", "error": None}
    return [draft | {"job": jobs.get(draft["id"], waiting)} for draft in reversed(drafts)]


def by_job(hub: Hub) -> dict[str, dict[str, Any]]:
    """Return the drafts by the ids of their jobs."""
    drafts = {draft["id"]: draft for draft in hub.drafts.all()}
    jobs = [job for job in hub.jobs.documents.all() if job["kind"] == "draft"]
    return {job["id"]: drafts[job["request"]["draft"]] for job in jobs if job["request"]["draft"] in drafts}


def action_label(draft: dict[str, Any]) -> str:
    """Return the label of the next action: publish a table, or create a source."""
    return "Publish" if draft["kind"] == "table" else "Create"


def remove(hub: Hub, ident: str) -> None:
    """Delete a draft."""
    hub.write(lambda tx: hub.drafts.delete(tx, ident))


def measures(figures: dict[str, Any]) -> dict[str, str]:
    """Return the measures of a draft as text, by the names of `MEASURES`."""
    counts, before, model = figures["records"], figures["before"], figures["model"]
    if model.get("original_accuracy", 0) <= model.get("constant_accuracy", 0):
        model = {}  # a model of the original is no better than a constant, so there is nothing to compare
    return {
        "records": f"{counts['published']:,}",
        "suppressed": f"{counts['suppressed'] / max(1, counts['input']):.1%}",
        "withheld": f"{counts['withheld']:,}",
        "risk before": f"{before['highest']:.2f}" if before else "-",
        "risk": f"{figures['risk']['highest']:.2f}" if figures["risk"] else "-",
        "guess": _percent_text(figures["guess"]),
        "loss": _percent_text(figures["loss"]),
        "query error": _percent_text(figures["query_error"].get("median")),
        "count error": _percent_text(figures["count_error"].get("error")),
        "half width": _percent_text(figures["count_error"].get("half_width")),
        "model": _percent_text(model.get("release_accuracy")),
        "original": _percent_text(model.get("original_accuracy")),
        "constant": _percent_text(model.get("constant_accuracy")),
    }


def summary(figures: dict[str, Any]) -> str:
    """Return the main measures of a draft as one line."""
    values = measures(figures)
    return "; ".join(
        words.format(values[name]) for name, words in _SUMMARY_PHRASES.items() if values[name] not in ("-", "0")
    )


def short_names(drafts: list[dict[str, Any]]) -> list[str]:
    """Return the names of drafts without their common parts, for table headers and legends."""
    parts = [draft["name"].split(", ") for draft in drafts]
    common = set(parts[0]).intersection(*parts) if len(parts) > 1 else set()
    return [", ".join(part for part in own if part not in common) or own[0] for own in parts]


def _percent_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}" if value < 0.1 else f"{value:.0%}"
