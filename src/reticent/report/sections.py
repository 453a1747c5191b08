"""The sections of the audit report; each turns a part of an `Audit` into HTML. No cell of the original appears."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from reticent.audit.attack import Outcome
from reticent.audit.attack.outcome import BINS
from reticent.release import wording
from reticent.report import phrases
from reticent.report.audit import Audit
from reticent.report.compare import ComparedPolicy
from reticent.report.markup import bullets, figure, paragraph, percent, table, tag, tiles
from reticent.svg import Bar, Point, Range, bars, frontier, pairs, ranges

_KEY_DISCARDED = "Persons are shown by keyed pseudonyms. The key of this run is not stored, so this file cannot be traced to persons."
_KEY_FROM_SEED = (
    "Pseudonyms are derived from the seed and the row numbers of the original. Do not share this report outside."
)


def summary(audit: Audit) -> str:
    """Show the result and the most important figures."""
    latest = audit.releases[-1]
    broken = len(audit.result.refuted) + sum(outcome.refuted for outcome in audit.outcomes)
    if audit.refuted:
        head, css, text = "REFUTED", "bad", f"{broken} claims do not hold. Do not publish this release. Details below."
    else:
        text = f"{len(audit.result.findings)} checks and {len(audit.outcomes)} attacks; none refutes a claim."
        head, css = "Every claim holds", "good"
    banner = f'<div class="banner {css}">{tag("b", head)}{paragraph(text)}</div>'
    about_values = [o for o in audit.outcomes if o.attack not in ("linkage", "skewness", "similarity")]
    worst = max(about_values, key=lambda outcome: outcome.accuracy, default=None)
    exact = " (not its sensitive value)" if audit.risk.exact else ""
    shown = [
        (f"{latest.counts.get('published', 0):,}", f"records in the latest of {len(audit.releases)} release(s)"),
        (percent(audit.risk.prosecutor.mean), f"mean chance that an attacker singles out a record{exact}"),
    ]
    if worst:
        shown.append(
            (percent(worst.accuracy), f"right guesses of a sensitive value by the best attack ({worst.attack})")
        )
    error = audit.utility.get("query_error", {}).get("median")
    if error is not None:
        shown.append((percent(error), "median error of random counts"))
    hints = [f"{len(audit.releases)} publication(s)", f"policy {audit.policy.hash[:12]}", audit.time]
    return paragraph(" · ".join(hints), "soft") + banner + tiles(shown)


def releases(audit: Audit) -> str:
    """List the releases with method, records and policy."""
    rows = [
        (
            release.name or "release",
            wording.SHAPES.get(release.shape, release.shape),
            release.method or "unknown",
            f"{release.counts.get('published', 0):,} of {release.counts.get('input', 0):,}",
            f"{release.counts.get('suppressed', 0):,}",
            f"{release.counts.get('withheld', 0):,}",
            str(release.policy_hash or "none")[:12],
        )
        for release in audit.releases
    ]
    head = ("Release", "Kind", "Method", "Published", "Suppressed", "Withheld", "Policy hash")
    same = all(release.policy_hash == audit.policy.hash for release in audit.releases)
    note = "" if same else paragraph("Some releases were made with a policy other than the one of this audit.", "warn")
    return table(head, rows, (3, 4, 5)) + note + tag("p", f"Policy of this audit: SHA-256 {audit.policy.hash}.")


def guarantee(audit: Audit) -> str:
    """Show the claims in plain words, the attacker, and what is not covered."""
    latest = audit.releases[-1]
    sentences = wording.claims_in_words(latest.claims)
    out = (
        paragraph("The latest release claims:") + bullets(sentences)
        if sentences
        else paragraph("The release claims nothing.")
    )
    against, not_covered = audit.against, audit.not_covered
    if against:
        out += paragraph(f"The guarantee is stated against this attacker: {against}.")
    if not_covered:
        out += tag("h3", "Not covered") + bullets(not_covered)
    return out


def checks(audit: Audit) -> str:
    """List every recomputed claim."""
    rows = [
        (
            finding.claim,
            ("holds", "good") if finding.holds else ("FAILS", "bad"),
            _number(finding.measured),
            _number(finding.required),
            finding.where,
        )
        for finding in sorted(audit.result.findings, key=lambda finding: finding.holds)
    ]
    notes = [*audit.result.notes, *(f"Not checked in this audit: the claim '{c}'." for c in audit.result.unchecked)]
    return table(("Claim", "Result", "Measured", "Required", "Where"), rows, (2, 3)) + bullets(notes)


def risk(audit: Audit) -> str:
    """Show prosecutor, journalist and marketer risk, class sizes, and the contribution of each quasi-identifier."""
    assessment, people = audit.risk, audit.risk.journalist
    out = paragraph(
        f"A record counts as exposed if its risk is above {assessment.threshold:g}. A class then needs at least "
        f"{assessment.needed} records (1/11 = 0.0909 is above 0.09). "
        "0.09 is the threshold of EMA policy 0070 and of Health Canada for public release."
    )
    if assessment.exact:
        out += paragraph(
            "This kind of release publishes quasi-identifiers unchanged. An attacker can single out a record, but its "
            "sensitive value is hidden among the candidates of its group. The figures below are about singling out only."
        )
    rows = [_risk_row("Prosecutor (knows the person is in the data)", assessment.prosecutor)]
    if audit.initial:
        rows.insert(0, _risk_row("Before anonymization (prosecutor)", audit.initial))
    if people:
        rows.append(
            _risk_row(
                "Journalist (does not know who is in the data)" + (", estimated" if people.estimated else ""), people
            )
        )
    out += table(("Attacker", "Highest risk", "Mean risk (marketer)", "Records above threshold"), rows, (1, 2, 3))
    sizes = assessment.sizes
    parts = [
        Bar(_span(low, high), count, f"{count:,}", highlight=high is not None and high < assessment.needed)
        for low, high, count in sizes.ranges
        if count
    ]
    caption = (
        f"Records by size of their class. {sizes.classes:,} classes: smallest {sizes.smallest:,}, median {sizes.median:g}. "
        f"Highlighted: classes with fewer than {assessment.needed} records."
    )
    out += figure(bars("Records by class size", parts), caption)
    share = assessment.unique / sizes.rows if sizes.rows else 0.0
    lines = [f"Unique in their class: {assessment.unique:,} records ({percent(share)})."]
    lines += [
        f"Estimated population uniques ({'recommended estimate' if name == 'chosen' else name}): {count:,.0f}."
        for name, count in assessment.population_unique.items()
    ]
    out += bullets(lines)
    items = [Bar(one.column, max(0.0, one.share), percent(max(0.0, one.share))) for one in assessment.contributions]
    return out + figure(
        bars("Contribution of each quasi-identifier", items),
        "Share of the mean risk that disappears if this quasi-identifier is dropped.",
    )


def attacks(audit: Audit) -> str:
    """Show an overview of all attacks, then each attack."""
    shown = [o for o in audit.outcomes if o.attack != "skewness"]
    items = [Range(o.attack.removesuffix("-attacker"), o.accuracy, *o.interval, o.claim) for o in shown]
    out = figure(
        ranges("Accuracy of each attack", items),
        "Share of right guesses with its 95% confidence interval. The green mark is the bound that the release states.",
    )
    out += "".join(_attack(outcome) for outcome in audit.outcomes)
    if audit.skipped:
        out += tag("h3", "Not applicable")
        out += bullets(
            f"{phrases.TITLES.get(n, n)}: {phrases.WHY_NOT.get(n, 'does not apply')}." for n in audit.skipped
        )
    return (
        out + tag("h3", "The three criteria of European data protection authorities") + _data_protection_criteria(audit)
    )


def utility(audit: Audit) -> str:
    """Show loss, distances, association, query error, classifier and SAU."""
    figures = audit.utility
    attributes: dict[str, Any] = figures.get("attributes", {})
    out = ""
    if attributes:
        rows = [
            (
                name,
                percent(one["loss"]),
                percent(one["coarser"]),
                percent(one["distance"]),
                f"{one['association']['before']:.3f}",
                f"{one['association']['after']:.3f}",
            )
            for name, one in attributes.items()
        ]
        head = (
            "Attribute",
            "Loss",
            "Coarser cells",
            "Change of distribution",
            "Association before",
            "Association after",
        )
        out += table(head, rows, (1, 2, 3, 4, 5))
        out += figure(
            bars("Loss per attribute", [Bar(n, one["loss"], percent(one["loss"])) for n, one in attributes.items()]),
            "Loss per attribute: 0% = unchanged, 100% = all detail lost. Association: Cramer's V with the sensitive value.",
        )
        out += tag("h3", "Distributions, before and after")
        for name, one in attributes.items():
            items = [(entry["name"], entry["before"], entry["after"]) for entry in one["distribution"]]
            caption = f"{name}: share of the original records, and below it the share that a recipient estimates from the release."
            out += figure(pairs(f"Distribution of {name}", items), caption)
    lines = []
    if error := figures.get("query_error"):
        lines.append(
            f"Random counts ({error['queries']} queries): median error {percent(error['median'])}, "
            f"90% of errors below {percent(error['p90'])}."
        )
    if "sensitive_distance" in figures:
        lines.append(
            f"Distribution of sensitive values: changed by {percent(figures['sensitive_distance'])} (total variation)."
        )
    if scores := figures.get("classifier"):
        lines.append(
            f"Classifier of {scores['target']}, tested on original records: accuracy {percent(scores['release_accuracy'])} "
            f"if trained on the release, {percent(scores['original_accuracy'])} on the original, "
            f"{percent(scores['constant_accuracy'])} if it always predicts the most frequent class "
            f"(macro F1 {scores['release_f']:.3f} and {scores['original_f']:.3f})."
        )
    if "sau" in figures:
        lines.append(
            f"Sensitive attribute uncertainty (SAU): {figures['sau']:.3f}; lower limit of any method: "
            f"{figures.get('sau_limit', 0):.3f}."
        )
    stated = ", ".join(f"{name.replace('_', ' ')} {value:,.4g}" for name, value in figures.get("stated", {}).items())
    if stated:
        lines.append(f"Stated in the release: {stated}.")
    if not attributes:
        lines.append("Add --original to measure loss, distances, association, query error and a classifier.")
    return out + bullets(lines)


def safe_harbor(audit: Audit) -> str:
    """List the eighteen identifiers of the Safe Harbor rule."""
    rows = [
        (
            f"{number}. {check.identifier}",
            ("none found", "good") if check.clear else ("to review", "warn"),
            "; ".join(check.columns),
        )
        for number, check in enumerate(audit.risk.safe_harbor, 1)
    ]
    intro = (
        "Published columns compared with 45 CFR 164.514(b)(2), by column name and value pattern. This check helps the "
        "person who signs; it is not an expert determination."
    )
    return paragraph(intro) + table(("Identifier", "Result", "Columns"), rows)


def comparison(candidates: Sequence[ComparedPolicy]) -> str:
    """Show risk and utility of the compared policies, with the frontier."""
    measured = [c for c in candidates if c.guess is not None and c.query_error is not None]
    points = [Point(c.name, c.guess or 0.0, c.query_error or 0.0, c.frontier) for c in measured]
    plot = figure(
        frontier("Risk and utility", points, "right guesses of the sensitive value", "median query error"),
        "Lower left is better. The dashed line joins the policies that no other policy dominates.",
    )
    numbers = {id(c): str(number) for number, c in enumerate(measured, 1)}
    rows = [
        (
            f"{numbers.get(id(c), '-')}. {c.name}",
            c.method,
            _share(c.guess),
            _share(c.mean_risk),
            _share(c.query_error),
            _share(c.suppressed),
            ("frontier", "good") if c.frontier else ("cannot be met", "bad") if not c.met else "dominated",
        )
        for c in candidates
    ]
    head = ("Policy", "Method", "Right guesses", "Singled out", "Query error", "Suppressed", "Result")
    return plot + table(head, rows, (2, 3, 4, 5))


def roles(audit: Audit) -> str:
    """List role, reason and technique of every column."""
    return table(("Column", "Role and reason", "Technique"), phrases.rationale(audit.policy))


def reproduction(audit: Audit, command: str) -> str:
    """Show how to get the same figures again."""
    figures = audit.to_dict()
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    out = tag("pre", command) if command else ""
    lines = [
        f"Random seed of this audit: {audit.seed}. Run it with --seed {audit.seed} to repeat the sampled attacks exactly.",
        _KEY_FROM_SEED if audit.inputs.seed is not None else _KEY_DISCARDED,
        f"Created with {versions} on {audit.time}. The file audit.json in the same folder has the figures as JSON.",
    ]
    return out + bullets(lines)


def sign_off() -> str:
    """Show the signature lines."""
    names = (
        "Data custodian, date",
        "Data protection officer, date",
        "Recipient of the release",
        "Review again on (date)",
    )
    return f'<div class="sign">{"".join(tag("div", name) for name in names)}</div>'


def command_text(args: Sequence[str]) -> str:
    """Return the command line, quoted for a shell."""
    return "reticent " + shlex.join(args)


def _attack(outcome: Outcome) -> str:
    word, css = phrases.attack_result(outcome)
    low, high = outcome.interval
    claim = "no bound stated" if outcome.claim is None else f"stated bound {percent(outcome.claim)}"
    how = "counted with the true values" if outcome.counted else "expected from the posterior"
    out = tag("h3", phrases.TITLES.get(outcome.attack, outcome.attack)) + paragraph(outcome.question)
    out += paragraph(word, css)
    out += tiles(
        [
            (percent(outcome.accuracy), f"right guesses ({percent(low)} to {percent(high)}), {how}; {claim}"),
            (percent(outcome.highest), "highest posterior of any person"),
            (f"{outcome.sure:,} of {outcome.tried:,}", "persons about whom the attacker is certain"),
        ]
    )
    names = [f"{low:.0%} to {high:.0%}" for low, high in pairwise(BINS.tolist())]
    parts = [Bar(name, count, f"{count:,}") for name, count in zip(names, outcome.bins, strict=True) if count]
    out += figure(
        bars(f"Posteriors, {outcome.attack}", parts, room=100), "Persons by the attacker's certainty of the best guess."
    )
    if outcome.worst:
        shown = ", ".join(f"{p.pseudonym} ({percent(p.posterior)})" for p in outcome.worst[:5])
        out += tag("p", f"Persons at highest risk, by pseudonym: {shown}.", css="soft")
    return out + (bullets(outcome.notes) if outcome.notes else "")


def _data_protection_criteria(audit: Audit) -> str:
    by_name = {outcome.attack: outcome for outcome in audit.outcomes}
    linked, guess = by_name.get("linkage"), by_name.get("homogeneity")
    return bullets(
        [
            f"Singling out: an attacker finds a person's record with a mean chance of {percent(audit.risk.prosecutor.mean)}.",
            f"Linkability: {percent(linked.accuracy)} of matches with another table are right."
            if linked
            else "Linkability: not tried.",
            f"Inference: the best guess of a sensitive value is right in {percent(guess.accuracy)} of all cases."
            if guess
            else "Inference: not tried.",
        ]
    )


def _risk_row(name: str, assessment: Any) -> tuple[str, str, str, str]:
    return name, percent(assessment.highest), percent(assessment.mean), percent(assessment.above)


def _span(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} and more"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"
