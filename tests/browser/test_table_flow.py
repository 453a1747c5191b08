"""One table as a custodian takes it: data, roles, try, compare, publish; at the width of a desk and of a phone."""

from __future__ import annotations

import csv
import io
import random
import zipfile

import yaml
from driving import at, downloaded, send, stays_in_width

from reticent import verify
from reticent.datasets import hospital
from reticent.policy import Policy
from reticent.release import Release
from reticent.service.demo import csv_bytes, rename_persons

MOST = 10


def releases(page, address: str) -> list[dict]:
    page.goto(f"{address}/history")
    page.get_by_role("link", name="History").first.wait_for()
    return page.locator('[data-test="release"]').all_inner_texts()


@at("desktop")
def test_from_data_to_a_verified_publication(custodian, tmp_path):
    page, address = custodian
    letter = "D" if page.size == "desktop" else "F"
    before = len(releases(page, address))
    page.goto(address)
    name = f"ward-{page.size}.csv"
    table = rename_persons(hospital.generate(300, 5), letter)
    send(page, name, csv_bytes(table))
    page.get_by_text(f"Columns of {name}").wait_for()
    stays_in_width(page)
    for column in ("birth_date", "admission_date", "ward"):
        page.get_by_role("checkbox", name=f"Select {column}").click()
    page.get_by_role("button", name="Set the selected columns to identifier").click()
    page.get_by_text("0 of 11 selected").wait_for()

    # Choosing "tree" shows an editor and a preview, and throws nothing.
    page.get_by_role("checkbox", name="Select sex").click()
    page.get_by_role("button", name="Hierarchy of the selected columns").click()
    page.get_by_label("Kind").click()
    page.get_by_role("option", name="tree").click()
    page.get_by_label("Details").fill("person: female, male")
    page.get_by_text("female → person").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".q-dialog").wait_for(state="detached")
    page.get_by_role("button", name="Policy file").click()
    policy = yaml.safe_load(downloaded(page, "Download"))
    assert policy["person"] == "patient_id"
    assert policy["columns"]["ward"] == "identifier"

    page.get_by_role("button", name="Next").click()
    page.get_by_text(f"New drafts of {name}").wait_for()
    page.get_by_label("Methods").click()
    page.get_by_role("option", name="auto: mondrian").click()  # the usual one, chosen already
    page.get_by_role("option", name="mondrian: splits").click()
    page.keyboard.press("Escape")
    page.get_by_label("k: persons per group").fill("3, 6")
    page.get_by_role("button", name="Make drafts", exact=True).click()
    page.get_by_role("button", name="after confirmation").nth(1).wait_for()
    stays_in_width(page)
    address_of_tries = page.url
    assert len(releases(page, address)) == before  # tuning is not publishing

    page.goto(address_of_tries.replace("/drafts", "/compare"))
    page.get_by_text("information loss, mean of the quasi-identifiers").wait_for()
    page.locator("canvas").nth(1).wait_for()
    stays_in_width(page)
    page.get_by_role("button", name="Publish…").click()
    page.get_by_text("None of the 300 persons is in another publication").wait_for()
    publish = page.get_by_role("button", name="Publish permanently")
    assert publish.is_disabled()
    page.get_by_text("This cannot be undone").click()
    publish.click()
    page.get_by_text("all claims hold").wait_for()
    stays_in_width(page)
    zipfile.ZipFile(io.BytesIO(downloaded(page, "Download CSV"))).extractall(tmp_path / "release")
    release = Release.from_dir(tmp_path / "release")
    assert release.guarantee.claims["k"] == {"persons": 6}
    rules = policy | {"privacy": {"k": 6, "l": 3, "suppression": 0.02}, "table": {"method": "mondrian"}}
    assert verify(tmp_path / "release", Policy.from_dict(rules), original=table).holds
    assert len(releases(page, address)) == before + 1

    # The same people once more, in the other draft: the ledger says so, and only a deliberate word goes past it.
    page.goto(address_of_tries)
    page.get_by_role("button", name="after confirmation").nth(1).click()
    page.get_by_text("300 of 300 persons are in another publication").wait_for()
    page.get_by_text("This cannot be undone").click()
    assert page.get_by_role("button", name="Publish permanently").is_disabled()


def wide_table() -> bytes:
    """Fifty columns as a clinic has them: who, where, thirty-six laboratory values, seven answers, a diagnosis."""
    rng = random.Random(1)
    names = ["patient_id", "name", "birth_date", "sex", "postcode", "ward"]
    names += [f"lab_{i}" for i in range(36)] + [f"answer_{i}" for i in range(7)] + ["diagnosis"]
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(names)
    for i in range(60):
        who = [f"W{i:05}", f"Ann Lee{i}", f"19{rng.randrange(40, 99)}-0{rng.randrange(1, 9)}-11", rng.choice("fm")]
        labs = [round(rng.uniform(1, 90), 1) for _ in range(36)]
        answers = [rng.choice(["never", "often"]) for _ in range(7)]
        code = rng.choice(["E11", "I10", "J45", "K35"])
        rows.writerow([*who, f"1{rng.randrange(1000, 1999)}", rng.choice("AB"), *labs, *answers, code])
    return out.getvalue().encode()


ONLY = "word => [...document.querySelectorAll('tbody [aria-label^=Select]')].every(box => box.ariaLabel.includes(word))"


@at("phone")
def test_fifty_columns_are_corrected_in_ten_interactions(custodian):
    page, address = custodian
    page.goto(address)
    send(page, "wide.csv", wide_table())
    page.get_by_text("0 of 50 selected").wait_for()
    stays_in_width(page)
    assert page.evaluate("document.documentElement.scrollHeight") < 2_600  # it was 8,673 px on a phone
    count = 0

    def make(role: str, search: str) -> None:
        nonlocal count
        page.get_by_label("Search columns, values, roles").fill(search)
        page.wait_for_function(ONLY, arg=search)  # on a busy machine those of the search before are still there
        page.get_by_role("checkbox", name="Select all displayed rows").click()
        page.get_by_role("button", name=f"Set the selected columns to {role}").click()
        page.get_by_text("0 of 50 selected").wait_for()
        count += 3

    make("plain", "lab_")
    make("plain", "answer_")
    make("identifier", "ward")
    page.get_by_label("Search columns, values, roles").fill("")
    page.get_by_role("button", name="Policy file").click()
    columns = yaml.safe_load(downloaded(page, "Download"))["columns"]
    roles = {name: column if isinstance(column, str) else column["role"] for name, column in columns.items()}
    wanted = {"patient_id": "identifier", "name": "identifier", "ward": "identifier", "diagnosis": "sensitive"}
    wanted |= dict.fromkeys(("birth_date", "sex", "postcode"), "quasi")
    assert roles == {name: wanted.get(name, "plain") for name in roles}
    assert count <= MOST
