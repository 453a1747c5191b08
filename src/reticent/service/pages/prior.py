"""The prior of a plan: what an attacker knows before the release; the veil needs it."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from nicegui import events, ui

from reticent.errors import PolicyError
from reticent.service.pages.data import drop_area, file_name
from reticent.service.pages.layout import PageContext, card, hint_text, run_or_notify, status_text
from reticent.service.pages.plan import Plan
from reticent.service.routes.common import in_thread
from reticent.service.uploads import read_upload

AsyncAction = Callable[[], Awaitable[None]]


def prior_card(context: PageContext, plan: Plan, save: AsyncAction, propose: AsyncAction) -> None:
    """Draw the card of the prior, with an upload and a button that counts the table."""
    with card("Prior: what an attacker knows before the release"):
        words = status_text(_status_text(plan))
        hint_text(
            "The veil needs a prior. Public statistics are best: a file value,count, or with columns such as sex,value,count. Counts of "
            "this table get noise and cost its persons a privacy loss of epsilon 1."
        )

        async def refresh() -> None:
            await save()
            words.set_text(_status_text(plan))

        async def take_file(event: events.UploadEventArguments) -> None:
            await propose()
            name, text = file_name(event.file.name), (await event.file.read()).decode("utf-8", "replace")
            plan.files[name] = text
            if "kernel" in name:
                plan.settings.setdefault("prior", {})["kernel"] = {"file": name}
            else:
                plan.settings["prior"] = {"file": name} | _kernel(plan)
            await refresh()

        async def count() -> None:
            await propose()  # the counts need the levels that the veil publishes
            if await run_or_notify(in_thread(lambda: _count_table(context, plan))) is not None:
                await refresh()

        drop_area(context, "Upload prior.csv or kernel.csv", several=True, on_upload=take_file)
        ui.button("Count this table, with noise", icon="functions", on_click=count).props("outline no-caps")


def _status_text(plan: Plan) -> str:
    file = plan.settings.get("prior", {}).get("file")
    return f"The prior is {file}." if file else "There is no prior. Only the veil needs one."


def _kernel(plan: Plan) -> dict[str, object]:
    kernel = plan.settings.get("prior", {}).get("kernel")
    return {"kernel": kernel} if kernel else {}


def _count_table(context: PageContext, plan: Plan) -> str:
    """Count the table at fixed levels with noise, so that the counts may be published, and store them as prior.csv."""
    import numpy as np

    from reticent.engine.veil.prior.fit_on_release import fit_on_release
    from reticent.engine.veil.prior.fitted_prior import kernel_name, write_fit

    rest = {name: value for name, value in plan.settings.items() if name != "prior"}
    policy = context.hub.policy_registry.policy(type(plan)(plan.table, rest, plan.files).bundle())
    if len(policy.sensitive) != 1:
        raise PolicyError("A prior needs exactly one sensitive column.", hint="Give one column the role sensitive.")
    table = read_upload(context.hub.tables.blob(plan.table["id"]))
    l, rng, kernel = policy.l_of("table"), np.random.default_rng(), plan.kind == "stream" and policy.person is not None
    fitted = fit_on_release(table, policy, l=l, epsilon=1.0, kernel=kernel, rng=rng)
    with tempfile.TemporaryDirectory(prefix="reticent-prior-") as folder:
        for path in write_fit(fitted, Path(folder) / "prior.csv"):
            plan.files[path.name] = path.read_text(encoding="utf-8")
    steps = {} if fitted.kernel is None else {"kernel": {"file": kernel_name("prior.csv")}}
    plan.settings["prior"] = {"file": "prior.csv"} | steps
    return "prior.csv"
