"""Compare: the drafts of one table with the same measures, and the effect of a draft on each column."""

from __future__ import annotations

from functools import partial
from typing import Any

from nicegui import ui

from reticent.service.draft_measures import GROUP_SIZES
from reticent.service.pages import drafts
from reticent.service.pages.charts import (
    GREY,
    LINE,
    LINE_2,
    LINE_3,
    axis,
    chart_series,
    legend,
    percent_axis,
    to_percent,
)
from reticent.service.pages.confirmation import show_claims, show_limits
from reticent.service.pages.layout import (
    PageContext,
    card,
    hint_text,
    page_select,
    run_or_notify,
    status_text,
    steps,
    studio_page,
)
from reticent.service.pages.plan import Plan
from reticent.service.pages.safe_elements import chart, data_table, redraw, set_label
from reticent.service.routes.common import in_thread

COLORS = (LINE, LINE_2, LINE_3, "#8a63c9", "#4d9b3f", "#c2528f")


@studio_page("/compare", "Data")
async def compare(context: PageContext, table: str = "", draft: str = "") -> None:
    """Draw the page; `draft` is the id of the draft to display in detail."""
    steps("Compare", table)
    plan = await run_or_notify(in_thread(lambda: Plan.of(context.hub, table)))
    known = [one for one in await in_thread(lambda: drafts.of_table(context.hub, table)) if one["figures"]]
    known = [one for one in known if plan is None or one["kind"] == plan.kind]
    if plan is None or not known:
        status_text("There are no finished drafts yet. Make some on the page Drafts.")
        return
    known = [one | {"short": name} for one, name in zip(known, drafts.short_names(known), strict=True)]
    _measures(known)
    with ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 gap-4"):
        _risk_utility_chart(known)
        _distributions(known)
        _risk_curve(known)
        _counts(known)
    here = next((one for one in known if one["id"] == draft), known[-1])
    _draft_details(context, plan, known, here)


def _measures(known: list[dict[str, Any]]) -> None:
    texts = [drafts.measures(one["figures"]) for one in known]
    rows = [[words, *(text[name] for text in texts)] for name, words in drafts.MEASURES.items()]
    rows = [row for row in rows if not {"-", "0"}.issuperset(row[1:])]
    with card("Side by side"):
        data_table(["Measure", *(one["short"] for one in known)], rows).props('data-test="measures"')
    status_text(
        "All drafts are measured in the same way, with equal weights for all columns. A dash means that the method does not have this "
        "measure; the veil, for example, has no groups. The best guess is that of an attacker who knows who is in the data and sees the "
        "release. Under the veil its accuracy follows from the stated weights. Counts are estimated as recipients do, for values with at "
        "least 20 records; for a veil over more than 200 values, query the release on the page Explore. Models predict the 20 most "
        "frequent sensitive values and the rest as one; they are omitted if the original data does not help to predict the value."
    )


def _risk_utility_chart(known: list[dict[str, Any]]) -> None:
    """Draw information loss against risk."""
    points = [one for one in known if one["figures"]["loss"] is not None]
    series = [
        chart_series(
            "line", method, sorted(_point(one) for one in points if one["method"] == method), color, symbolSize=11
        )
        for method, color in zip(dict.fromkeys(one["method"] for one in points), COLORS, strict=False)
    ]
    if not points:
        return
    with card("Utility against risk"):
        hint_text("Each point is a draft. Lower and further left is better.")
        options = {
            "grid": {"left": 56, "right": 20, "top": 48, "bottom": 44},
            "tooltip": {"trigger": "item"},
            "legend": legend(*(one["name"] for one in series)),
            "xAxis": percent_axis(name=_risk_label(points), nameLocation="middle", nameGap=26, min=0),
            "yAxis": percent_axis(name="information loss", nameLocation="middle", nameGap=44, min=0, max=100),
            "series": series,
        }
        chart(options).classes("h-64")


def _risk_curve(known: list[dict[str, Any]]) -> None:
    """Draw the share of records with at least a certain re-identification risk."""
    lines = [("before", known[0]["figures"]["curve"]["before"], GREY)]
    shown = [one for one in known if one["figures"]["curve"]["now"]][-6:]
    lines += [(one["short"], one["figures"]["curve"]["now"], c) for one, c in zip(shown, COLORS, strict=False)]
    if not shown:
        return
    with card("Risk curve"):
        hint_text("Share of records that an attacker re-identifies with at least this probability.")
        options = {
            "grid": {"left": 8, "right": 20, "top": 34, "bottom": 24, "containLabel": True},
            "legend": legend(*(name for name, _, _ in lines)) | {"type": "scroll"},
            "xAxis": axis(type="category", data=[f"1/{size}" for size in GROUP_SIZES], splitLine={"show": False}),
            "yAxis": percent_axis(min=0, max=100),
            "series": [chart_series("line", name, [*map(to_percent, data)], color) for name, data, color in lines],
        }
        chart(options).classes("h-64")


def _counts(known: list[dict[str, Any]]) -> None:
    """Draw the error and the interval of a recipient's count of a value."""
    counted = [one for one in known if one["figures"]["count_error"]][::-1]
    if not counted:
        return
    with card("Accuracy of recipients' counts"):
        if not any(one["figures"]["count_error"]["half_width"] for one in counted):
            status_text("Every draft publishes each value unchanged: counts of values are exact.")
            return
        hint_text("Medians in percent of the true count of a value: the error, and half the width of the 95% interval.")
        sets = (("error", "error", LINE), ("half width of the interval", "half_width", LINE_2))
        options = {
            "grid": {"left": 8, "right": 24, "top": 34, "bottom": 20, "containLabel": True},
            "legend": legend(*(words for words, _, _ in sets)),
            "xAxis": percent_axis(min=0),
            "yAxis": axis(type="category", data=[one["short"] for one in counted])
            | {"axisLabel": {"color": GREY, "width": 130, "overflow": "truncate"}},
            "series": [
                chart_series("bar", words, [to_percent(one["figures"]["count_error"][key]) for one in counted], color)
                for words, key, color in sets
            ],
        }
        chart(options).classes("h-64")


