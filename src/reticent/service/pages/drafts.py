"""Private drafts: a policy tried on a table; what they are, how they begin, and their figures in words."""

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

_VEIL = {"veil": "veil: each value among candidates, under a prior"}
METHODS = {
    "stream": _VEIL
    | {
        "delay-free": "delay-free: groups of candidates, at once",
        "castle": "castle: holds records back until they are safe",
    },
    "evolving": _VEIL | {"indexed": "indexed: groups that persons keep"},
    "series": _VEIL
    | {
        "m-distinct": "m-distinct: groups that keep their sets of values",
        "m-invariance": "m-invariance: the same values around a person in every release",
        "l-diversity": "l-diversity: each release by itself; nothing is promised over several",
    },
    "table": {
        "auto": "auto: tries mondrian, local and optimal, the least loss wins",
        "optimal": "optimal: one level per column, least loss",
        "local": "local: levels differ from group to group",
        "mondrian": "mondrian: cuts the table in halves",
        "anatomy": "anatomy: values as they are, linked by group",
    }
    | _VEIL,
}
"""Methods of each kind, the usual one first."""
MAX_DRAFTS = 12
_LOCK = threading.Lock()
# What a draft is compared by; the same measure for every method.
MEASURES = {
    "records": "records released",
    "left out": "records left out",
    "withheld": "records held back at the end",
    "risk before": "highest risk of being found, before",
    "risk": "highest risk of being found, now",
    "guess": "best guess of a value right",
    "loss": "information lost, mean of the quasi-identifiers",
    "query error": "median error of a count",
    "count_error": "error of a value's count, as recipients ask it",
    "half width": "half of the 95% interval they get with it",
    "model": "a model learnt from it is right",
    "original": "one learnt from the original is right",
    "constant": "always saying the same is right",
}
_SUMMARY_PHRASES = {
    "records": "{} records released",
    "left out": "{} left out",
    "withheld": "{} held back",
    "risk": "risk of being found {}",
    "guess": "best guess of a value right {}",
    "loss": "information lost {}",
}


def begin(hub: Hub, plan: Plan, policies: list[tuple[str, dict[str, Any]]]) -> None:
    """Tries a table under policies, each given as a name and the sections it replaces; nothing is published."""
    if len(policies) > MAX_DRAFTS:
        raise PolicyError(f"These are {len(policies)} drafts.", hint=f"Try at most {MAX_DRAFTS} at once.")
    with _LOCK:
        _begin(hub, plan, policies)


def _begin(hub: Hub, plan: Plan, policies: list[tuple[str, dict[str, Any]]]) -> None:
    accepted = [(name, hub.accept(plan.bundle(**sections))) for name, sections in policies]
    fresh = [(name, policy) for name, policy in accepted if not _is_known(hub, plan, name, policy.hash)]
    if not fresh:
        raise PolicyError("These drafts are there already.", hint="Choose other methods or strengths.")
    for name, policy in fresh:
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
    """Whether there is such a draft, at work or measured: a click too many makes no second one."""
    same = [one for one in of_table(hub, plan.table["id"]) if one["policy_hash"] == policy_hash]
    return any(
        (one["name"], one["kind"]) == (name, plan.kind) and one["job"]["state"] in (*OPEN_STATES, "done")
        for one in same
    )


