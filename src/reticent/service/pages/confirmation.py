"""What is promised, and what is asked before something cannot be undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import ui

from reticent.release.wording import claims_in_words
from reticent.service.pages.layout import hint_text, run_or_notify


def show_claims(claims: Mapping[str, Any], against: str, verb: str = "Holds") -> None:
    """What a guarantee says, and against whom."""
    for claim in claims_in_words(claims):
        ui.label(f"{verb}: {claim}.")
    ui.label(f"Against {against}.").classes("r-muted")


def show_limits(sentences: Sequence[str], title: str = "What it does not cover") -> None:
    """What a guarantee leaves open, folded away."""
    with ui.expansion(title).classes("w-full"):
        for words in sentences:
            hint_text(words)


def confirm_dialog(title: str, words: str, act: str, go: Callable[[], Any]) -> None:
    """A dialog before what cannot be undone."""
    with ui.dialog() as dialog, ui.card():
        ui.label(title).classes("text-lg")
        ui.label(words)
        with ui.row():
            ui.button(act, on_click=go).props("color=negative")
            ui.button("Leave it", on_click=dialog.close).props("flat")
    dialog.open()


def final_checkbox() -> ui.checkbox:
    """What is ticked before something is published for good."""
    return ui.checkbox("This cannot be undone: whoever downloads it keeps it")


def publish_button(begin: Callable[[], Awaitable[dict[str, Any]]], *boxes: ui.checkbox) -> None:
    """The one button that publishes, as a job whose page follows, once all boxes are ticked; a second click publishes nothing."""

    async def go() -> None:
        boxes[-1].value = False
        job = await run_or_notify(begin())
        if job is not None:
            ui.navigate.to(f"/release?job={job['id']}")

    def ready() -> None:
        button.set_enabled(all(box.value for box in boxes))

    button = ui.button("Publish for good", icon="publish", on_click=go).props("size=lg")
    for box in boxes:
        box.on_value_change(ready)
    ready()
