"""The audit report in a real browser: nothing cut, nothing overlapping, nothing fetched; desktop, phone, dark and print."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reticent.api import anonymize
from reticent.policy import Policy
from reticent.report import AuditInputs, audit, compare, write_report

STICKING_OUT = """() => [...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
}).map(e => e.tagName + ' ' + (e.textContent || '').slice(0, 40))"""

CLASHES = """() => { const found = [];
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map(e => [e.getBoundingClientRect(), e.textContent]);
    texts.forEach(([a, name], i) => {
      if (a.right > frame.right + 1 || a.left < frame.left - 1 || a.bottom > frame.bottom + 1) found.push('cut: ' + name);
      for (const [b, other] of texts.slice(i + 1))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
          found.push(name + ' over ' + other);
    });
  } return found; }"""


@pytest.fixture
def browser_here(request):
    try:
        return request.getfixturevalue("browser")
    except pytest.FixtureLookupError:
        pytest.skip("no browser fixture")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    columns = {
        "id": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
        "a_quasi_identifier_with_a_long_name": "quasi",
        "ill": "sensitive",
    }
    policies = [
        (f"k{k}.yaml", Policy.from_dict({"version": 1, "person": "id", "columns": columns, "privacy": {"k": k}}))
        for k in (2, 5, 20)
    ]
    rng, n = np.random.default_rng(1), 300
    table = pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 80, n),
            "a_quasi_identifier_with_a_long_name": [f"t{i}" for i in rng.integers(0, 3, n)],
            "ill": [f"ill{i}" for i in rng.integers(0, 8, n)],
        }
    )
    release = anonymize(table, policies[1][1], seed=1)
    found = audit([release], policies[1][1], AuditInputs(original=table, population=10_000, seed=1))
    folder = tmp_path_factory.mktemp("report")
    return write_report(folder / "report.html", found, compare(table, policies, seed=1), "reticent audit " + "x" * 200)[
        0
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (375, "light"), (375, "dark")])
def test_nothing_is_cut_and_nothing_overlaps(browser_here, report, width, scheme):
    context = browser_here.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert page.evaluate(STICKING_OUT) == []
    assert page.evaluate(CLASHES) == []
    assert asked == [report.as_uri()]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) < 200) == (scheme == "dark")
    context.close()


def test_it_prints_to_pdf(browser_here, report):
    context = browser_here.new_context()
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 960})  # the width of A4 between the margins
    assert page.evaluate(STICKING_OUT) == []
    context.close()
