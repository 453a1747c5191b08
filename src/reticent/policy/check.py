"""Checks of a policy beyond its syntax: missing files, numbers that no release can satisfy, and notes for the user."""

from __future__ import annotations

from typing import Any

from reticent.errors import PolicyError
from reticent.policy.bundle import named_files
from reticent.policy.hierarchy import Tree, tree_of
from reticent.policy.policy import Policy
from reticent.policy.prior import read_report

KINDS = ("table", "evolving", "series", "stream")


def check(policy: Policy) -> list[str]:
    """Raise PolicyError for a policy that no release can satisfy; return notes that explain the policy."""
    hierarchies = {name: tree_of(column.hierarchy, policy.base, column=name) for name, column in policy.columns.items()}
    trees = {name: tree for name, tree in hierarchies.items() if tree is not None}
    _check_files(policy)
    _check_sensitive(policy, trees)
    if "table" in policy.model_fields_set and policy.table.method != "veil" and not (policy.quasi or policy.tables):
        raise PolicyError("The policy has no quasi-identifier.", hint="Give at least one column the role quasi.")
    return _notes(policy, trees)


def _check_files(policy: Policy) -> None:
    for named in named_files(policy):
        path = policy.path(named.name)
        if not path.is_file() and named.secret:
            place = named.setting.removesuffix(".transform")
            raise PolicyError(
                f"{place}: key file {named.name} does not exist.", hint=f"Create it: reticent keys new {named.name}"
            )
        if not path.is_file():
            hint = "Correct the path. It is relative to the policy's folder."
            raise PolicyError(f"{named.setting}: file {path.name} does not exist.", hint=hint)


def _check_sensitive(policy: Policy, trees: dict[str, Tree]) -> None:
    privacy = policy.privacy
    if (privacy.l or privacy.t) and not policy.sensitive:
        raise PolicyError("privacy: l and t need a sensitive column.", hint="Give one column the role sensitive.")
    for name in policy.sensitive:
        if privacy.l and name in trees and privacy.l.l > trees[name].size:
            raise PolicyError(
                f"privacy.l: {privacy.l.l:g} is more than the {trees[name].size} possible values of '{name}'.",
                hint=f"Write a number of at most {trees[name].size}.",
            )
        if privacy.t and privacy.t.kind == "hierarchical" and policy.columns[name].hierarchy is None:
            raise PolicyError(
                f"privacy.t: the hierarchical distance needs a hierarchy for column '{name}'.",
                hint="Add a hierarchy, or write t: {equal: 0.2}.",
            )


def _notes(policy: Policy, trees: dict[str, Tree]) -> list[str]:
    privacy = policy.privacy
    notes = [
        f"quasi-identifiers: {', '.join(policy.quasi) or 'none'}",
        f"sensitive: {', '.join(policy.sensitive) or 'none'}",
    ]
    if policy.identifiers:
        notes.append(f"never released: {', '.join(policy.identifiers)}")
    if policy.plain:
        notes.append(
            f"plain: {', '.join(policy.plain)}; released unchanged and not protected: give the role quasi to every column "
            "that an attacker may know"
        )
    notes += _column_notes(policy)
    notes += _person_notes(policy)
    notes += [f"{name}: {tree.size} values in {tree.depth + 1} levels" for name, tree in trees.items()]
    notes += _requirement_notes(policy)
    notes += _kind_notes(policy)
    if not (privacy.k or privacy.l or privacy.t or privacy.overall):
        notes.append("privacy is empty: a table can be released only with k, l or t")
    if privacy.suppression:
        notes.append(f"up to {privacy.suppression:.1%} of the records may be suppressed")
    return notes


def _person_notes(policy: Policy) -> list[str]:
    """Say whether k, l and t count persons or records."""
    settings = policy.persons
    if settings is None:
        return [
            "no person column: k, l and t count records; if a person can have several records, write person: COLUMN"
        ]
    selection = "" if settings.records == "all" else f"; only the {settings.records} record of each person is released"
    return [f"person: {settings.column}; k, l and t of a table count persons{selection}"]


def _requirement_notes(policy: Policy) -> list[str]:
    """Explain the requirements of `privacy`; the notes by kind say which releases satisfy them."""
    privacy, notes = policy.privacy, {}
    if privacy.k:
        notes["k"] = f"k = {privacy.k}: every record has the same quasi-identifiers as at least {privacy.k - 1} others"
    if privacy.l:
        notes["l"] = (
            f"l = {_format_requirement(privacy.l.to_plain())}: every group contains several possible sensitive values"
        )
    if privacy.t:
        number = _format_requirement(privacy.t.to_plain())
        notes["t"] = f"t = {number}: a group reveals little more about the sensitive value than the whole table"
    written = [kind for kind in KINDS if kind in policy.model_fields_set] or ["table"]
    keeps = {name for kind in written for name in getattr(policy, kind).keeps}
    lost = f"; NOT kept by the releases of {_join_names(written)}"
    return [note + ("" if name in keeps else lost) for name, note in notes.items()] + _overall_notes(policy)


