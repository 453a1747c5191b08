"""What lies beside the tables of a folder: manifest, codebook and README, closed in every entry.

Guarantee: the folder holds the tables of its shape, each once, and no other file, whatever the manifest lists; every entry of the
    manifest is known and has its form (a number, a digest, a time, a word of a closed list); the codebook says of each column what
    table and policy say and repeats the manifest; README.txt is the page of that codebook.
Not covered: words that a custodian adds to the guarantee (`against`, `not_covered`); file names of linked tables, which their own
    judge knows.
Cost: reads the papers, and the different labels of each column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from reticent.audit.groups import codes
from reticent.audit.verdict import Finding, none_of
from reticent.release.readme import citation, readme
from reticent.release.wording import HOW_TO_READ, MAY, MAY_NOT, claims_in_words

if TYPE_CHECKING:
    from reticent.audit.published import Published
    from reticent.policy import Policy

METHODS = {
    "table": {"auto", "optimal", "supervised", "local", "mondrian", "anatomy", "veil", "linked"},
    "evolving": {"veil", "indexed", "enc", "encc", "eac", "red"},
    "series": {"veil", "m-distinct", "m-distinct*", "m-invariance", "l-diversity"},
    "stream": {"veil", "delay-free", "castle"},
}
_TABLES = {
    "generalised": {"data"},
    "anatomy": {"qit", "st"},
    "m-distinct": {"data", "counterfeits", "plain"},
    "veil": {"data"},
    "stream": {"group", "tuple", "record"},
}
_CLAIMS = {
    "k",
    "l",
    "t",
    "average_risk",
    "population_uniqueness",
    "k_map",
    "posterior",
    "max_risk",
    "publications",
    "veil",
}
_CLAIMS |= {"m-distinct", "m-distinct*", "m-invariance"}
_INSIDE = {"persons", "distinct", "entropy", "recursive", "frequency", "equal", "ordered", "hierarchical", "at_most"}
_INSIDE |= {"share", "population"}
_ROLES = {"quasi", "sensitive", "plain", "identifier", "added", "candidate"}
_TYPES = {"integer", "number", "date", "text"}
_COLUMN = {"table", "name", "role", "stands_for", "meaning", "type", "missing", "hierarchy", "nodes", "level"}
_DIGEST, _SHORT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{0,64}")
_HASH = re.compile(r"[0-9A-Za-z]{0,64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
_VERSION = re.compile(r"\d[\w.+-]{0,30}")
_GENERATION = re.compile(r"[0-9a-f]{1,32}-\d{1,9}")
_NAME = re.compile(r"[^\n\"']{1,120}")


def check_papers(release: Published, policy: Policy) -> list[Finding]:
    """The findings about a folder; none about a release in memory, which has no papers yet."""
    manifest = release.manifest
    if manifest is None:
        book = release.codebook
        return (
            []
            if book is None
            else [_named("the codebook of a stream is closed in every entry", loose_entries(book, policy))]
        )
    findings = [
        _named("the folder holds the files of its shape, each once", _files(release)),
        _named("every entry of the manifest has its form", _formless(manifest)),
    ]
    if release.codebook is not None:
        findings.append(_named("the codebook repeats manifest, tables and policy", _odd(release, policy)))
    if release.readme is not None:
        same = release.codebook is not None and _page(release.codebook) == release.readme
        findings.append(Finding("README.txt is the page of the codebook", same))
    return findings


def _named(claim: str, names: list[str]) -> Finding:
    return none_of(claim, len(names), ", ".join(name[:60] for name in names[:5]))


def _page(codebook: Mapping[str, Any]) -> str | None:
    try:
        return readme(codebook)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _files(release: Published) -> list[str]:
    """Files that the shape does not have, and tables that stand in two formats."""
    known, tables = {"README.txt", "codebook.json"}, _TABLES.get(release.shape)
    listed = [str(name) for name in _mapping((release.manifest or {}).get("files"))]
    if tables is None:
        return []
    known |= {"veil.json"} if release.shape == "veil" else set()
    odd = [name for name in listed if name not in known and PurePath(name).stem not in tables]
    odd += [
        name for name in listed if PurePath(name).stem in tables and PurePath(name).suffix not in (".csv", ".parquet")
    ]
    stems = [PurePath(name).stem for name in listed if name not in known]
    return odd + [name for name in listed if name not in known and stems.count(PurePath(name).stem) > 1]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _entries(**forms: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(key in forms and forms[key](one) for key, one in value.items())


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _claims(value: Any) -> bool:
    return isinstance(value, dict) and set(value) <= _CLAIMS and all(map(_claim, value.values()))


def _claim(value: Any) -> bool:
    """A number, several, or numbers by the kinds of a model."""
    if isinstance(value, dict):
        return set(value) <= _INSIDE and all(map(_claim, value.values()))
    return all(map(_number, value)) if isinstance(value, list) else _number(value)


_FORMS: Mapping[str, Callable[[Any], bool]] = {
    "kind": lambda value: value in METHODS,
    "shape": lambda value: value in HOW_TO_READ,
    "policy_hash": _text(_HASH),
    "seeded": lambda value: isinstance(value, bool),
    "format": _count,
    "time": _text(_TIME),
    "versions": _entries(reticent=_text(_VERSION), python=_text(_VERSION), pyarrow=_text(_VERSION)),
    "counts": _entries(rows_in=_count, published=_count, held=_count, suppressed=_count),
    "guarantee": _entries(claims=_claims, against=lambda value: isinstance(value, str), not_covered=_words),
    "files": lambda value: isinstance(value, dict) and all(map(_text(_DIGEST), value.values())),
    "store": _entries(
        publisher=_text(_NAME),
        generation=_text(_GENERATION),
        number=_count,
        digest=_text(_SHORT),
        predecessor=_text(_SHORT),
    ),
}


def _formless(manifest: Mapping[str, Any]) -> list[str]:
    """Entries that are not of their form; unknown ones are named elsewhere."""
    odd = [key for key, fits in _FORMS.items() if key in manifest and not fits(manifest[key])]
    fits = manifest.get("method") in METHODS.get(str(manifest.get("kind")), ())
    return odd + ([] if fits or "method" not in manifest else ["method"])


def _odd(release: Published, policy: Policy) -> list[str]:
    """Entries of the codebook that are not those of the release."""
    codebook, manifest = release.codebook or {}, release.manifest or {}
    guarantee = _mapping(manifest.get("guarantee"))
    claims = _mapping(guarantee.get("claims"))
    shape = release.shape
    same = {
        "format": 1,
        "kind": manifest.get("kind"),
        "shape": shape,
        "method": manifest.get("method"),
        "sensitive": next(iter(policy.sensitive), None),
        "records": manifest.get("counts"),
        "guarantee": dict(guarantee) | {"words": claims_in_words(claims)},
        "reading": list(HOW_TO_READ.get(shape, ())),
        "may_be_concluded": list(MAY.get(shape, ())),
        "may_not_be_concluded": list(MAY_NOT),
        "cite": citation(*(str(manifest.get(key)) for key in ("kind", "method", "policy_hash"))),
    }
    odd = [key for key in codebook if key not in same and key != "columns"]
    odd += [key for key, value in same.items() if key in codebook and codebook[key] != value]
    columns = codebook.get("columns")
    if not isinstance(columns, list):
        return [*odd, "columns"]
    return odd + [f"column {at}" for at, entry in enumerate(columns, 1) if not _column(entry, release, policy)]


def loose_entries(book: Mapping[str, Any], policy: Policy) -> list[str]:
    """Entries of a stream's codebook that are unknown, or not of their form; what it says of a veil is judged elsewhere."""
    claims = _mapping(_mapping(book.get("guarantee")).get("claims"))
    forms: dict[str, Callable[[Any], bool]] = {
        "type": lambda value: value == "codebook",
        "kind": lambda value: value == "stream",
        "method": lambda value: value in METHODS["stream"],
        "columns": lambda value: isinstance(value, list) and all(_told_column(one, policy) for one in value),
        "guarantee": _entries(
            claims=_claims,
            words=lambda value: value == claims_in_words(claims),
            against=lambda value: isinstance(value, str),
            not_covered=_words,
        ),
        "policy": _text(_HASH),
        "notes": lambda value: value == [_ETA],
        "veil": lambda value: isinstance(value, dict),
    }
    return [key for key, value in book.items() if key not in forms or not forms[key](value)]


