"""The studio as a custodian uses it."""

from __future__ import annotations

import zipfile

import pytest

from reticent.datasets import files
from reticent.release import Release
from reticent.service.tokens import Role


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "ward.csv"
    files.write_hospital(path, 1_000, 5)
    return path


def test_from_upload_to_download(context, demo, table, tmp_path):
    page = context.new_page()
    page.goto(demo)
    page.set_input_files("input[type=file]", table)
    page.get_by_text("The columns of ward.csv").wait_for()
    assert page.get_by_text("the name says a person's name").count() == 1  # why each role was guessed

    page.get_by_label("Role of ward").click()
    page.get_by_role("option", name="identifier: never leaves").click()
    page.get_by_label("Hierarchy of length_of_stay").click()
    details = page.get_by_label("Details")
    details.fill("not a number")
    page.get_by_role("alert").wait_for()
    details.fill("7, 14, 28")
    page.get_by_text("[0, 7)").first.wait_for()  # the preview
    page.get_by_role("button", name="Take it").click()
    page.get_by_text("intervals 7, 14, 28").wait_for()
    page.locator(".q-dialog").wait_for(state="detached")  # it gives the focus back when it has closed
    page.get_by_role("slider", name="k", exact=True).locator("[tabindex]").first.press("ArrowRight")
    page.get_by_text("k = 6: nobody can be told from 5 others").wait_for()

    page.get_by_role("button", name="Release it").click()
    page.get_by_role("button", name="Download CSV").wait_for()
    page.get_by_text("they hold").wait_for()
    page.get_by_text("Around this release").wait_for()
    page.get_by_role("button", name="Draw").click()
    page.locator("canvas").first.wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    zipfile.ZipFile(download.value.path()).extractall(tmp_path / "release")
    release = Release.from_dir(tmp_path / "release")
    assert release.guarantee.claims["k"] == {"persons": 6}
    assert not {"ward", "name", "patient_id"} & set(release.tables["data"].column_names)
    quasi = [name for name in release.tables["data"].column_names if name != "diagnosis"]
    sizes = release.tables["data"].group_by(quasi).aggregate([([], "count_all")]).column("count_all").to_pylist()
    assert min(sizes) >= 6

    before = page.url
    page.get_by_role("button", name="Favour").first.click()  # a one-click alternative
    page.wait_for_url(lambda url: url != before)  # until then the old release is still on the page
    page.get_by_role("button", name="Download CSV").wait_for()

    page.get_by_role("link", name="History").click()
    page.get_by_text("Table ward.csv").wait_for()
    page.get_by_role("button", name="Audit").first.click()
    page.get_by_text("All claims hold.").wait_for()


def test_a_live_stream_updates(context, demo):
    page = context.new_page()
    page.goto(f"{demo}/live")
    page.get_by_text("Stream admissions").wait_for()
    count = page.get_by_text("records so far").locator("..").locator(".r-figure")
    latest = page.locator('[data-test="latest"]')
    before, shown = count.inner_text(), latest.inner_text()
    page.wait_for_function(
        "([before, shown]) => document.querySelector('.r-figure').innerText !== before"
        " && document.querySelector('[data-test=latest]').innerText !== shown",
        arg=[before, shown],
    )
    assert int(count.inner_text().replace(",", "")) > int(before.replace(",", ""))
    assert "→" in latest.inner_text()


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
    assert page.get_by_role("link", name="Prepare").count() == 0
    for path in ("/live", "/release"):
        page.goto(address + path)
        page.get_by_text("An analyst may see the history only.").wait_for()
    page.get_by_label("Sign out").click()
    page.wait_for_url("**/sign-in")
    page.goto(f"{address}/history")
    assert page.url.endswith("/sign-in")
    sign_in(tokens[Role.CUSTODIAN])
    page.get_by_text("1. The table").wait_for()


def test_phone_width_and_keyboard(context, demo):
    page = context.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/release", "/live", "/history"):
        page.goto(demo + path)
        page.get_by_role("link", name="History").wait_for()
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, path
    page.goto(demo)
    page.get_by_role("link", name="Prepare").wait_for()
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")
        )
    assert {"Prepare", "Release", "Live", "History", "Light or dark"} <= reached
