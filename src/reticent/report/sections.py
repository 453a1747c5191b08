"""The sections of the report; each turns a part of an `Audit` into HTML. No cell of the original appears in any."""

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

_KEY_DISCARDED = (
    "Persons appear by keyed pseudonyms; the key of this run is not kept, so nobody can trace them from this file."
)
_KEY_FROM_SEED = (
    "Pseudonyms follow from the seed and the row numbers of the original: made for tests, so keep this report inside."
)


def summary(audit: Audit) -> str:
    """The verdict and the figures that matter most."""
    latest = audit.releases[-1]
    broken = len(audit.verification.refuted) + sum(outcome.refuted for outcome in audit.outcomes)
    if audit.refuted:
        head, css, says = "REFUTED", "bad", f"{broken} claims or limits do not hold. Do not publish; see below which."
    else:
        says = f"{len(audit.verification.findings)} checks and {len(audit.outcomes)} attacks; none refutes a claim."
        head, css = "Every claim holds", "good"
    banner = f'<div class="banner {css}">{tag("b", head)}{paragraph(says)}</div>'
    about_values = [o for o in audit.outcomes if o.attack not in ("linkage", "skewness", "similarity")]
    worst = max(about_values, key=lambda outcome: outcome.accuracy, default=None)
    exact = " (not its value)" if audit.risk.exact else ""
    shown = [
        (f"{latest.counts.get('published', 0):,}", f"records in the latest of {len(audit.releases)} release(s)"),
        (percent(audit.risk.prosecutor.mean), f"mean chance to single out a record{exact}"),
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
    """Which releases, by which method, under which policy."""
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
    head = ("Release", "Kind", "Method", "Published", "Suppressed", "Held", "Policy hash")
    same = all(release.policy_hash == audit.policy.hash for release in audit.releases)
    note = "" if same else paragraph("Some releases were made under another policy than the one judged by.", "warn")
    return table(head, rows, (3, 4, 5)) + note + tag("p", f"Judged by the policy with SHA-256 {audit.policy.hash}.")


def guarantee(audit: Audit) -> str:
    """The claims in plain words, the adversary, and what is not covered."""
    latest = audit.releases[-1]
    sentences = wording.claims_in_words(latest.claims)
    out = (
        paragraph("The latest release claims:") + bullets(sentences)
        if sentences
        else paragraph("The release claims nothing.")
    )
    against, open_ = audit.against, audit.not_covered
    if against:
        out += paragraph(f"Against: {against}.")
    if open_:
        out += tag("h3", "Not covered") + bullets(open_)
    return out


def checks(audit: Audit) -> str:
    """Every recomputed claim."""
    rows = [
        (
            finding.claim,
            ("holds", "good") if finding.holds else ("FAILS", "bad"),
            _number(finding.measured),
            _number(finding.required),
            finding.where,
        )
        for finding in sorted(audit.verification.findings, key=lambda finding: finding.holds)
    ]
    notes = [
        *audit.verification.notes,
        *(f"Not recomputed here: the claim '{c}'." for c in audit.verification.unchecked),
    ]
    return table(("Claim", "Result", "Measured", "Required", "Where"), rows, (2, 3)) + bullets(notes)


def risk(audit: Audit) -> str:
    """Prosecutor, journalist, marketer; class sizes; what each quasi-identifier contributes."""
    assessment, people = audit.risk, audit.risk.journalist
    out = paragraph(
        f"A record counts as exposed when its risk is above {assessment.threshold:g}. The convention is strict: "
        f"1/11 = 0.0909 is above 0.09, so a class needs at least {assessment.needed} records. "
        "0.09 is the threshold of EMA policy 0070 and of Health Canada for public release."
    )
    if assessment.exact:
        out += paragraph(
            "This kind of release shows quasi-identifiers as they are: a record can be singled out, but its sensitive "
            "value stands among the candidates of its group. The figures below are about singling out only."
        )
    rows = [_risk_row("Prosecutor (knows the person is in the data)", assessment.prosecutor)]
    if audit.initial:
        rows.insert(0, _risk_row("Before: quasi-identifiers as they were", audit.initial))
    if people:
        rows.append(_risk_row("Journalist (population)" + (", estimated" if people.estimated else ""), people))
    out += table(("Adversary", "Highest", "Mean (marketer)", "Records above threshold"), rows, (1, 2, 3))
    sizes = assessment.sizes
    parts = [
        Bar(_span(low, high), count, f"{count:,}", highlight=high is not None and high < assessment.needed)
        for low, high, count in sizes.ranges
        if count
    ]
    caption = f"Records by size of their class; {sizes.classes:,} classes, the smallest of {sizes.smallest:,}, median {sizes.median:g}. Marked: below the threshold's class size."
    out += figure(bars("Records by class size", parts), caption)
    share = assessment.unique / sizes.rows if sizes.rows else 0.0
    lines = [f"Alone in their class: {assessment.unique:,} records ({percent(share)})."]
    lines += [
        f"Estimated population uniques ({'the one to believe' if name == 'chosen' else name}): {count:,.0f}."
        for name, count in assessment.population_unique.items()
    ]
    out += bullets(lines)
    items = [Bar(one.column, max(0.0, one.share), percent(max(0.0, one.share))) for one in assessment.contributions]
    return out + figure(
        bars("Contribution of each quasi-identifier", items),
        "Part of the mean risk that disappears when a quasi-identifier is dropped.",
    )


def attacks(audit: Audit) -> str:
    """Every attack: an overview, then one part each."""
    shown = [o for o in audit.outcomes if o.attack != "skewness"]
    items = [Range(o.attack, o.accuracy, *o.interval, o.claim) for o in shown]
    out = figure(
        ranges("Accuracy of each attack", items),
        "Share of right guesses with its 95% confidence interval; the green tick is what the release concedes.",
    )
    out += "".join(_attack(outcome) for outcome in audit.outcomes)
    if audit.skipped:
        out += tag("h3", "Not applicable")
        out += bullets(
            f"{phrases.TITLES.get(n, n)}: {phrases.WHY_NOT.get(n, 'does not apply')}." for n in audit.skipped
        )
    return (
        out + tag("h3", "The three questions of the European data-protection board") + _data_protection_criteria(audit)
    )


def utility(audit: Audit) -> str:
    """Loss, distances, correlation, query error, classifier, SAU."""
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
        head = ("Attribute", "Loss", "Cells made coarser", "Distance of distribution", "Association before", "after")
        out += table(head, rows, (1, 2, 3, 4, 5))
        out += figure(
            bars("Loss per attribute", [Bar(n, one["loss"], percent(one["loss"])) for n, one in attributes.items()]),
            "Loss per attribute: 0% = published as it was, 100% = nothing left. Association is Cramer's V with the sensitive value: of the original values before, of the published labels after.",
        )
        out += tag("h3", "Distributions, before and after")
        for name, one in attributes.items():
            items = [(entry["name"], entry["before"], entry["after"]) for entry in one["distribution"]]
            caption = (
                f"{name}: share of the original records, and below it what a reader reconstructs from the release."
            )
            out += figure(pairs(f"Distribution of {name}", items), caption)
    lines = []
    if error := figures.get("query_error"):
        lines.append(
            f"Random counts ({error['queries']} queries): median error {percent(error['median'])}, nine in ten below {percent(error['p90'])}."
        )
    if "sensitive_distance" in figures:
        lines.append(
            f"Distribution of sensitive values: moved by {percent(figures['sensitive_distance'])} (total variation)."
        )
    if scores := figures.get("classifier"):
        lines.append(
            f"Classifier of {scores['target']}, tested on original records: {percent(scores['release_accuracy'])} right when learnt from the release, "
            f"{percent(scores['original_accuracy'])} from the original, {percent(scores['constant_accuracy'])} by always saying the same "
            f"(macro F {scores['release_f']:.3f} against {scores['original_f']:.3f})."
        )
    if "sau" in figures:
        lines.append(
            f"Sensitive attribute uncertainty (SAU): {figures['sau']:.3f}; no method gets below {figures.get('sau_limit', 0):.3f}."
        )
    stated = ", ".join(f"{name.replace('_', ' ')} {value:,.4g}" for name, value in figures.get("stated", {}).items())
    if stated:
        lines.append(f"Stated by the release itself: {stated}.")
    if not attributes:
        lines.append("Give --original to measure loss, distances, correlation, query error and a classifier.")
    return out + bullets(lines)


def safe_harbor(audit: Audit) -> str:
    """The eighteen identifiers of the Safe Harbor rule."""
    rows = [
        (
            f"{number}. {check.identifier}",
            ("none found", "good") if check.clear else ("look at this", "warn"),
            "; ".join(check.columns),
        )
        for number, check in enumerate(audit.risk.safe_harbor, 1)
    ]
    intro = "Published columns compared with 45 CFR 164.514(b)(2), by name and by the look of their values. A help for the person who signs, not a determination."
    return paragraph(intro) + table(("Identifier", "Result", "Columns"), rows)


def comparison(candidates: Sequence[ComparedPolicy]) -> str:
    """The frontier of risk and utility."""
    tried = [c for c in candidates if c.guess is not None and c.query_error is not None]
    points = [Point(c.name, c.guess or 0.0, c.query_error or 0.0, c.frontier) for c in tried]
    plot = figure(
        frontier("Risk and utility", points, "right guesses of the sensitive value", "median query error"),
        "Left and low is better. The dashed line joins candidates that no other beats in both.",
    )
    numbers = {id(c): str(number) for number, c in enumerate(tried, 1)}
    rows = [
        (
            f"{numbers.get(id(c), '-')}. {c.name}",
            c.method,
            _share(c.guess),
            _share(c.mean_risk),
            _share(c.query_error),
            _share(c.suppressed),
            ("frontier", "good") if c.frontier else ("cannot be met", "bad") if not c.met else "beaten",
        )
        for c in candidates
    ]
    head = ("Policy", "Method", "Right guesses", "Singled out", "Query error", "Suppressed", "Result")
    return plot + table(head, rows, (2, 3, 4, 5))


def roles(audit: Audit) -> str:
    """Roles and rationale of every column."""
    return table(("Column", "Role and why", "Technique"), phrases.rationale(audit.policy))


def reproduction(audit: Audit, command: str) -> str:
    """What is needed to get the same figures again."""
    figures = audit.to_dict()
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    out = tag("pre", command) if command else ""
    lines = [
        f"Random choices of the auditor: seed {audit.seed}. With --seed {audit.seed} the sampled attacks come out the same.",
        _KEY_FROM_SEED if audit.inputs.seed is not None else _KEY_DISCARDED,
        f"Made with {versions} on {audit.time}. Machine-readable twin: audit.json beside this file.",
    ]
    return out + bullets(lines)


def sign_off() -> str:
    """Lines to sign on."""
    names = (
        "Data custodian, date",
        "Data-protection officer, date",
        "Recipient of the release",
        "Review again on (date)",
    )
    return f'<div class="sign">{"".join(tag("div", name) for name in names)}</div>'


def command_text(args: Sequence[str]) -> str:
    """A command line as it can be typed."""
    return "reticent " + shlex.join(args)


def _attack(outcome: Outcome) -> str:
    word, css = phrases.attack_result(outcome)
    low, high = outcome.interval
    claim = "nothing claimed" if outcome.claim is None else f"conceded {percent(outcome.claim)}"
    how = "counted against the truth" if outcome.counted else "expected from the posterior"
    out = tag("h3", phrases.TITLES.get(outcome.attack, outcome.attack)) + paragraph(outcome.question)
    out += paragraph(word, css)
    out += tiles(
        [
            (percent(outcome.accuracy), f"right guesses ({percent(low)} to {percent(high)}), {how}; {claim}"),
            (percent(outcome.highest), "highest posterior of any person"),
            (f"{outcome.sure:,} of {outcome.tried:,}", "persons the attacker is sure of"),
        ]
    )
    names = [f"{low:.0%} to {high:.0%}" for low, high in pairwise(BINS.tolist())]
    parts = [Bar(name, count, f"{count:,}") for name, count in zip(names, outcome.bins, strict=True) if count]
    out += figure(
        bars(f"Posteriors, {outcome.attack}", parts, room=100), "Persons by how sure the attacker is of the best guess."
    )
    if outcome.worst:
        shown = ", ".join(f"{p.pseudonym} ({percent(p.posterior)})" for p in outcome.worst[:5])
        out += tag("p", f"Worst off, by pseudonym: {shown}.", css="soft")
    return out + (bullets(outcome.notes) if outcome.notes else "")


def _data_protection_criteria(audit: Audit) -> str:
    by_name = {outcome.attack: outcome for outcome in audit.outcomes}
    linked, guess = by_name.get("linkage"), by_name.get("join-or-open") or by_name.get("homogeneity")
    return bullets(
        [
            f"Singling out: a record is picked out with a mean chance of {percent(audit.risk.prosecutor.mean)}.",
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