_ETA = "eta: which share of the true values will not be among the candidates is not known before the stream has run"


def _told_column(entry: Any, policy: Policy) -> bool:
    fits = isinstance(entry, dict) and set(entry) <= {"name", "role", "level", "hierarchy"}
    if not fits or entry.get("name") not in policy.released or entry.get("role") not in _ROLES:
        return False
    spec = policy.columns[entry["name"]].hierarchy
    return _count(entry.get("level", 0)) and entry.get("hierarchy") in (None, spec.kind if spec is not None else None)


def _column(entry: Any, release: Published, policy: Policy) -> bool:
    """Whether an entry says no more of a column than its table and the policy do."""
    if not isinstance(entry, dict) or not set(entry) <= _COLUMN:
        return False
    table = release.tables.get(str(entry.get("table")))
    name = entry.get("name")
    if table is None or name not in table.column_names or entry.get("role") not in _ROLES:
        return False
    origin = entry.get("stands_for", name)
    spec = policy.columns.get(str(origin))
    fits = "stands_for" not in entry or spec is not None
    fits &= entry.get("type") in _TYPES and entry.get("missing") == table[name].null_count
    fits &= "meaning" not in entry or _meant(entry["meaning"])
    kind = spec.hierarchy.kind if spec is not None and spec.hierarchy is not None else None
    fits &= entry.get("hierarchy") in (None, kind) and ("level" not in entry or _count(entry["level"]))
    return fits and _nodes(entry.get("nodes", {}), {label for label in codes(table[name])[1] if label is not None})


def _meant(words: Any) -> bool:
    """A sentence of the codebook's own, which names no cell."""
    return words in _MEANINGS


_MEANINGS = frozenset(
    [
        "",
        "number of the group that a record stands in",
        "how often the value stands in the group",
        "row of the prior that the record falls into; veil.json lists them",
        "the person's events before this one",
        "pseudonym of the person in this publication",
        "pseudonym of the visit in this publication",
    ]
)


def _nodes(nodes: Any, labels: set[str]) -> bool:
    """Nodes above published labels, with those labels and no others."""
    if not isinstance(nodes, dict):
        return False
    return all(
        isinstance(node, dict)
        and set(node) <= {"below", "size"}
        and _count(node.get("size", 0))
        and isinstance(node.get("below", []), list)
        and set(map(str, node.get("below", []))) <= labels
        for node in nodes.values()
    )
