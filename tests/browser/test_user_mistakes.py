"""What people stumble over: a click too many, an old address, a file that was sent before, a wrong one."""

from __future__ import annotations

import re

from driving import at, send, stays_in_width

from reticent.datasets import feed, hospital
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.service.demo import csv_bytes, rename_persons

LOST = {
    "/live?stream=lost": "There is no such stream",
    "/evolving?name=lost": "There is no such evolving table",
    "/series?name=lost": "There is no such series",
    "/release?id=0000000000000000": "There is no such release",
    "/roles?table=0000000000000000": "There is no such table",
    "/drafts?table=0000000000000000": "There is no such table",
    "/release?job=0000000000000000": "There is no such job",
}


def begin(page, address: str, kind: str, name: str, files: dict[str, str]) -> None:
    page.goto(f"{address}/sources")
    page.get_by_label("Kind").click()
    page.get_by_role("option", name=kind).click()
    page.get_by_label("Name: a-z").fill(name)
    given = [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files.items()]
    page.locator("input[type=file]").set_input_files(files=given)


@at("phone")
def test_an_address_of_nothing_says_so_and_shows_nothing_else(custodian):
    page, address = custodian
    for place, words in LOST.items():
        page.goto(address + place)
        page.get_by_text(words).first.wait_for()
        assert page.locator("input[type=file]").count() == 0, place
        stays_in_width(page)


@at("desktop")
def test_a_click_too_many_does_nothing_twice(custodian):
    page, address = custodian
    letter = {"desktop": "V", "phone": "W"}[page.size]
    page.goto(address)
    send(page, f"twice-{page.size}.csv", csv_bytes(rename_persons(hospital.generate(200, 8), letter)))
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Drafts are private").wait_for()
    page.get_by_role("button", name="Make drafts", exact=True).dblclick()
    page.get_by_role("button", name="after confirmation").wait_for()
    assert page.locator('[data-test="draft"]').count() == 1

    files = {"policy.yaml": policy_yaml("hospital"), "prior.csv": csv_text(hospital.prior())}
    begin(page, address, "an evolving table", f"twice-{page.size}", files)
    page.get_by_text("Change the table").wait_for()
    place = page.url
    send(page, "all.csv", csv_bytes(rename_persons(hospital.generate(200, 9), letter.lower())))
    page.get_by_text("200 inserted").wait_for()
    page.get_by_text("This cannot be undone").click()
    page.get_by_role("button", name=re.compile("permanently")).dblclick()
    page.get_by_text("all claims hold").wait_for()
    page.goto(place)
    page.get_by_text("Published so far").wait_for()
    figure = page.get_by_text("publications", exact=True).locator("..").locator(".r-figure")
    assert figure.inner_text() == "1"


@at("desktop")
def test_a_file_that_is_fed_twice_is_said_to_be_there(custodian):
    page, address = custodian
    name = f"again-{page.size}"
    prior = {"prior.csv": csv_text(feed.strata()), "kernel.csv": csv_text(feed.kernel())}
    begin(page, address, "a stream", name, {"policy.yaml": policy_yaml("feed")} | prior)
    page.get_by_text("The stream takes records.").wait_for()
    data = csv_bytes(rename_persons(feed.generate(2_500, 3), {"desktop": "X", "phone": "Y"}[page.size]))
    send(page, "now.csv", data)
    page.get_by_text("2,500 records were accepted").wait_for()
    # The figures are those of the last record, however quickly the batches came.
    persons = len(feed.generate(2_500, 3)["patient_id"].unique())
    page.get_by_text(f"{persons:,}", exact=True).wait_for()
    send(page, "now.csv", data)
    page.get_by_text("2,500 records had been accepted before and were not released again").wait_for()


@at("desktop")
def test_a_wrong_file_is_refused_in_words_about_the_file(custodian, tmp_path):
    page, address = custodian
    page.goto(address)
    for name, data, words in (
        ("none.csv", b"a,b\n", "The file has no rows."),
        ("book.xlsx", b"PK\x03\x04" + bytes(200), "archive or a workbook"),
        ("wide.csv", b",".join(b"c%d" % i for i in range(2_001)) + b"\n" + b",".join([b"1"] * 2_001), "2,001 columns"),
    ):
        send(page, name, data)
        page.get_by_text(words).wait_for()
        page.reload()
    large = tmp_path / "large.csv"
    large.write_bytes(b"a,b\n" + b"1,2\n" * (17 << 20))
    page.locator("input[type=file]").set_input_files(large)
    page.get_by_text("The file was not uploaded: it has more than 64 MiB").wait_for()


@at("phone")
def test_a_table_is_forgotten_only_after_a_second_word(custodian):
    page, address = custodian
    page.goto(address)
    name = f"kept-{page.size}.csv"
    send(page, name, csv_bytes(hospital.generate(20, 3)))
    page.get_by_text("Columns of").wait_for()
    for answer, left in (("Cancel", 1), ("Delete table", 0)):
        page.goto(address)
        page.get_by_role("button", name=f"Delete {name}").click()
        page.get_by_role("button", name=answer).click()
        page.locator(".q-dialog").wait_for(state="detached")
        page.goto(address)
        page.get_by_text("Upload a table").wait_for()
        page.wait_for_load_state("networkidle")
        assert page.get_by_role("link", name=name).count() == left


@at("desktop")
def test_a_page_whose_visitor_has_signed_out_goes_to_sign_in(custodian, context):
    """It had said for ever that it tries to reconnect, and gone on showing what it showed."""
    page, address = custodian
    page.goto(f"{address}/work")
    page.get_by_text("The writer").wait_for()
    other = context.new_page()
    other.goto(f"{address}/history")
    other.get_by_label("Sign out").click()
    other.wait_for_url("**/sign-in")
    page.wait_for_url("**/sign-in", timeout=60_000)
    context.said.clear()  # the browser reports the socket that was closed
