"""Compare: drafts of one table side by side, in the same measures; what each keeps, and what it does to a column."""

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
    """The page; `draft` names the one to look at more closely."""
    steps("Compare", table)
    plan = await run_or_notify(in_thread(lambda: Plan.of(context.hub, table)))
    known = [one for one in await in_thread(lambda: drafts.of_table(context.hub, table)) if one["figures"]]
    known = [one for one in known if plan is None or one["kind"] == plan.kind]
    if plan is None or not known:
        status_text("There is no draft to compare yet; make some on the page Try.")
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
        "Every draft is measured in the same way: no column weighs more than another. A dash: the method has no such thing, as the veil "
        "has no groups. The best guess is that of a reader who knows who is in the data and all that is published of them; under the veil "
        "it is right as often as the release states. Counts are those of values with twenty records or more, asked as recipients ask; a veil "
        "over more than 200 values is not asked here, for that takes its time: ask its release on the page Explore. A model learns the sensitive "
        "value, its twenty most frequent ones and the rest as one; it is left out where even the original teaches it nothing."
    )


def _risk_utility_chart(known: list[dict[str, Any]]) -> None:
    """Utility against risk."""
    points = [one for one in known if one["figures"]["loss"] is not None]
    series = [
        chart_series(
            "line", method, sorted(_point(one) for one in points if one["method"] == method), colour, symbolSize=11
        )
        for method, colour in zip(dict.fromkeys(one["method"] for one in points), COLORS, strict=False)
    ]
    if not points:
        return
    with card("Utility against risk"):
        hint_text("Each point is a draft; lower and further left is better.")
        options = {
            "grid": {"left": 56, "right": 20, "top": 48, "bottom": 44},
            "tooltip": {"trigger": "item"},
            "legend": legend(*(one["name"] for one in series)),
            "xAxis": percent_axis(name=_risk_label(points), nameLocation="middle", nameGap=26, min=0),
            "yAxis": percent_axis(name="information lost", nameLocation="middle", nameGap=44, min=0, max=100),
            "series": series,
        }
        chart(options).classes("h-64")


def _risk_curve(known: list[dict[str, Any]]) -> None:
    """How many records are found with at least a certain chance."""
    lines = [("before", known[0]["figures"]["curve"]["before"], GREY)]
    shown = [one for one in known if one["figures"]["curve"]["now"]][-6:]
    lines += [(one["short"], one["figures"]["curve"]["now"], c) for one, c in zip(shown, COLORS, strict=False)]
    if not shown:
        return
    with card("Risk curve"):
        hint_text("Share of the records that a reader finds with at least this chance.")
        options = {
            "grid": {"left": 8, "right": 20, "top": 34, "bottom": 24, "containLabel": True},
            "legend": legend(*(name for name, _, _ in lines)) | {"type": "scroll"},
            "xAxis": axis(type="category", data=[f"1/{size}" for size in GROUP_SIZES], splitLine={"show": False}),
            "yAxis": percent_axis(min=0, max=100),
            "series": [chart_series("line", name, [*map(to_percent, data)], colour) for name, data, colour in lines],
        }
        chart(options).classes("h-64")


def _counts(known: list[dict[str, Any]]) -> None:
    """What the count of a value is worth to a recipient: how far it is off, and how wide its interval."""
    asked = [one for one in known if one["figures"]["count_error"]][::-1]
    if not asked:
        return
    with card("What recipients' counts are worth"):
        if not any(one["figures"]["count_error"]["half_width"] for one in asked):
            status_text("Every draft shows each value as often as it is there: their counts are exact.")
            return
        hint_text("In percent of the true count of a value: the error, and half of the 95% interval; medians.")
        sets = (("error", "error", LINE), ("half of the interval", "half_width", LINE_2))
        options = {
            "grid": {"left": 8, "right": 24, "top": 34, "bottom": 20, "containLabel": True},
            "legend": legend(*(words for words, _, _ in sets)),
            "xAxis": percent_axis(min=0),
            "yAxis": axis(type="category", data=[one["short"] for one in asked])
            | {"axisLabel": {"color": GREY, "width": 130, "overflow": "truncate"}},
            "series": [
                chart_series("bar", words, [to_percent(one["figures"]["count_error"][key]) for one in asked], colour)
                for words, key, colour in sets
            ],
        }
        chart(options).classes("h-64")


