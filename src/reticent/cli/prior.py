"""`reticent prior`: what the past says of the sensitive values, for the veil."""

from __future__ import annotations

import math
import time
from pathlib import Path

import click

from reticent.cli import options
from reticent.cli.output import emit, say, show_progress
from reticent.errors import ConnectorError, PolicyError


@click.command()
@click.argument("data", type=options.PATH_OR_URL, help="The past, or a sample of other persons.")
@options.policy_file
@click.option("--output", "-o", type=options.PATH, required=True, help="A new file for the prior.")
@click.option("--by", help="Published columns to depend on, as sex,age:2; chosen where it gains otherwise.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    help="Privacy loss that the counts may cost the past's persons.",
)
@click.option("--public", is_flag=True, help="The past is public: no noise.")
@click.option(
    "--released", is_flag=True, help="The data are those to be released: noise on everything, nothing measured."
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
    """Make the veil's prior from the past.

    Says what an informed reader would make of a release under it.
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
            raise ConnectorError(f"{path} exists.", hint="Name a new file.")
    if not math.isfinite(epsilon):
        raise PolicyError("--epsilon must be a number.", hint="Write 1, or --public where the past is public.")
    if released and public:
        raise PolicyError("--released and --public: what is to be protected is not public.", hint="Give one of them.")
    if len(rules.sensitive) != 1:
        raise PolicyError("A prior is of exactly one sensitive column.", hint="Give one column the role sensitive.")
    with show_progress("Reading"):
        past = read_input(data, rules)
    with show_progress("Counting, and reading as an informed reader would"):
        usual = list(rules.prior.by) if rules.prior is not None and rules.prior.by else None
        columns = usual if by is None else [name.strip() for name in by.split(",") if name.strip()]
        rng, sensitive, l = np.random.default_rng(seed), rules.sensitive[0], rules.l_of("table")
        if released:
            named = rules.person is not None
            fitted = fit_on_release(past, rules, l=l, by=columns, epsilon=epsilon, kernel=named, rng=rng)
        else:
            fitted = fit(past, rules, sensitive, l=l, by=columns, epsilon=None if public else epsilon, rng=rng)
    files = write_fit(fitted, output, seeded=seed is not None)
    for line in report(fitted).splitlines():
        say(f"  {line}")
    kernel = f", kernel: {{file: {files[1].name}}}" if fitted.kernel is not None else ""
    say(f"Written to {' and '.join(map(str, files))}. In the policy: prior: {{file: {output.name}{kernel}}}")
    if json:
        emit(
            {
                "input": past.num_rows,
                "files": [str(path) for path in files],
                **figures(fitted),
                "seconds": round(time.perf_counter() - start, 4),
            }
        )
