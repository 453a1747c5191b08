"""Metadata files of a folder: manifest, codebook and README, each entry from a closed list.

Guarantee: if the findings hold, the folder has the tables of its shape, each once, and no other file. Every entry of the
    manifest is known and well-formed (a number, a digest, a time, a word of a closed list). The codebook agrees with tables,
    policy and manifest, and README.txt is generated from it. So an attacker finds no hidden message there.
Not covered: the name of a publication, which its custodian chose; digits of figures that cannot be recomputed.
Cost: reads the metadata files and the distinct labels of each column.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from reticent.policy import Policy
from reticent.release.codebook import OMISSION_RATE_NOTE, citation, describe_columns, describe_stream_column, readme
from reticent.release.folder import FORMAT
from reticent.release.wording import (
    HOW_TO_READ,
    MAY_CONCLUDE,
    MAY_NOT_CONCLUDE,
    claims_in_words,
    count_absent_sentences,
    find_unknown_sentences,
)
from reticent.verify.published import Published
from reticent.verify.result import Finding, none_of

METHODS = {
    "table": ("auto", "optimal", "supervised", "local", "mondrian", "anatomy", "veil", "linked"),
    "evolving": ("veil", "indexed", "enc", "encc", "eac", "red"),
    "series": ("veil", "m-distinct", "m-distinct*", "m-invariance", "l-diversity"),
    "stream": ("veil", "delay-free", "castle"),
}
_TABLES = {
    "generalized": {"data"},
    "anatomy": {"qit", "st"},
    "m-distinct": {"data", "counterfeits", "plain"},
    "veil": {"data"},
    "stream": {"group", "tuple", "record"},
}
_CLAIMS = {"k", "l", "t", "average_risk", "population_uniqueness", "k_map", "posterior", "max_risk", "publications"}
_CLAIMS |= {"veil", "m-distinct", "m-distinct*", "m-invariance"}
_CLAIM_FIELDS = {
    "persons",
    "distinct",
    "entropy",
    "recursive",
    "frequency",
    "equal",
    "ordered",
    "hierarchical",
    "at_most",
}
_CLAIM_FIELDS |= {"share", "population"}
_DIGEST, _OPTIONAL_DIGEST = re.compile(r"[0-9a-f]{64}"), re.compile(r"([0-9a-f]{64})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}((a|b|rc|\.dev|\.post)\d{1,4})?")
_EPOCH = re.compile(r"[0-9a-f]{16}-[1-9]\d{0,5}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MAX_FIGURE = 2**53
"""Larger numbers have more digits than a figure needs."""


def check_metadata(release: Published, policy: Policy) -> list[Finding]:
    """Check the metadata files of a folder; a release in memory has none yet."""
    manifest = release.manifest
    if manifest is None:
        malformed = None if release.codebook is None else malformed_codebook_entries(release.codebook, policy)
        return (
            []
            if malformed is None
            else [finding_of_names("every entry of the stream's codebook is known and well-formed", malformed)]
        )
    findings = [
        finding_of_names("the folder has only files of its shape, each once", _unexpected_files(release, policy)),
        finding_of_names("every entry of the manifest is well-formed", _malformed_entries(manifest)),
    ]
    guarantee = _as_dict(manifest.get("guarantee"))
    findings.append(
        finding_of_names(_WORDS_CLAIM, wording_errors(guarantee, str(manifest.get("method")), release.kind, policy))
    )
    if release.codebook is not None:
        findings.append(
            finding_of_names(
                "the codebook agrees with manifest, tables and policy", _wrong_codebook_entries(release, policy)
            )
        )
    if release.readme is not None:
        same = release.codebook is not None and _render_readme(release.codebook) == release.readme
        findings.append(Finding("README.txt matches the codebook", same))
    return findings


_WORDS_CLAIM = "the guarantee uses the sentences of its method"


def wording_errors(guarantee: Mapping[str, Any], method: str, kind: str, policy: Policy) -> list[str]:
    """List unknown and repeated sentences of a guarantee, and the number of required sentences that are missing."""
    words = guarantee.get("not_covered", [])
    if not _is_word_list(words):
        return ["not_covered"]
    uncounted = policy.tables.uncounted if policy.tables is not None else ()
    household = policy.household is not None
    absent = count_absent_sentences(method, kind, words, household=household)
    odd = find_unknown_sentences(str(guarantee.get("against", "")), words, [*policy.columns, *uncounted])
    odd += [f"{len(words) - len(set(words))} repeated"] if len(set(words)) < len(words) else []
    return odd + ([f"{absent} missing"] if absent else [])


def finding_of_names(claim: str, names: Collection[str]) -> Finding:
    """Return a finding that names the first few violations."""
    return none_of(claim, len(names), ", ".join(name[:60] for name in list(names)[:5]))


def _claim_sentences(claims: Mapping[str, Any]) -> list[str] | None:
    """Return the sentences of the claims; None if a claim is malformed."""
    try:
        return claims_in_words(claims)
    except (TypeError, ValueError, AttributeError):
        return None


def _render_readme(codebook: Mapping[str, Any]) -> str | None:
    try:
        return readme(codebook)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _unexpected_files(release: Published, policy: Policy) -> list[str]:
    """List files that the shape does not have, and tables in two formats."""
    known, tables = {"README.txt", "codebook.json"}, _TABLES.get(release.shape, set())
    listed = [str(name) for name in _as_dict((release.manifest or {}).get("files"))]
    if release.shape == "linked" and policy.tables is not None:
        tables = set(policy.tables.layout(policy.released))
    known |= {f"{release.shape}.json"} if release.shape in ("veil", "linked") else set()
    odd = [name for name in listed if name not in known and PurePath(name).stem not in tables]
    odd += [
        name for name in listed if PurePath(name).stem in tables and PurePath(name).suffix not in (".csv", ".parquet")
    ]
    stems = [PurePath(name).stem for name in listed if name not in known]
    return odd + [name for name in listed if name not in known and stems.count(PurePath(name).stem) > 1]


def _as_dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def is_figure(value: Any) -> bool:
    """Return whether the value is a number of allowed size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_FIGURE


