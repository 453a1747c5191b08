"""Private drafts: a policy tried on a table; what they are, how they begin, and their figures in words."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from reticent.errors import PolicyError
from reticent.release.wording import claims_in_words
from reticent.service.documents import fresh_id, now

if TYPE_CHECKING:
    from reticent.service.hub import Hub
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
    },
    "table": {
        "auto": "auto: tries mondrian, local and optimal, the least loss wins",
        "optimal": "optimal: one level per column, least loss",
        "local": "local: levels differ from group to group",
        "mondrian": "mondrian: cuts the table in halves",
        "anatomy": "anatomy: values as they are, linked by group",
        "veil": "veil: each value among candidates, under a prior",
    },
}
"""Methods of each kind, the usual one first."""
MOST = 12
# What a draft is compared by; the same measure for every method.
MEASURES = {
    "records": "records released",
    "left out": "records left out",
    "held": "records held back at the end",
    "risk before": "highest risk of being found, before",
    "risk": "highest risk of being found, now",
    "guess": "best guess of a value right",
    "loss": "information lost, mean of the quasi-identifiers",
    "query error": "median error of a count",
    "asked": "error of a value's count, as recipients ask it",
    "half width": "half of the 95 % interval they get with it",
    "model": "a model learnt from it is right",
    "original": "one learnt from the original is right",
    "constant": "always saying the same is right",
}


def begin(hub: Hub, plan: Plan, policies: list[tuple[str, dict[str, Any]]]) -> None:
    """Tries a table under policies, each given as a name and the sections it replaces; nothing is published."""
    if len(policies) > MOST:
        raise PolicyError(f"These are {len(policies)} drafts.", hint=f"Try at most {MOST} at once.")
    accepted = [(name, hub.accept(plan.bundle(**sections))) for name, sections in policies]
    for name, policy in accepted:
        policy.check_columns(plan.table["columns"])
        draft: dict[str, Any] = {
            "id": fresh_id(),
            "created": now(),
            "table": plan.table["id"],
            "name": name,
            "kind": plan.kind,
            "method": getattr(policy, plan.kind).method,
            "policy_hash": policy.hash,
            "figures": None,
        }
        hub.write(partial(hub.drafts.put, ident=draft["id"], value=draft))
        hub.jobs.begin("try", plan.table["name"], {"table": plan.table["id"], "draft": draft["id"]})


def strengths(
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


def promises(plan: Plan, methods: list[str], ks: list[int], ls: list[int]) -> list[tuple[str, dict[str, Any]]]:
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
        own = settings | {"method": method} | ({"m": l} if method.startswith("m-") else {})
        drafts[", ".join(words)] = {"privacy": privacy, plan.kind: own}
    return list(drafts.items())


def of_table(hub: Hub, table: str) -> list[dict[str, Any]]:
    """The drafts of a table in the order they were made, each with the state of its job."""
    drafts = [draft for draft in hub.drafts.all() if draft["table"] == table]
    jobs = {job["request"]["draft"]: hub.jobs.show(job) for job in hub.jobs.documents.all() if job["kind"] == "try"}
    waiting = {"state": "queued", "error": None}
    return [draft | {"job": jobs.get(draft["id"], waiting)} for draft in reversed(drafts)]


def by_job(hub: Hub) -> dict[str, str]:
    """Names of drafts, by the jobs that try them."""
    names = {draft["id"]: draft["name"] for draft in hub.drafts.all()}
    jobs = [job for job in hub.jobs.documents.all() if job["kind"] == "try"]
    return {job["id"]: names[job["request"]["draft"]] for job in jobs if job["request"]["draft"] in names}


def act(draft: dict[str, Any]) -> str:
    """What a draft leads to: a table is published, a source is begun."""
    return "Publish" if draft.get("kind", "table") == "table" else "Begin"


def remove(hub: Hub, ident: str) -> None:
    """Forgets a draft."""
    hub.write(lambda tx: hub.drafts.delete(tx, ident))


def measures(figures: dict[str, Any]) -> dict[str, str]:
    """The figures of a draft as text, by the names of `MEASURES`."""
    counts, before = figures["counts"], figures["before"]
    return {
        "records": f"{counts['published']:,}",
        "left out": f"{counts['suppressed'] / max(1, counts['rows_in']):.1%}",
        "held": f"{counts['held']:,}",
        "risk before": f"{before['highest']:.2f}" if before else "-",
        "risk": f"{figures['risk']['highest']:.2f}" if figures["risk"] else "-",
        "guess": _share(figures["guess"]),
        "loss": _share(figures["loss"]),
        "query error": _share(figures["query_error"].get("median")),
        "asked": _share(figures.get("asked", {}).get("error")),
        "half width": _share(figures.get("asked", {}).get("half_width")),
        "model": _share(figures["model"].get("release_accuracy")),
        "original": _share(figures["model"].get("original_accuracy")),
        "constant": _share(figures["model"].get("constant_accuracy")),
    }


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}" if value < 0.1 else f"{value:.0%}"


def promise(figures: dict[str, Any]) -> tuple[str, str, list[str]]:
    """What would hold, against whom, and what not, in the words of the release."""
    return "; ".join(claims_in_words(figures["claims"])), figures["against"], figures["not_covered"]
