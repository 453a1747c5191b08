"""What the tests of the studio do again and again."""

from __future__ import annotations

import os

import pytest

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
ALL = os.environ.get("RETICENT_BROWSER") == "all"
"""Whether everything is driven at both widths, and every page looked at in both color schemes; otherwise at one of each."""


def at(width: str) -> pytest.MarkDecorator:
    """Drives a flow at this width; at both where all is asked for."""
    return pytest.mark.parametrize("custodian", sorted(WIDTHS) if ALL else [width], indirect=True)


def send(page, name: str, data: bytes, place: int = 0) -> None:
    page.locator("input[type=file]").nth(place).set_input_files(
        files=[{"name": name, "mimeType": "text/csv", "buffer": data}]
    )


def stays_in_width(page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def downloaded(page, name: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("button", name=name).click()
    return download.value.path().read_bytes()
