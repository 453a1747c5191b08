"""The claims of a guarantee, and the confirmation of actions that cannot be undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import ui

from reticent.release.wording import claims_in_words
from reticent.service.pages.layout import hint_text, run_or_notify


def show_claims(claims: Mapping[str, Any], against: str) -> None:
    """Draw the claims of a guarantee and the attacker."""
    for claim in claims_in_words(claims):
        ui.label(f"Guarantee: {claim}.")
    ui.label(f"Against {against}.").classes("r-muted")


def show_limits(sentences: Sequence[str]) -> None:
    """Draw the limits of a guarantee, collapsed."""
    with ui.expansion("Not covered by the guarantee").classes("w-full"):
        for words in sentences:
            hint_text(words)


def confirm_dialog(title: str, words: str, act: str, go: Callable[[], Any]) -> None:
    """Open a confirmation dialog before an action that cannot be undone."""
    with ui.dialog() as dialog, ui.card():
        ui.label(title).classes("text-lg")
        ui.label(words)
        with ui.row():
            ui.button(act, on_click=go).props("color=negative")
            ui.button("Cancel", on_click=dialog.close).props("flat")
    dialog.open()


def final_checkbox() -> ui.checkbox:
    """Return the checkbox that confirms a permanent publication."""
    return ui.checkbox("This cannot be undone: recipients keep their copies")


def publish_button(begin: Callable[[], Awaitable[dict[str, Any]]], *boxes: ui.checkbox) -> None:
    """Draw the button that publishes as a job; it needs all boxes ticked, and a second click does nothing."""

    async def go() -> None:
        boxes[-1].value = False
        job = await run_or_notify(begin())
        if job is not None:
            ui.navigate.to(f"/release?job={job['id']}")

    def update_button() -> None:
        button.set_enabled(all(box.value for box in boxes))

    button = ui.button("Publish permanently", icon="publish", on_click=go).props("size=lg")
    for box in boxes:
        box.on_value_change(update_button)
    update_button()
