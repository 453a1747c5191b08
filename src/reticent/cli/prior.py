"""`reticent prior`: make the veil's prior from past data."""

from __future__ import annotations

import math
import time
from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say, show_progress
from reticent.errors import ConnectorError, PolicyError


@click.command()
@click.argument("data", type=options.PATH_OR_URL, help="Past data, or a sample of other people.")
@options.policy_file
@click.option("--output", "-o", type=options.PATH, required=True, help="New file for the prior.")
@click.option("--by", help="Columns of the strata, such as sex,age:2 (column:level); default: chosen by gain.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    help="Privacy budget (epsilon) for the people in the data.",
)
@click.option("--public", is_flag=True, help="The data is public: add no noise.")
@click.option(
    "--released",
    is_flag=True,
    help="The data is the data to be released: add noise to everything, report no measurements.",
)
@options.seed
@options.json
def prior(
    data: str,
    policy: Path,
    output: Path,
    by: str | None,
    epsilon: float,
    public: bool,
    released: bool,
    seed: int | None,
    json: bool,
) -> None:
    """Make the veil's prior from past data.

    Reports how much an informed attacker could learn from a release with this prior.
    """
    import numpy as np

    from reticent.connectors.inputs import read_input
    from reticent.engine.veil.prior.fit import fit
    from reticent.engine.veil.prior.fit_on_release import fit_on_release
    from reticent.engine.veil.prior.fitted_prior import figures, kernel_name, report, write_fit
    from reticent.policy import Policy
    from reticent.policy.prior import report_name

    start = time.perf_counter()
    rules = Policy.load(policy)
    for path in (output, output.with_name(report_name(output.name)), output.with_name(kernel_name(output.name))):
        if path.exists():
            raise ConnectorError(f"{path} already exists.", hint="Give another file to --output.")
    if not math.isfinite(epsilon):
        raise PolicyError("--epsilon must be a finite number.", hint="Use 1, or --public if the data is public.")
    if released and public:
        raise PolicyError(
            "--released and --public cannot be combined: data to be released is not public.", hint="Remove one of them."
        )
    if len(rules.sensitive) != 1:
        raise PolicyError("A prior needs exactly one sensitive column.", hint="Give one column the role sensitive.")
    with show_progress("Reading"):
        past = read_input(data, rules)
    with show_progress("Counting, and measuring what an informed attacker learns"):
        default = list(rules.prior.by) if rules.prior is not None and rules.prior.by else None
        columns = default if by is None else [name.strip() for name in by.split(",") if name.strip()]
        rng, sensitive, l = np.random.default_rng(seed), rules.sensitive[0], rules.l_of("table")
        if released:
            has_person = rules.person is not None
            fitted = fit_on_release(past, rules, l=l, by=columns, epsilon=epsilon, kernel=has_person, rng=rng)
        else:
            fitted = fit(past, rules, sensitive, l=l, by=columns, epsilon=None if public else epsilon, rng=rng)
    files = write_fit(fitted, output, seeded=seed is not None)
    for line in report(fitted).splitlines():
        say(f"  {line}")
    kernel = f", kernel: {{file: {files[1].name}}}" if fitted.kernel is not None else ""
    say(f"Written to {' and '.join(map(str, files))}. Add to the policy: prior: {{file: {output.name}{kernel}}}")
    if json:
        emit(
            {
                "input": past.num_rows,
                "files": [str(path) for path in files],
                **figures(fitted),
                "seconds": round(time.perf_counter() - start, 4),
            }
        )
