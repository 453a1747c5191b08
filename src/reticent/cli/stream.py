"""`reticent stream`: a feed that cannot wait."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.options import Json, PolicyFile, Seed


def stream(
    source: Annotated[
        str,
        typer.Argument(
            help="CSV, NDJSON or HL7 v2: a file, - for standard input, mllp://host:port, or kafka://broker/topic.",
            show_default=False,
        ),
    ],
    policy: PolicyFile,
    store: Annotated[str, typer.Option(help="The private side: a file or a database URL.", show_default=False)],
    to: Annotated[
        str, typer.Option(help="Where released lines go: a file, - for standard output, or kafka://broker/topic.")
    ] = "-",
    dead_letters: Annotated[
        Path | None, typer.Option(help="Also write lines that cannot be read to this file.", show_default=False)
    ] = None,
    form: Annotated[str | None, typer.Option("--form", help="csv, ndjson or hl7; guessed by default.")] = None,
    replayed: Annotated[
        bool, typer.Option(help="Standard input starts from the beginning again: skip what was read before.")
    ] = False,
    group: Annotated[str, typer.Option(help="Kafka: workers of one group share the partitions.")] = "reticent",
    until_end: Annotated[bool, typer.Option(help="Kafka: stop when all that is there now has been released.")] = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release every record the moment it arrives.

    Killed and started again, it goes on where it was.
    """
    from reticent.cli.output import emit
    from reticent.connectors.runner import StreamRunner
    from reticent.connectors.runner.dead import DeadLetterFile
    from reticent.connectors.runner.rehearse import rehearse
    from reticent.connectors.runner.runner import NAME
    from reticent.connectors.runner.sink import open_sink
    from reticent.errors import PolicyError
    from reticent.policy import Policy
    from reticent.policy.check import check
    from reticent.store import Store

    rules = Policy.load(policy)
    check(rules)
    if form not in {None, "csv", "ndjson", "hl7"}:
        raise PolicyError(f"--form: '{form}' is not known here.", hint="Write csv, ndjson or hl7.")
    if source.startswith("kafka://") or to.startswith("kafka://"):
        from reticent.cli.stream_kafka import stream_kafka

        stream_kafka((source, to), rules, store, group=group, until_end=until_end, seed=seed, json=json)
        return
    if not Store.exists(store):
        rehearse(rules, source, to, form)
    with Store.open(store) as private, StreamRunner(rules, private, open_sink(to), seed=seed) as runner:
        dead = DeadLetterFile(dead_letters, private, NAME) if dead_letters else None
        if dead is not None:
            runner.on_dead = dead.add
        runner.stop_on_signals()
        done = runner.run(source, form=form, replayed=replayed)
        if dead is not None:
            dead.close()
    _tell(done)
    if json:
        emit(_figures(done))


def _tell(done: object) -> None:
    from reticent.cli.output import say
    from reticent.connectors.runner import Summary

    if isinstance(done, Summary):
        say(
            f"{done.counts.published:,} of {done.counts.rows_in:,} records released, {done.counts.held:,} held, "
            f"{done.counts.suppressed:,} suppressed, {done.dead_letters:,} dead letters; this run {done.seconds:.1f} s."
        )


def _figures(done: object) -> dict[str, object]:
    from reticent.connectors.runner import Summary

    assert isinstance(done, Summary)  # noqa: S101
    return {
        "rows_in": done.counts.rows_in,
        "rows_out": done.counts.published,
        "held": done.counts.held,
        "suppressed": done.counts.suppressed,
        "dead_letters": done.dead_letters,
        "seconds": round(done.seconds, 4),
        "guarantee": dict(done.guarantee.claims),
        "metrics": done.metrics,
    }
