"""A table is published, and asked, by the keyboard alone; no pointer is used."""

from __future__ import annotations

from driving import at

from reticent.datasets import hospital
from reticent.service.demo import csv_bytes, rename_persons

NAME = "(() => { const e = document.activeElement; return e.getAttribute('aria-label') || e.innerText || e.labels?.[0]?.innerText || ''; })()"


def press(page, name: str, key: str = "Enter", tag: str = "") -> None:
    """Tabs on until the focus stands on what has this name, and presses a key there."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if name in page.evaluate(NAME) and tag in page.evaluate("document.activeElement.tagName"):
            page.keyboard.press(key)
            return
    raise AssertionError(name)


@at("desktop")
def test_a_table_is_published_by_the_keyboard_alone(custodian):
    page, address = custodian
    page.goto(address)
    page.get_by_text("Upload a table").wait_for()
    table = rename_persons(hospital.generate(300, 9), "Q").drop(["diagnosis", "ward"])
    with page.expect_file_chooser() as chooser:
        press(page, "Choose a file")
    data = csv_bytes(table)
    chooser.value.set_files(files=[{"name": "keys.csv", "mimeType": "text/csv", "buffer": data}])
    page.get_by_text("Columns of keys.csv").wait_for()
    press(page, "Next")
    page.get_by_text("New drafts of keys.csv").wait_for()
    press(page, "Make drafts", tag="BUTTON")
    page.get_by_role("button", name="after confirmation").first.wait_for()
    press(page, "after confirmation")
    page.get_by_text("None of the 300 persons is in another publication").wait_for()
    press(page, "This cannot be undone", "Space")
    press(page, "Publish permanently", tag="BUTTON")
    page.get_by_text("all claims hold").wait_for()

    # Nothing of it is sensitive: its records can be counted all the same.
    page.goto(f"{address}/explore")
    page.get_by_text("no sensitive column").wait_for()
    press(page, "Query", tag="BUTTON")
    page.get_by_text("Count of all records, by").wait_for()