def table_variants(
    plan: Plan, methods: list[str], ks: list[int], privacy: dict[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    """Every method at every k, as names and sections of a policy."""
    weights = {key: value for key, value in plan.settings.get("table", {}).items() if key not in ("method", "weights")}
    drafts = {}
    for method, k in product(methods, ks):
        own = dict(privacy)
        if method in ("anatomy", "veil"):  # they protect values; k and t say nothing of them
            own.pop("t", None)
        elif k > 1:
            own["k"] = k
        words = [method, *(f"{name} = {value}" for name, value in own.items() if name in ("k", "l", "t"))]
        drafts[", ".join(words)] = {"privacy": own, "table": weights | {"method": method}}
    return list(drafts.items())


def source_variants(plan: Plan, methods: list[str], ks: list[int], ls: list[int]) -> list[tuple[str, dict[str, Any]]]:
    """Every method of a source at every l, and CASTLE at every k besides, as names and sections of a policy."""
    settings = {name: value for name, value in plan.settings.get(plan.kind, {}).items() if name == "record"}
    known = plan.settings.get("privacy", {}).get("l")
    drafts = {}
    for method, l, k in product(methods, ls, ks):
        privacy: dict[str, Any] = {"l": known if isinstance(known, dict) else l}
        words = [method, f"l = {l}"]
        if method == "castle":
            privacy["k"] = k
            words.append(f"k = {k}")
        own = settings | {"method": method} | ({"m": l} if plan.kind == "series" and method != "veil" else {})
        drafts[", ".join(words)] = {"privacy": privacy, plan.kind: own}
    return list(drafts.items())


def of_table(hub: Hub, table: str) -> list[dict[str, Any]]:
    """The drafts of a table in the order they were made, each with the state of its job."""
    drafts = [draft for draft in hub.drafts.all() if draft["table"] == table]
    jobs = {job["request"]["draft"]: hub.jobs.show(job) for job in hub.jobs.documents.all() if job["kind"] == "draft"}
    waiting = {"state": "queued", "error": None}
    return [draft | {"job": jobs.get(draft["id"], waiting)} for draft in reversed(drafts)]


def by_job(hub: Hub) -> dict[str, dict[str, Any]]:
    """Drafts, by the jobs that try them."""
    known = {draft["id"]: draft for draft in hub.drafts.all()}
    jobs = [job for job in hub.jobs.documents.all() if job["kind"] == "draft"]
    return {job["id"]: known[job["request"]["draft"]] for job in jobs if job["request"]["draft"] in known}


def action_label(draft: dict[str, Any]) -> str:
    """What a draft leads to: a table is published, a source is begun."""
    return "Publish" if draft["kind"] == "table" else "Begin"


def remove(hub: Hub, ident: str) -> None:
    """Forgets a draft."""
    hub.write(lambda tx: hub.drafts.delete(tx, ident))


def measures(figures: dict[str, Any]) -> dict[str, str]:
    """The figures of a draft as text, by the names of `MEASURES`."""
    counts, before, model = figures["records"], figures["before"], figures["model"]
    if model.get("original_accuracy", 0) <= model.get("constant_accuracy", 0):
        model = {}  # the original itself teaches nothing, so there is nothing to lose
    return {
        "records": f"{counts['published']:,}",
        "left out": f"{counts['suppressed'] / max(1, counts['input']):.1%}",
        "withheld": f"{counts['withheld']:,}",
        "risk before": f"{before['highest']:.2f}" if before else "-",
        "risk": f"{figures['risk']['highest']:.2f}" if figures["risk"] else "-",
        "guess": _percent_text(figures["guess"]),
        "loss": _percent_text(figures["loss"]),
        "query error": _percent_text(figures["query_error"].get("median")),
        "count_error": _percent_text(figures["count_error"].get("error")),
        "half width": _percent_text(figures["count_error"].get("half_width")),
        "model": _percent_text(model.get("release_accuracy")),
        "original": _percent_text(model.get("original_accuracy")),
        "constant": _percent_text(model.get("constant_accuracy")),
    }


def summary(figures: dict[str, Any]) -> str:
    """The figures by which one draft is told from another, as one line."""
    values = measures(figures)
    return "; ".join(
        words.format(values[name]) for name, words in _SUMMARY_PHRASES.items() if values[name] not in ("-", "0")
    )


def short_names(known: list[dict[str, Any]]) -> list[str]:
    """Names of drafts without what all of them have in common, for heads and legends."""
    parts = [one["name"].split(", ") for one in known]
    common = set(parts[0]).intersection(*parts) if len(parts) > 1 else set()
    return [", ".join(part for part in own if part not in common) or own[0] for own in parts]


def _percent_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}" if value < 0.1 else f"{value:.0%}"
