"""The anonymization report for an ethics board, in the outline of EMA policy 0070 and Health Canada, from one `audit.json`.

Figures and claims are those of the audit. Text that only people can write is marked `[TO BE FILLED IN: ...]`, and so are
figures that the audit could not measure; nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reticent.errors import DataError
from reticent.release.wording import SHAPES, claims_in_words
from reticent.report.markup import percent
from reticent.report.phrases import TITLES, WHY_NOT

FORMAT = 1
_CRITERIA = {
    "Singling out": ("linkage", "insiders", "linked-tables"),
    "Linkability": ("intersection", "subtraction", "averaging", "joint", "linked-tables"),
    "Inference": ("homogeneity", "skewness", "similarity", "informed-attacker", "definetti", "linked-tables"),
}
"""The three questions of the Article 29 Working Party (opinion 05/2014), and the attacks that answer each."""


def anonymization_report(file: Path) -> str:
    """Return the report as Markdown, for people to complete and sign.

    Raises:
        DataError: the file is not an `audit.json` of this version.
    """
    try:
        audit = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(
            f"{file} cannot be read as JSON.", hint="Give the audit.json file that `reticent audit` wrote."
        ) from None
    if not isinstance(audit, dict) or audit.get("format") != FORMAT or "variables" not in audit:
        raise DataError(f"{file} is not an audit.json of this version.", hint="Run `reticent audit` again.")
    parts = [
        ("In brief", _summary(audit)),
        ("1. The release", _release(audit)),
        ("2. Purpose, recipients and data environment", _environment()),
        ("3. Variables", _variables(audit)),
        ("4. Attackers and attacks", _attacks(audit)),
        ("5. Threshold", _threshold(audit)),
        ("6. Risk before anonymization", _initial_risk(audit)),
        ("7. Techniques and guarantees", _techniques(audit)),
        ("8. Residual risk", _residual_risk(audit)),
        ("9. Utility", _utility(audit)),
        ("10. What is not covered", _limits(audit)),
        ("11. Conclusion and sign-off", _conclusion(audit)),
    ]
    head = "# Anonymization report\n\nOutline: EMA policy 0070 and Health Canada. All figures come from the audit."
    return "\n\n".join([head, *(f"## {title}\n\n{text}" for title, text in parts)]) + "\n"


def placeholder(words: str) -> str:
    """Return a marked gap that a person has to fill in."""
    return f"**[TO BE FILLED IN: {words}]**"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _is_linked(audit: Mapping[str, Any]) -> bool:
    return bool(audit["releases"][-1]["shape"] == "linked")


def _risk_unit(audit: Mapping[str, Any]) -> str:
    """Return the unit that a risk refers to: person or record."""
    return "person" if _is_linked(audit) else "record"


def _summary(audit: Mapping[str, Any]) -> str:
    """Return the summary, which board members read first."""
    last, risk = audit["releases"][-1], audit["risk"]
    result = "SOME CLAIMS ARE REFUTED: do not release" if audit["refuted"] else "every claim holds"
    checks, attacks = len(audit["verify"]["findings"]), len(audit["attacks"])
    lines = [
        f"Release: {SHAPES.get(last['shape'], last['shape'])}; {_published_text(last)} records.",
        f"Audit: {checks} checks of the claims and {attacks} attacks; {result}.",
    ]
    if not risk["quasi_identifiers_as_they_are"]:
        lines.append(
            f"The highest re-identification risk of a {_risk_unit(audit)} is {_threshold_text(risk)} (section 5)."
        )
    lines.append(f"Not covered: {len(audit['not_covered'])} kinds of attack or attacker, listed in section 10.")
    lines.append("Decision for the board: whether the purpose justifies this risk, and under which conditions.")
    return _bullets(lines)


def _threshold_text(risk: Mapping[str, Any]) -> str:
    high, limit = risk["prosecutor"]["highest"], risk["threshold"]
    return f"{percent(high)}, {'at or below' if high <= limit else 'ABOVE'} the threshold of {percent(limit)}"


def _published_text(release: Mapping[str, Any]) -> str:
    return f"{release['records'].get('published', 0):,} of {release['records'].get('input', 0):,}"


def _release(audit: Mapping[str, Any]) -> str:
    rows = [
        (one["name"] or "release", SHAPES.get(one["shape"], one["shape"]), one["method"], _published_text(one))
        for one in audit["releases"]
    ]
    versions = ", ".join(f"{name} {number}" for name, number in audit["versions"].items())
    return "\n\n".join(
        [
            placeholder("name of the data or study, custodian, contact"),
            _table(("Release", "Kind of release", "Method", "Records published"), rows),
            f"Policy SHA-256 {audit['policy_hash']}. Audited {audit['time']} with {versions}.",
        ]
    )


def _environment() -> str:
    return "\n\n".join(
        [
            placeholder(
                "the purpose of the release and the recipients: the public, registered users, partners under contract"
            ),
            placeholder("how the data are shared, and which controls bind the recipients"),
        ]
    )


def _variables(audit: Mapping[str, Any]) -> str:
    rows = [(one["name"], one["role"], one["technique"]) for one in audit["variables"]]
    return (
        _table(("Variable", "Role and reason", "Technique"), rows)
        + "\n\n"
        + placeholder(
            "who decided the roles, and why others cannot know the variables with the role plain or sensitive"
        )
    )


def _attacks(audit: Mapping[str, Any]) -> str:
    against = audit["against"] or placeholder("the attacker that the guarantee is stated against")
    rows = [
        (
            TITLES.get(one["attack"], one["attack"]),
            one["question"],
            f"{one['tried']:,}",
            percent(one["accuracy"]),
            "-" if one["claim"] is None else percent(one["claim"]),
            "REFUTES the claim" if one["refuted"] else "holds" if one["claim"] is not None else "no claim",
        )
        for one in audit["attacks"]
    ]
    head = ("Attack", "The attacker", "Persons", "Right guesses", "Bound", "Result")
    skipped = [f"{TITLES.get(name, name)}: {WHY_NOT.get(name, 'does not apply')}" for name in audit["not_applicable"]]
    if _is_linked(audit):  # the reasons above apply to single tables
        names = ", ".join(TITLES.get(name, name) for name in audit["not_applicable"])
        skipped = [f"attacks on a single table or on several publications: {names}"]
    return "\n\n".join(
        [
            f"The guarantee is stated against this attacker: {against}.",
            _table(head, rows) if rows else placeholder("no attack could be tried; audit with --original"),
            "Attacks that do not apply:\n\n" + _bullets(skipped) if skipped else "",
            placeholder("how likely a deliberate attack, an accidental recognition and a data breach are"),
        ]
    )


def _threshold(audit: Mapping[str, Any]) -> str:
    risk = audit["risk"]
    return (
        f"A {_risk_unit(audit)} counts as exposed if its risk is above {risk['threshold']:g}. An equivalence class then "
        f"needs at least {risk['needed_class']} {_risk_unit(audit)}s. EMA and Health Canada use 0.09 for public release; "
        "1/11 is above this threshold.\n\n" + placeholder("why this threshold fits the recipients")
    )


def _initial_risk(audit: Mapping[str, Any]) -> str:
    risk = audit["initial_risk"]
    if risk is None:
        return placeholder("the risk before; audit with --original to measure it")
    return _bullets(_risk(risk, _risk_unit(audit)))


def _risk(risk: Mapping[str, Any], risk_unit: str) -> list[str]:
    return [
        f"highest risk of a {risk_unit}: {percent(risk['highest'])}",
        f"mean risk: {percent(risk['mean'])}",
        f"{risk_unit}s above the threshold: {percent(risk['above'])}",
    ]


def _techniques(audit: Mapping[str, Any]) -> str:
    claims = claims_in_words(audit["releases"][-1]["claims"])
    return _bullets(claims) if claims else placeholder("the release claims nothing; describe what was done")


def _residual_risk(audit: Mapping[str, Any]) -> str:
    risk, sizes = audit["risk"], audit["risk"]["class_sizes"]
    figures = [
        *_risk(risk["prosecutor"], _risk_unit(audit)),
        f"smallest class {sizes['smallest']:,}, median {sizes['median']:g}",
        f"unique in their class: {percent(risk['uniqueness'])}",
    ]
    parts = [_bullets(figures)]
    if risk["quasi_identifiers_as_they_are"]:
        parts.append(
            "Quasi-identifiers are published unchanged: an attacker may find a record; these figures do not say what the "
            "attacker learns from it."
        )
    if risk["journalist"] is None:
        parts.append(placeholder("the risk in the population; audit with --population to estimate it"))
    rows = []
    for criterion, names in _CRITERIA.items():
        tried = [one for one in audit["attacks"] if one["attack"] in names]
        worst = max(tried, key=lambda one: one["accuracy"], default=None)
        best_attack = (
            "no attack applied"
            if worst is None
            else f"{TITLES.get(worst['attack'], worst['attack'])}: {percent(worst['accuracy'])} right guesses"
        )
        rows.append(
            (
                criterion,
                best_attack,
                "yes" if any(one["refuted"] for one in tried) else "no" if tried else placeholder("assess"),
            )
        )
    return "\n\n".join([*parts, _table(("Criterion", "Best attack", "Exceeds the bound"), rows)])


def _utility(audit: Mapping[str, Any]) -> str:
    error = (audit["utility"].get("query_error") or {}).get("median")
    metrics = audit["releases"][-1].get("metrics", {})
    if _is_linked(audit) and {"loss", "rows_kept"} <= set(metrics):
        kept = f"{percent(metrics['rows_kept'])} of all rows are published; counts of visits and diagnoses are lower bounds."
        lost = f"Information loss of the quasi-identifiers: {percent(metrics['loss'])} (0%: unchanged, 100%: all lost)."
        return f"{kept} {lost} Sensitive values are exact.\n\n" + placeholder(
            "whether this serves the purpose in section 2"
        )
    measured = (
        placeholder("audit with --original to measure the utility")
        if error is None
        else f"Median error of random counts: {percent(error)}."
    )
    return measured + "\n\n" + placeholder("whether this serves the purpose in section 2")


def _limits(audit: Mapping[str, Any]) -> str:
    limits = audit["not_covered"]
    return _bullets(limits) if limits else placeholder("what the guarantee does not cover")


def _conclusion(audit: Mapping[str, Any]) -> str:
    risk = audit["risk"]
    claims = "REFUTED: do not release" if audit["refuted"] else "hold, recomputed from the release alone"
    lines = [f"The claims of the release {claims} ({len(audit['verify']['findings'])} checks)."]
    if not risk["quasi_identifiers_as_they_are"]:
        lines.append(f"The highest residual risk is {_threshold_text(risk)}.")
    lines += [
        placeholder("the decision and its conditions"),
        placeholder("names, signatures, date, and date of the next review"),
    ]
    return "\n\n".join(lines)