def _overall_notes(policy: Policy) -> list[str]:
    """Explain the requirements on all classes together; only tables that generalize accept them."""
    privacy, notes = policy.privacy, []
    if privacy.average_risk:
        notes.append(f"average_risk = {privacy.average_risk:g}: at most this many classes per published record")
    if privacy.population_uniqueness:
        limit = privacy.population_uniqueness
        words = f"of {limit.population:,} people, at most {limit.share:.2%} are unique (estimate)"
        notes.append(f"population_uniqueness: {words}")
    if privacy.k_map:
        notes.append(f"k_map: every published combination fits {privacy.k_map.k} people of {privacy.k_map.file}")
    return notes


def _format_requirement(plain: dict[str, Any]) -> str:
    """Return `3 (distinct)` for the policy entry {distinct: 3}."""
    ((model, number),) = plain.items()
    return f"{number} ({model})"


def _kind_notes(policy: Policy) -> list[str]:
    """Say, for each section in the policy, which requirements of `privacy` its releases satisfy."""
    evolving, series, stream = policy.evolving, policy.series, policy.stream
    words = {
        "table": f"table: {policy.table.method}",
        "evolving": f"evolving: {evolving.method}, l = {policy.l_of('evolving')}",
        "series": f"series: {series.method}, " + _series_note(policy),
        "stream": f"stream: {stream.method}" + ("" if stream.method == "castle" else f", l = {policy.l_of('stream')}"),
    }
    veiled = {kind: _veil_note(policy, kind) for kind in words if getattr(policy, kind).method == "veil"}
    return [
        text + _kept_models_note(policy, kind)
        for kind, text in (words | veiled).items()
        if kind in policy.model_fields_set
    ]


def _veil_note(policy: Policy, kind: str) -> str:
    """Describe l, prior and kernel of a kind that uses the veil; the engine checks that they suffice."""
    prior = policy.prior
    source = "no prior" if prior is None or prior.file is None else f"prior from {prior.file}"
    report = read_report(policy) or {}
    released = f"noisy counts of the released data, epsilon = {report.get('epsilon') or 0:g}; not measured"
    measured = released if report.get("source") == "released" else "measured" if report else "not measured"
    updates = [column.updates for column in policy.columns.values() if column.role == "sensitive"]
    moving = (prior is not None and prior.kernel is not None) or any(one is not None and one.file for one in updates)
    kernel = "with a kernel" if moving else "without a kernel: a person's later values that differ are omitted"
    return f"{kind}: veil, l = {policy.l_of(kind)}, {source} ({measured}), {kernel}"


def _series_note(policy: Policy) -> str:
    if policy.series.method == "veil":
        return f"l = {policy.l_of('series')}"
    if policy.series.method == "l-diversity":
        return f"l = {policy.m} in each release by itself; NOT against an attacker who has several releases"
    return f"m = {policy.m}, no risk above {policy.series.limit:g}"


def _kept_models_note(policy: Policy, kind: str) -> str:
    privacy, method = policy.privacy, getattr(policy, kind).method
    written = [name for name in ("k", "l", "t") if getattr(privacy, name) is not None]
    satisfied = [name for name in written if name in getattr(policy, kind).keeps]
    lost = [name for name in written if name not in satisfied]
    return (f"; keeps {_join_names(satisfied)} of privacy" if satisfied else "") + (
        f"; {_join_names(lost)} of privacy {'is' if len(lost) == 1 else 'are'} not kept by {kind} {method}"
        if lost
        else ""
    )


def _join_names(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _column_notes(policy: Policy) -> list[str]:
    notes = []
    for name, column in policy.columns.items():
        identifier = column.transform
        if identifier is not None and identifier.pseudonym:
            notes.append(f"{name}: released as a keyed pseudonym; Reticent refuses a table in which one repeats")
        if identifier is not None and identifier.shift:
            notes.append(
                f"{name}: shifted by up to {identifier.shift} days, the same shift for all records of a person"
            )
        if column.combine:
            notes.append(
                f"{name}: {' and '.join(column.combine)} as one value; the bound holds for the combination, not for each column"
            )
    if len(policy.sensitive) > 1:
        notes.append(
            "several sensitive columns: every group is diverse in each; only for table methods other than Anatomy"
        )
    for word, section in (("FHIR resources", policy.fhir), ("HL7 messages", policy.hl7)):
        if section is not None:
            notes.append(f"columns read from {word}: {', '.join(section.paths)}")
    return notes