def _risk_label(points: list[dict[str, Any]]) -> str:
    """Return the label of the risk axis; drafts without sensitive values have no guess."""
    has_guess = all(one["figures"]["guess"] is not None for one in points)
    return "best guess of a value correct" if has_guess else "highest re-identification risk"


def _point(draft: dict[str, Any]) -> list[float]:
    figures = draft["figures"]
    risk = figures["guess"] if figures["guess"] is not None else figures["risk"]["highest"]
    return [to_percent(risk), to_percent(figures["loss"])]


def _distributions(known: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for one in known for name in list(one["figures"]["distributions"])[::-1]))
    if not names:
        return
    with card("Distributions before and after"):
        picture = chart(_bars(known, names[0])).classes("h-64")
        column = ui.select(names, value=names[0], label="Column").classes("w-full")
        column.on_value_change(lambda event: redraw(picture, _bars(known, event.value)))
        hint_text("Numbers in bins; words by frequency, at most the 12 most frequent.")


def _bars(known: list[dict[str, Any]], name: str) -> dict[str, Any]:
    shown = [one for one in known if name in one["figures"]["distributions"]][-4:]
    first = shown[0]["figures"]["distributions"][name]
    sets = [("before", first["before"], GREY)]
    sets += [
        (one["short"], one["figures"]["distributions"][name]["after"], color)
        for one, color in zip(shown, COLORS, strict=False)
    ]
    return {
        "grid": {"left": 8, "right": 8, "top": 40, "bottom": 8, "containLabel": True},
        "legend": legend(*(words for words, _, _ in sets)) | {"type": "scroll"},
        "xAxis": axis(type="category", data=first["values"], splitLine={"show": False})
        | {"axisLabel": {"rotate": 40, "color": GREY, "width": 80, "overflow": "truncate"}},
        "yAxis": percent_axis(min=0),
        "series": [chart_series("bar", words, [*map(to_percent, data)], color) for words, data, color in sets],
    }


def _draft_details(context: PageContext, plan: Plan, known: list[dict[str, Any]], here: dict[str, Any]) -> None:
    figures, table = here["figures"], plan.table["id"]
    with card("Draft in detail"):
        page_select({one["id"]: one["name"] for one in known}, here["id"], "Draft", f"/compare?table={table}&draft=")
        show_claims(figures["claims"], figures["against"])
        show_limits(figures["not_covered"])
        if figures["columns"]:
            ui.label("Columns").classes("font-medium")
            data_table(("Column", "Role", "Values before", "Values after", "Level", "Loss"), _column_rows(figures))
        ui.label("First rows that recipients would get").classes("font-medium")
        data_table(figures["preview"]["names"], figures["preview"]["rows"]).props('data-test="preview"')
        _neighbors(context, plan, here)
        publish = partial(ui.navigate.to, f"/publish?draft={here['id']}")
        ui.button(f"{drafts.action_label(here)}…", on_click=publish).props("size=lg")


def _column_rows(figures: dict[str, Any]) -> list[list[str]]:
    return [
        [
            one["name"],
            one["role"],
            f"{one['before']:,}",
            "not released" if one["after"] is None else f"{one['after']:,}",
            "-" if one["level"] is None else f"{one['level']} of {one['height']}",
            "-" if one["loss"] is None else f"{one['loss']:.0%}",
        ]
        for one in figures["columns"]
    ]


def _neighbors(context: PageContext, plan: Plan, here: dict[str, Any]) -> None:
    """Draw the neighbors in the lattice, each finer one with a button for a draft that favors its column."""
    if here["figures"]["neighbors"]:
        ui.label("One step finer or coarser").classes("font-medium")
        hint_text(
            "The effect of one level more or less of one column. Favor a column to make another draft that gives it more weight."
        )
    for one in here["figures"]["neighbors"]:
        step = "finer" if one["finer"] else "coarser"
        words = "every group is large enough"
        if one["small"]:
            fits = ", which may be suppressed" if one["fits"] else ""
            words = f"{one['small']:,} of {one['rows']:,} records in groups that are too small{fits}"
        with ui.row().classes("w-full items-center gap-2 no-wrap"):
            icon = ui.icon("check_circle" if one["fits"] else "block", color="positive" if one["fits"] else "negative")
            set_label(icon, "meets the policy" if one["fits"] else "does not meet the policy")
            ui.label(f"{one['column']} one level {step}: {words}").classes("grow")
            if one["finer"]:
                favor = ui.button("Favor", on_click=partial(_favor_column, context, plan, here, one["column"]))
                set_label(favor, f"Make a draft that favors {one['column']}").props("flat dense no-caps")


async def _favor_column(context: PageContext, plan: Plan, here: dict[str, Any], column: str) -> None:
    """Make a draft whose search gives a column four times the weight; the measures stay unweighted."""

    def work() -> None:
        settings = context.hub.bundle(here["policy_hash"]).settings
        quasi = [name for name, role in plan.roles.items() if role == "quasi"]
        table = dict(settings.get("table", {}))
        weights = dict.fromkeys(quasi, 1.0) | table.get("weights", {}) | {column: 4.0}
        sections = dict(settings) | {"table": table | {"weights": weights}}
        drafts.begin(context.hub, plan, [(f"{here['name']}, favors {column}", sections)])

    await run_or_notify(in_thread(work))
    ui.navigate.to(f"/drafts?table={plan.table['id']}")
