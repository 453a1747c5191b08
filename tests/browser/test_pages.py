"""The studio's pages: each has an address, can be read by everybody, fits a phone and goes by the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import ALL, WIDTHS

from reticent.service.tokens import Role

PAGES = (
    *("/", "/roles", "/drafts", "/compare", "/sources", "/live", "/evolving?name=hospital", "/series?name=patients"),
    *(
        "/history",
        "/release",
        "/audit",
        "/explore",
        "/explore?release=stream:admissions",
        "/ledger",
        "/audit-log",
        "/work",
    ),
)
# What shows that a page has come, and shows something.
SIGNS = {
    "/": "Uploaded tables",
    "/roles": "Columns of hospital.csv",
    "/drafts": "Drafts are private",
    "/compare": "Utility against risk",
    "/sources": "Streams, evolving tables and series",
    "/live": "the band is its 95% interval",
    "/evolving": "Published so far",
    "/series": "Published so far",
    "/history": "Persons published so far",
    "/release": "all claims hold",
    "/audit": "Attack results",
    "/explore": "estimate",
    "/ledger": "Persons by publication",
    "/audit-log": "the log is intact",
    "/work": "Jobs, newest first",
}
LOOKS = [(size, scheme) for size in WIDTHS for scheme in ("light", "dark")] if ALL else [("phone", "dark")]
AXE = "() => axe.run(document, {resultTypes: ['violations']})"


@pytest.fixture(scope="module")
def places(browser, demo):
    """The pages of the demonstration, once all of it is there."""
    page = browser.new_page()
    table = next(t["id"] for t in page.request.get(f"{demo}/api/v1/tables").json() if t["name"] == "hospital.csv")
    for _ in range(240):
        tries = [job["state"] for job in page.request.get(f"{demo}/api/v1/jobs").json() if job["kind"] == "draft"]
        if tries.count("done") == 4 and page.request.get(f"{demo}/api/v1/audits").json():
            break
        page.wait_for_timeout(500)
    page.close()
    tabled = ("/roles", "/drafts", "/compare")
    return [f"{demo}{path}?table={table}" if path in tabled else f"{demo}{path}" for path in PAGES]


def shown(page, place: str) -> None:
    page.goto(place)
    path = "/" + place.split("/", 3)[3].split("?", maxsplit=1)[0]
    page.get_by_text(SIGNS[path]).first.wait_for()


def test_every_page_can_be_read_by_everybody(browser, places):
    """axe finds nothing serious at either width, light or dark; nothing is wider than the screen."""
    script = (Path(pytest.importorskip("axe_playwright_python").__file__).parent / "axe.min.js").read_text()
    # Only the checker itself needs to get past the policy of the pages.
    context = browser.new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    problems = []
    for place in places:
        page.set_viewport_size({"width": 1280, "height": 900})
        shown(page, place)
        page.evaluate(script)
        for size, scheme in LOOKS:
            width, height = WIDTHS[size]
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            bad = [v for v in page.evaluate(AXE)["violations"] if v["impact"] in ("serious", "critical")]
            problems += [(place, size, scheme, v["id"], v["nodes"][0]["html"][:200]) for v in bad]
            wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            problems += [(place, size, "wider", wider)] if wider > 0 else []
    context.close()
    assert problems == [], "\n".join(map(str, problems))


def test_a_live_stream_updates_and_its_charts_survive_a_visit(context, demo, places):
    page = context.new_page()
    shown(page, f"{demo}/live")
    count = page.get_by_text("records so far").locator("..").locator(".r-figure")
    latest = page.locator('[data-test="latest"]')
    before, lines = count.inner_text(), latest.inner_text()
    page.wait_for_function(
        "([before, lines]) => document.querySelector('.r-figure').innerText !== before"
        " && document.querySelector('[data-test=latest]').innerText !== lines",
        arg=[before, lines],
    )
    assert int(count.inner_text().replace(",", "")) > int(before.replace(",", ""))
    assert "→" in latest.inner_text()
    # A browser that comes now sees the earlier points: the text of the chart says how many there are.
    page.goto("about:blank")
    shown(page, f"{demo}/live")
    words = page.locator("[aria-label*='records per second']").first.get_attribute("aria-label")
    assert words.count(",") > 4


def test_roles_are_enforced(context, guarded):
    address, tokens = guarded
    page = context.new_page()
    for path in ("/", "/release", "/live", "/history"):
        page.goto(address + path)
        assert page.url.endswith("/sign-in")

    def sign_in(token: str) -> None:
        page.goto(f"{address}/sign-in")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()

    for wrong in ("rt_000000000000_wrong", tokens[Role.FEED]):
        sign_in(wrong)
        page.get_by_role("alert").wait_for()
    context.said.clear()  # the browser reports the two refusals
    sign_in(tokens[Role.ANALYST])
    page.wait_for_url("**/history")
    assert page.get_by_role("link", name="Data").count() == 0
    for path in ("/live", "/roles", "/publish", "/ledger", "/work", "/audit", "/sources", "/evolving", "/series"):
        page.goto(address + path)
        page.get_by_text("Analysts can").wait_for()
        assert page.get_by_role("button").count() == 2  # light or dark, sign out
    page.get_by_label("Sign out").click()
    page.wait_for_url("**/sign-in")
    page.goto(f"{address}/history")
    assert page.url.endswith("/sign-in")


def test_the_keyboard_reaches_everything(context, demo, places):
    page = context.new_page()
    shown(page, places[1])
    reached = set()
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")
        )
    assert {"Data", "Sources", "History", "Explore", "Ledger", "Work", "Light or dark", "Drafts"} <= reached
    assert {"Search columns, values, roles", "Select all displayed rows", "Select patient_id"} <= reached