def is_count(value: Any) -> bool:
    """Return whether the value is a count: a whole number of at least 0."""
    return isinstance(value, int) and is_figure(value) and value >= 0


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        return False
    try:
        return dt.datetime.fromisoformat(value) is not None
    except ValueError:
        return False


def _text_form(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _word_form(words: Iterable[str]) -> Callable[[Any], bool]:
    return lambda value: value in tuple(words)


def _entries_form(**forms: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(key in forms and forms[key](one) for key, one in value.items())


def _is_word_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_claim_dict(value: Any) -> bool:
    return isinstance(value, dict) and set(value) <= _CLAIMS and all(map(_is_claim, value.values()))


def _is_claim(value: Any) -> bool:
    """Return whether the value is a number, a list of numbers, or numbers by kind of a model."""
    if isinstance(value, dict):
        return set(value) <= _CLAIM_FIELDS and all(map(_is_claim, value.values()))
    return all(map(is_figure, value)) if isinstance(value, list) else is_figure(value)


ENTRY_FORMS: Mapping[str, Callable[[Any], bool]] = {
    "kind": _word_form(METHODS),
    "shape": _word_form(HOW_TO_READ),
    "policy_hash": _text_form(_OPTIONAL_DIGEST),
    "seeded": lambda value: isinstance(value, bool),
    "metrics": lambda value: isinstance(value, dict),  # entries are checked in closed_lists
    "explain": lambda value: isinstance(value, dict),
    "format": lambda value: value == FORMAT and is_figure(value),
    "time": _is_time,
    "versions": _entries_form(reticent=_text_form(_VERSION), python=_text_form(_VERSION), pyarrow=_text_form(_VERSION)),
    "records": _entries_form(input=is_count, published=is_count, withheld=is_count, suppressed=is_count),
    "guarantee": _entries_form(
        claims=_is_claim_dict, against=lambda value: isinstance(value, str), not_covered=_is_word_list
    ),
    "files": lambda value: isinstance(value, dict) and all(map(_text_form(_DIGEST), value.values())),
    "store": _entries_form(
        publisher=_text_form(_NAME),
        epoch=_text_form(_EPOCH),
        number=is_count,
        digest=_text_form(_OPTIONAL_DIGEST),
        predecessor=_text_form(_OPTIONAL_DIGEST),
    ),
}


def _malformed_entries(manifest: Mapping[str, Any]) -> list[str]:
    """List malformed entries; unknown entries are a finding of their own."""
    odd = [key for key, fits in ENTRY_FORMS.items() if key in manifest and not fits(manifest[key])]
    fits = manifest.get("method") in METHODS.get(str(manifest.get("kind")), ())
    return odd + ([] if fits or "method" not in manifest else ["method"])


def _wrong_codebook_entries(release: Published, policy: Policy) -> list[str]:
    """List entries of the codebook that differ from the release."""
    codebook, manifest = release.codebook or {}, release.manifest or {}
    guarantee = _as_dict(manifest.get("guarantee"))
    claims = _as_dict(guarantee.get("claims"))
    shape = release.shape
    same = {
        "format": 1,
        "kind": manifest.get("kind"),
        "shape": shape,
        "method": manifest.get("method"),
        "sensitive": next(iter(policy.sensitive), None),
        "records": manifest.get("records"),
        "guarantee": dict(guarantee) | {"words": _claim_sentences(claims)},
        "reading": list(HOW_TO_READ.get(shape, ())),
        "may_be_concluded": list(MAY_CONCLUDE.get(shape, ())),
        "may_not_be_concluded": list(MAY_NOT_CONCLUDE),
        "cite": citation(*(str(manifest.get(key)) for key in ("kind", "method", "policy_hash"))),
    }
    odd = [key for key in codebook if key not in same and key != "columns"]
    odd += [key for key, value in same.items() if key in codebook and not _is_same_json(codebook[key], value)]
    return odd + _wrong_columns(release, policy)


def _is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values have the same JSON text: 0, 0.0 and false differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _wrong_columns(release: Published, policy: Policy) -> list[str]:
    """List columns that the codebook describes differently from table and policy, or not exactly once."""
    columns = (release.codebook or {}).get("columns")
    listed = [entry for entry in columns if isinstance(entry, dict)] if isinstance(columns, list) else []
    if not isinstance(columns, list) or len(listed) < len(columns):
        return ["columns"]
    tables = {str(entry.get("table")): None for entry in listed}
    if set(tables) != set(release.tables):
        return ["columns"]
    known = describe_columns({name: release.tables[name] for name in tables}, release.shape, policy)
    if len(listed) != len(known):
        return ["columns"]
    return [
        f"column {at}"
        for at, (one, other) in enumerate(zip(listed, known, strict=True), 1)
        if not _is_same_column(one, other, release.tables[other["table"]].num_rows)
    ]


def _is_same_column(entry: Mapping[str, Any], known: Mapping[str, Any], rows: int) -> bool:
    """Compare column entries; the stated type may be wider (integer, number, text), or any if all cells are missing."""
    wider = {"integer": {"integer", "number", "text"}, "number": {"number", "text"}, "date": {"date", "text"}}
    types = wider.get(str(known.get("type")), {"text"}) if known["missing"] < rows else {"text", *wider}
    return str(entry.get("type")) in types and _is_same_json({**entry, "type": ""}, {**known, "type": ""})


def malformed_codebook_entries(book: Mapping[str, Any], policy: Policy) -> list[str]:
    """List unknown or malformed entries of a stream's codebook; the veil verifier checks the entry `veil`."""
    claims = _as_dict(_as_dict(book.get("guarantee")).get("claims"))
    forms: dict[str, Callable[[Any], bool]] = {
        "type": lambda value: value == "codebook",
        "kind": lambda value: value == "stream",
        "method": _word_form(METHODS["stream"]),
        "columns": lambda value: value == [describe_stream_column(policy, name) for name in policy.released],
        "guarantee": _entries_form(
            claims=_is_claim_dict,
            words=lambda value: value == _claim_sentences(claims),
            against=lambda value: isinstance(value, str),
            not_covered=_is_word_list,
        ),
        "policy": _text_form(_OPTIONAL_DIGEST),
        "notes": lambda value: value == [OMISSION_RATE_NOTE],
        "veil": lambda value: isinstance(value, dict),
    }
    odd = [key for key, value in book.items() if key not in forms or not forms[key](value)]
    return odd + wording_errors(_as_dict(book.get("guarantee")), str(book.get("method")), "stream", policy)