def _risk_label(points: list[dict[str, Any]]) -> str:
    """What the risk of the picture is: drafts of a table without sensitive values have no guess."""
    guessed = all(one["figures"]["guess"] is not None for one in points)
    return "best guess of a value right" if guessed else "highest risk of being found"


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
        hint_text("Numbers in bins, words by frequency, the twelve most frequent of them.")


def _bars(known: list[dict[str, Any]], name: str) -> dict[str, Any]:
    shown = [one for one in known if name in one["figures"]["distributions"]][-4:]
    first = shown[0]["figures"]["distributions"][name]
    sets = [("before", first["before"], GREY)]
    sets += [
        (one["short"], one["figures"]["distributions"][name]["after"], colour)
        for one, colour in zip(shown, COLORS, strict=False)
    ]
    return {
        "grid": {"left": 8, "right": 8, "top": 40, "bottom": 8, "containLabel": True},
        "legend": legend(*(words for words, _, _ in sets)) | {"type": "scroll"},
        "xAxis": axis(type="category", data=first["values"], splitLine={"show": False})
        | {"axisLabel": {"rotate": 40, "color": GREY, "width": 80, "overflow": "truncate"}},
        "yAxis": percent_axis(min=0),
        "series": [chart_series("bar", words, [*map(to_percent, data)], colour) for words, data, colour in sets],
    }


def _draft_details(context: PageContext, plan: Plan, known: list[dict[str, Any]], here: dict[str, Any]) -> None:
    figures, table = here["figures"], plan.table["id"]
    with card("One draft more closely"):
        page_select({one["id"]: one["name"] for one in known}, here["id"], "Draft", f"/compare?table={table}&draft=")
        show_claims(figures["claims"], figures["against"], "Would hold")
        show_limits(figures["not_covered"], "What it would not cover")
        if figures["columns"]:
            ui.label("Columns").classes("font-medium")
            data_table(("Column", "Role", "Values before", "after", "Level", "Lost"), _column_rows(figures))
        ui.label("What would leave the house: first rows").classes("font-medium")
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
    """The neighbours in the lattice; one can be favoured, in another draft."""
    if here["figures"]["neighbors"]:
        ui.label("One step finer or coarser").classes("font-medium")
        hint_text(
            "What one step of one column would do. To favour a column makes another draft, in which the search gives it more weight."
        )
    for one in here["figures"]["neighbors"]:
        step = "finer" if one["finer"] else "coarser"
        words = "every group is large enough"
        if one["small"]:
            may = ", which may be left out" if one["fits"] else ""
            words = f"{one['small']:,} of {one['rows']:,} records in groups that are too small{may}"
        with ui.row().classes("w-full items-center gap-2 no-wrap"):
            icon = ui.icon("check_circle" if one["fits"] else "block", color="positive" if one["fits"] else "negative")
            set_label(icon, "would hold" if one["fits"] else "would not hold")
            ui.label(f"{one['column']} one level {step}: {words}").classes("grow")
            if one["finer"]:
                favour = ui.button("Favour", on_click=partial(_favor_column, context, plan, here, one["column"]))
                set_label(favour, f"Another draft that favours {one['column']}").props("flat dense no-caps")


async def _favor_column(context: PageContext, plan: Plan, here: dict[str, Any], column: str) -> None:
    """Another draft in which the search gives a column four times the weight; the figures stay unweighted."""

    def work() -> None:
        settings = context.hub.bundle(here["policy_hash"]).settings
        quasi = [name for name, role in plan.roles.items() if role == "quasi"]
        table = dict(settings.get("table", {}))
        weights = dict.fromkeys(quasi, 1.0) | table.get("weights", {}) | {column: 4.0}
        sections = dict(settings) | {"table": table | {"weights": weights}}
        drafts.begin(context.hub, plan, [(f"{here['name']}, favours {column}", sections)])

    await run_or_notify(in_thread(work))
    ui.navigate.to(f"/drafts?table={plan.table['id']}")
