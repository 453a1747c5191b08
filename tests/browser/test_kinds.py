"""Streams, evolving tables and series from an empty server to what was published, by the pages alone."""

from __future__ import annotations

import io
import re
import zipfile

import pyarrow as pa
from driving import at, downloaded, send, stays_in_width

from reticent import verify
from reticent.datasets import feed, hospital, series
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import csv_text
from reticent.policy import Policy
from reticent.service.demo import csv_bytes, rename_persons


def send_policy(page, files: dict[str, str], place: int) -> None:
    given = [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files.items()]
    page.locator("input[type=file]").nth(place).set_input_files(files=given)


def prepared(page, address: str, name: str, table: pa.Table, files: dict[str, str]) -> None:
    """A sample, and the policy it goes under, sent to the page of roles; then on to the page that begins the source."""
    page.goto(address)
    send(page, name, csv_bytes(table))
    page.get_by_text(f"Columns of {name}").wait_for()
    page.get_by_role("button", name="Policy file").click()
    send_policy(page, files, 1)
    page.get_by_text(re.compile("Accepted: 1 policy")).wait_for()
    stays_in_width(page)


def begun(page, kind: str) -> str:
    page.get_by_label("Published as").click()
    page.get_by_role("option", name=kind).click()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Make drafts", exact=True).click()
    page.get_by_role("button", name="after confirmation").first.wait_for()
    stays_in_width(page)
    page.get_by_role("button", name="Compare").last.click()
    page.get_by_text("Draft in detail").wait_for()
    stays_in_width(page)
    page.get_by_role("button", name="Create…").click()
    page.get_by_text("The policy of a source cannot change").wait_for()
    stays_in_width(page)
    name = page.get_by_label("Name: a-z").input_value()
    page.get_by_role("button", name="Create", exact=True).click()
    return name


def published(page, tmp_path) -> object:
    page.get_by_text("This cannot be undone").click()
    page.get_by_role("button", name=re.compile("permanently")).click()
    page.get_by_text("all claims hold").wait_for()
    stays_in_width(page)
    zipfile.ZipFile(io.BytesIO(downloaded(page, "Download CSV"))).extractall(tmp_path)
    return tmp_path


def laid_out(tmp_path, files: dict[str, str]) -> Policy:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return Policy.load(tmp_path / "policy.yaml")


def of(size: str, letters: str) -> str:
    """Nobody may stand in two publications of the server that all tests share."""
    return letters[size == "phone"]


@at("phone")
def test_a_stream_is_begun_fed_watched_and_stopped(custodian):
    page, address = custodian
    files = {
        "policy.yaml": policy_yaml("feed"),
        "prior.csv": csv_text(feed.strata()),
        "kernel.csv": csv_text(feed.kernel()),
    }
    table = rename_persons(feed.generate(600, 3), of(page.size, "GI"))
    prepared(page, address, f"feed-{page.size}.csv", table, files)
    begun(page, "a stream")
    page.get_by_text("The stream takes records.").wait_for()
    send(page, "now.csv", csv_bytes(table))
    page.get_by_text("600 records were accepted").wait_for()
    count = page.get_by_text("records so far").locator("..").locator(".r-figure")
    page.wait_for_function("() => document.querySelector('.r-figure').innerText === '600'")
    page.reload()
    page.get_by_text("The level changes").or_(page.get_by_text("The level does not change")).wait_for()
    stays_in_width(page)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped: the stream takes no more records").wait_for()
    send(page, "more.csv", csv_bytes(table.slice(0, 10)))
    page.get_by_text("The stream is stopped; nothing was released.").wait_for()
    page.reload()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("The stream takes records.").wait_for()
    assert count.inner_text() == "600"
    page.goto(f"{address}/explore?release=stream:feed-{page.size}")
    page.locator('[data-test="answers"] tbody tr').first.wait_for()
    stays_in_width(page)
    page.goto(f"{address}/history")
    page.get_by_role("link", name=f"Stream feed-{page.size}").wait_for()


@at("desktop")
def test_an_evolving_table_is_changed_and_published(custodian, tmp_path):
    page, address = custodian
    files = {"policy.yaml": policy_yaml("hospital"), "prior.csv": csv_text(hospital.prior())}
    table = rename_persons(hospital.generate(400, 9), of(page.size, "KL"))
    prepared(page, address, f"ev-{page.size}.csv", table, files)
    name = begun(page, "an evolving table")

    def changed(op: str, part: pa.Table, words: str) -> None:
        page.get_by_text("Change the table").wait_for()
        page.get_by_label("Content of the file").click()
        page.get_by_role("option", name=op).click()
        send(page, "part.csv", csv_bytes(part))
        page.get_by_text(words).wait_for()

    changed("insert", table.slice(0, 300), "300 inserted")
    place = page.url
    first = published(page, tmp_path / "1")
    page.goto(place)
    changed("insert", table.slice(300), "100 inserted")
    corrected = table.slice(0, 5)
    corrected = corrected.set_column(
        corrected.column_names.index("length_of_stay"), "length_of_stay", pa.array([2] * 5, pa.int64())
    )
    changed("correct", corrected, "5 corrected")
    changed("delete", table.slice(10, 7).select(["patient_id"]), "7 deleted")
    second = published(page, tmp_path / "2")
    assert verify([first, second], laid_out(tmp_path, files)).holds
    page.goto(f"{address}/history")
    page.get_by_text(f"Evolving table {name}, release 2").wait_for()
    page.get_by_text("Added: 100 persons not published before").first.wait_for()


@at("phone")
def test_a_series_gets_its_next_release_and_one_is_withdrawn(custodian, tmp_path):
    page, address = custodian
    files = {
        "policy.yaml": policy_yaml("series"),
        "prior.csv": csv_text(series.prior()),
        "updates.csv": csv_text(series.updates()),
    }
    tables = [rename_persons(table, of(page.size, "MN")) for table in series.generate(300, 2, 4)]
    prepared(page, address, f"se-{page.size}.csv", tables[0], files)
    begun(page, "a series")
    places = []
    for number, table in enumerate(tables, 1):
        page.get_by_text(f"Release {number}", exact=True).wait_for()
        place = page.url
        send(page, "all.csv", csv_bytes(table))
        page.get_by_text(f"records are ready to be published as release {number}").wait_for()
        places.append(published(page, tmp_path / str(number)))
        last, _ = page.url, page.goto(place)
    assert verify(places, laid_out(tmp_path, files)).holds
    page.goto(last)
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_text("recipients keep their copies").wait_for()
    page.get_by_role("button", name="Withdraw release").click()
    page.get_by_text("Withdrawn 20").wait_for()
    assert page.get_by_role("button", name="Download CSV").count() == 0
