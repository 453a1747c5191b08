"""The audit report: one HTML file that needs no network, for screen, phone and print; and the same as `audit.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from reticent.connectors.files.atomic import write_errors, write_text
from reticent.report import sections
from reticent.report.audit import Audit
from reticent.report.compare import ComparedPolicy
from reticent.report.markup import tag

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
{style}</style></head><body>
{body}
</body></html>
"""


def render_html(audit: Audit | None, candidates: Sequence[ComparedPolicy] = (), command: str = "") -> str:
    """Return the whole page as HTML."""
    parts = []
    if audit is not None:
        parts += [
            ("summary", "Summary", sections.summary(audit)),
            ("released", "What was released", sections.releases(audit)),
            ("guarantee", "What is guaranteed, and against whom", sections.guarantee(audit)),
            ("checks", "Claims, recomputed from the release alone", sections.checks(audit)),
            ("risk", "Re-identification risk", sections.risk(audit)),
            ("attacks", "Attacks on the release", sections.attacks(audit)),
            ("utility", "Utility of the release", sections.utility(audit)),
            ("harbor", "HIPAA Safe Harbor check", sections.safe_harbor(audit)),
        ]
    if candidates:
        parts.append(("compare", "Candidate policies compared", sections.comparison(candidates)))
    if audit is not None:
        parts += [
            ("roles", "Columns, roles and reasons", sections.roles(audit)),
            ("repeat", "How to repeat this audit", sections.reproduction(audit, command)),
            ("sign", "Sign-off", sections.sign_off()),
        ]
    links = tag(
        "nav", "".join(tag("a", title, href=f"#{name}") for name, title, _ in parts if name != "summary"), raw=True
    )
    head = tag("h1", "Privacy audit") + links
    body = "\n".join(
        f'<section id="{name}">{tag("h2", title) if name != "summary" else ""}{content}</section>'
        for name, title, content in parts
    )
    style = files("reticent.report").joinpath("style.css").read_text(encoding="utf-8")
    return _PAGE.format(title="Privacy audit", style=style, body=head + body)


def write_report(
    path: Path, audit: Audit | None, candidates: Sequence[ComparedPolicy] = (), command: str = ""
) -> tuple[Path, Path]:
    """Write the page and `audit.json` to the same folder; only the owner can read both files."""
    figures: dict[str, Any] = audit.to_dict() if audit is not None else {"format": 1}
    if candidates:
        figures["compare"] = [candidate.to_dict() for candidate in candidates]
    json_path = path.with_name("audit.json")
    with write_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, render_html(audit, candidates, command))
    write_text(json_path, json.dumps(figures, indent=2, allow_nan=False, default=str) + "\n")
    return path, json_path
