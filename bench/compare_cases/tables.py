"""One table, once, one record per person: engine, gate and writing separately, and the whole command."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from bench.compare_cases.measure import Taken
from bench.table_data import ADULT, adult_policy
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy

if TYPE_CHECKING:
    from pathlib import Path

METHODS = ("optimal", "local", "mondrian", "supervised", "anatomy")
DATES = {"role": "quasi", "hierarchy": {"dates": ["month", "quarter", "year"]}}
HOSPITAL: dict[str, Any] = {
    "patient_id": "identifier",
    "name": "identifier",
    "birth_date": DATES,
    "sex": "quasi",
    "region": "quasi",
    "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "admission_route": "quasi",
    "admission_date": {"role": "quasi", "hierarchy": {"dates": ["month", "quarter", "year"]}},
    "length_of_stay": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8, 16]}},
    "ward": "identifier",
    "diagnosis": "sensitive",
}


def prepare(folder: Path, *, quick: bool) -> None:
    """Write the synthetic hospital, which one version generates for both; Adult is read from its folder."""
    from reticent.datasets import hospital

    rows = 2_000 if quick else 20_000
    table = hospital.generate(rows, 1)
    pq.write_table(table, folder / "hospital.parquet")
    pc.write_csv(table, folder / "hospital.csv")


def table_of(data: str, folder: Path) -> pa.Table:
    if data == "hospital":
        return pq.read_table(folder / "hospital.parquet")
    from reticent.connectors.files import read_table

    return read_table(str(ADULT / "adult_30162.csv"))


def policy_of(data: str, method: str) -> Policy:
    """Return a policy with k = 5, l = 3 and at most 2 % suppressed; Anatomy has l only."""
    privacy = {"l": 3, "suppression": 0.02} if method == "anatomy" else {"k": 5, "l": 3, "suppression": 0.02}
    if data == "adult":
        rules = adult_policy(privacy).to_dict()
    else:
        rules = {"version": 1, "person": "patient_id", "columns": HOSPITAL, "privacy": privacy}
    # Versions differ in their default recoding.
    recoding = {"supervision": {"recoding": "optimal"}} if method == "supervised" else {}
    return Policy.from_dict({**rules, "table": {"method": method, **recoding}})


class Released:
    """The parts of a release in one process."""

    def __init__(self, data: Path, scratch: Path, name: str, method: str) -> None:
        self.target, self.method = scratch / "release", method
        self.table, self.policy = table_of(name, data), policy_of(name, method)

    def __call__(self) -> Taken:
        """Make one release."""
        taken = Taken()
        engine = publisher(self.policy, "table", self.method, rng=Rng.from_seed(1))

        def released() -> Any:
            engine.push(self.table)
            return engine.close()[0]

        release = taken.part("engine", released)
        release = taken.part("gate", partial(gate, release, self.policy, engine))
        shutil.rmtree(self.target, ignore_errors=True)
        taken.part("writing", partial(release.to_dir, self.target, format="csv"))
        loss = release.metrics.get("loss", release.metrics.get("information_loss"))
        taken.figures = {"loss": float(loss), "suppressed": release.records.suppressed}
        return taken


def gate(release: Any, policy: Policy, engine: Any) -> Any:
    """Run the checks between an engine and its folder: only the verifier in an earlier version."""
    try:
        from reticent.publication.gate import pass_gate
    except ImportError:
        from reticent.verify import verify

        verify([release], policy)
        return release
    return pass_gate(release, policy, "table", members=engine.members(), original=engine.original()).release


class Command:
    """Run `reticent anonymize`: CSV in, verified CSV out."""

    def __init__(self, data: Path, scratch: Path, name: str, method: str) -> None:
        self.out, policy = scratch / "command", scratch / "policy.json"
        policy.write_text(json.dumps(policy_of(name, method).to_dict()))
        source = data / "hospital.csv" if name == "hospital" else ADULT / "adult_30162.csv"
        self.words = [
            sys.executable,
            "-m",
            "reticent",
            "anonymize",
            str(source),
            "-p",
            str(policy),
            "-o",
            str(self.out),
        ]

    def __call__(self) -> Taken:
        """Run the command once."""
        taken = Taken()
        shutil.rmtree(self.out, ignore_errors=True)
        taken.command("command", self.words)
        return taken


DATA = ("adult", "hospital") if ADULT.exists() else ("hospital",)
MEASURES = {
    f"{data}, {method}{what}": partial(kind, name=data, method=method)
    for data in DATA
    for method in METHODS
    for what, kind in (("", Released), (", command", Command))
    if (method, kind) != ("supervised", Command)  # its search is long and takes nearly all the time
}
