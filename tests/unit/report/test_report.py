"""The report: self-contained, without a private cell, with its figures as JSON; and the audit behind it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import audit_cases as cases
import numpy as np
import pyarrow as pa
import pytest

from reticent.api import anonymize
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.report import AuditInputs, audit, compare, write_report
from reticent.report.page import render_html
from reticent.svg import Bar, Point, Range, bars, frontier, ranges

COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
    "town": "quasi",
    "ill": "sensitive",
}


def policy(privacy, method="optimal"):
    data = {"version": 1, "person": "id", "columns": COLUMNS, "privacy": privacy, "table": {"method": method}}
    return Policy.from_dict(data)


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": [f"SECRET-{i}" for i in range(n)],
            "age": rng.integers(7020, 7080, n),
            "town": [f"town{i}" for i in rng.integers(0, 3, n)],
            "ill": [f"ill{i}" for i in rng.integers(0, 8, n)],
        }
    )


@pytest.fixture(scope="module")
def audited():
    rules, table = policy({"k": 5, "l": 3}), people()
    release = anonymize(table, rules, seed=1)
    return audit([release], rules, AuditInputs(original=table, population=50_000, seed=7)), release, table


class Tags(HTMLParser):
    """Collects what a browser would fetch, and checks that tags are closed."""

    VOID = frozenset({"meta", "br", "link", "img", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.ids, self.links = [], [], set(), set()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.fetched += [value for name, value in attrs if name in ("src", "srcset", "action", "xlink:href")]
        self.fetched += [tag] if tag in ("script", "link", "img", "iframe") else []
        self.ids |= {given["id"]} if "id" in given else set()
        self.links |= {given["href"]} if "href" in given else set()
        if tag not in self.VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_nothing_from_outside_and_is_well_formed(audited):
    page = render_html(audited[0])
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.fetched == []
    assert all(link.startswith("#") and link[1:] in tags.ids for link in tags.links)
    assert not re.search(r"https?://|@import|url\(", page)


def test_no_private_cell_is_in_the_report(audited, tmp_path):
    found, release, table = audited
    page, figures = write_report(tmp_path / "report.html", found)
    both = page.read_text() + figures.read_text()
    assert "SECRET" not in both
    shown = set(release.tables["data"]["age"].cast(pa.string()).to_pylist())
    for age in set(table["age"].cast(pa.string()).to_pylist()) - shown:
        assert not re.search(rf"(?<![\d.]){age}(?![\d.])", both)
    assert page.stat().st_mode & 0o777 == 0o600
    assert figures.name == "audit.json"


def test_the_json_file_holds_every_figure(audited):
    found = json.loads(json.dumps(audited[0].to_dict(), allow_nan=False))
    assert found["refuted"] is False
    assert found["verify"]["holds"]
    assert {attack["attack"] for attack in found["attacks"]} >= {"linkage", "homogeneity", "skewness"}
    assert set(found["not_applicable"]) >= {"averaging", "intersection", "update-graph"}
    assert found["risk"]["prosecutor"]["highest"] <= 1 / 5
    assert found["initial_risk"]["highest"] >= found["risk"]["prosecutor"]["highest"]
    assert len(found["risk"]["safe_harbor"]) == 18
    use = found["utility"]
    assert 0 <= use["attributes"]["age"]["loss"] <= 1
    assert use["sensitive_distance"] == pytest.approx(0, abs=0.05)
    assert use["query_error"]["median"] < 0.5
    assert use["classifier"]["release_accuracy"] >= 0


def test_the_same_seed_gives_the_same_figures(audited):
    found, release, table = audited
    again = audit([release], found.policy, AuditInputs(original=table, population=50_000, seed=7))
    one, two = found.to_dict(), again.to_dict()
    del one["time"], two["time"]
    assert one == two


def test_a_release_published_as_it_is_loses_nothing(audited):
    table = people()
    rows = list(zip(*[table[name].cast(pa.string()).to_pylist() for name in ("age", "town", "ill")], strict=True))
    plain = cases.generalised(rows, {}, quasi=("age", "town"))
    use = audit([plain], policy({"k": 2}), AuditInputs(original=table, seed=1)).utility
    assert use["attributes"]["age"]["loss"] == 0
    assert use["attributes"]["age"]["distance"] == 0
    assert use["query_error"]["median"] == pytest.approx(0, abs=1e-12)
    assert use["attributes"]["age"]["association"]["before"] == use["attributes"]["age"]["association"]["after"]


def test_a_refuted_claim_shows_in_red_and_in_the_result():
    rows = [("[20, 40)", "town1", "ill1")] * 4
    rules = policy({"k": 2, "l": 2})
    found = audit([cases.generalised(rows, {"k": 2, "l": {"distinct": 2}}, quasi=("age", "town"))], rules)
    assert found.refuted
    assert "REFUTED" in render_html(found)


def test_texts_from_outside_are_escaped():
    rules = Policy.from_dict({"version": 1, "columns": {"<b>age": "quasi", "ill": "sensitive"}, "privacy": {"k": 2}})
    release = cases.generalised([("x", "y")] * 3, {"<script>": "<i>"}, quasi=("<b>age",))
    page = render_html(audit([release], rules), command="reticent audit '<script>'")
    assert "<script" not in page
    assert "<b>age" not in page


def test_candidates_are_compared_and_what_cannot_be_met_is_said(tmp_path):
    table = people()
    tried = compare(
        table,
        [
            ("loose", policy({"k": 2})),
            ("strict", policy({"k": 40})),
            ("groups", policy({"l": 4}, "anatomy")),
            ("never", policy({"k": 5000})),
        ],
        seed=1,
    )
    by_name = {one.name: one for one in tried}
    assert not by_name["never"].met
    assert by_name["strict"].query_error >= by_name["loose"].query_error
    assert by_name["groups"].guess == pytest.approx(0.25, abs=0.01)
    assert any(one.frontier for one in tried)
    page, figures = write_report(tmp_path / "c.html", None, tried)
    assert "cannot be met" in page.read_text()
    assert len(json.loads(figures.read_text())["compare"]) == 4


def test_nothing_to_audit_is_said():
    with pytest.raises(PolicyError, match="no release"):
        audit([], policy({"k": 2}))


def test_plots_are_drawn_for_empty_and_extreme_figures():
    for svg in (
        bars("t", []),
        bars("t", [Bar("a" * 90, 0, "0"), Bar("b", 1e9, "many", highlight=True)]),
        ranges("t", [Range("a", 0.5, 0.4, 0.6, None), Range("b", 1, 1, 1, 0.1)]),
        frontier("t", [], "x", "y"),
        frontier("t", [Point("a", 0, 0, True), Point("b", 1, 1, True)], "x", "y"),
    ):
        tags = Tags()
        tags.feed(svg)
        assert tags.open == []
        assert "nan" not in svg
