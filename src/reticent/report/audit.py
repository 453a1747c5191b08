"""The audit: verify the claims, measure the risk, run every attack and measure the utility."""

from __future__ import annotations

import datetime as dt
import json
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.audit.attack import ATTACKS, Evidence, Outcome
from reticent.audit.risk import Assessment, assess
from reticent.audit.risk.assessment import initial_risk
from reticent.audit.risk.reidentification import Risk, prosecutor
from reticent.errors import GuaranteeError, PolicyError
from reticent.notebook import image_html, table_html
from reticent.policy import Policy
from reticent.release import Ledger, Release
from reticent.report.phrases import rationale
from reticent.report.utility import utility
from reticent.svg import Range, ranges, standalone
from reticent.verify.linked.verifier import original_views
from reticent.verify.original.persons import Input
from reticent.verify.published import Published, read_release, text_table
from reticent.verify.result import VerificationResult
from reticent.verify.verify import verify

Progress = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class AuditInputs:
    """What an audit may use in addition to the releases.

    Attributes:
        original: the private input, to measure utility and to count right guesses.
        tables: the private input of linked tables, to measure the risk before anonymization.
        population: a table of the population, or its number of people.
        external: a table that an attacker might have.
        ledger: which person was in which group.
        threshold: risk above which a record counts as exposed.
        target: the column that the classifier predicts; the sensitive value if None.
        seed: makes the random choices of the audit repeatable.
    """

    original: pa.Table | None = None
    tables: Mapping[str, pa.Table] | None = None
    population: pa.Table | int | None = None
    external: pa.Table | None = None
    ledger: Ledger | None = None
    threshold: float = 0.09
    target: str | None = None
    seed: int | None = None


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit.

    Attributes:
        refuted: whether a claim does not hold, by recomputation or by attack.
    """

    releases: tuple[Published, ...]
    policy: Policy
    result: VerificationResult
    risk: Assessment
    initial: Risk | None
    outcomes: tuple[Outcome, ...]
    skipped: tuple[str, ...]
    utility: dict[str, Any]
    time: str
    seed: int
    against: str = ""
    not_covered: tuple[str, ...] = ()
    inputs: AuditInputs = field(default_factory=AuditInputs)

    @property
    def refuted(self) -> bool:
        """Whether a claim does not hold, by recomputation or by attack."""
        return not self.result.holds or any(outcome.refuted for outcome in self.outcomes)

    def __repr__(self) -> str:
        """Return the result and the accuracy of each attack, without any cell of the inputs."""
        word = "refuted" if self.refuted else "not refuted"
        attacks = "".join(f"\n  {one.attack}: {one.accuracy:.1%} right{_bound_text(one)}" for one in self._guesses())
        return f"Audit({word}, {len(self.releases)} releases, {self.result!r}){attacks}"

    def _repr_html_(self) -> str:
        heading = "A claim is refuted." if self.refuted else "No claim is refuted."
        rows = [(one.attack, f"{one.accuracy:.1%}{_bound_text(one)}", one.question) for one in self._guesses()]
        items = [Range(one.attack, one.accuracy, *one.interval, one.claim) for one in self._guesses()]
        parts = [table_html(heading, ("attack", "right guesses", "what the attacker does"), rows)]
        parts += [image_html(standalone(ranges("Accuracy of each attack", items)))] if items else []
        return "".join(parts) + self.result._repr_html_()

    def _guesses(self) -> list[Outcome]:
        """Return the attacks that guess values; skewness measures a distance."""
        return [one for one in self.outcomes if one.attack != "skewness"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `audit.json`."""
        return {
            "format": 1,
            "refuted": self.refuted,
            "time": self.time,
            "policy_hash": self.policy.hash,
            "variables": [
                {"name": name, "role": role, "technique": technique} for name, role, technique in rationale(self.policy)
            ],
            "against": self.against,
            "not_covered": list(self.not_covered),
            "releases": [_describe(release) for release in self.releases],
            "verify": self.result.to_dict(),
            "risk": self.risk.to_dict(),
            "initial_risk": asdict(self.initial) if self.initial else None,
            "attacks": [outcome.to_dict() for outcome in self.outcomes],
            "not_applicable": list(self.skipped),
            "utility": self.utility,
            "seed": self.seed,
            "versions": {"reticent": version("reticent"), "python": platform.python_version(), "numpy": np.__version__},
        }


def _bound_text(outcome: Outcome) -> str:
    return "" if outcome.claim is None else f", stated bound {outcome.claim:.1%}"


def audit(
    sources: Sequence[str | Path | Release | pa.Table],
    policy: Policy,
    inputs: AuditInputs = AuditInputs(),  # noqa: B008 - frozen
    *,
    progress: Progress = lambda step: None,  # noqa: ARG005
) -> Audit:
    """Audit one release, or several in the order they were published.

    Args:
        sources: folders, files of JSON lines, Release values, or tables of any origin.
        policy: the policy that the releases must satisfy.
        inputs: the original and other data to audit with.
        progress: called with the name of each step when it begins.
    """
    if not sources:
        raise PolicyError("There is no release to audit.", hint="Give the folder of a release.")
    seed = secrets.randbits(32) if inputs.seed is None else inputs.seed
    progress("Recomputing the claims")
    source = None if inputs.original is None else Input(inputs.original)
    result = verify(list(sources), policy, ledger=inputs.ledger, original=source)
    try:
        return _build_audit(sources, policy, inputs, result, seed, progress)
    except _MALFORMED_ERRORS:
        if result.holds:
            raise
        raise GuaranteeError(
            f"{len(result.refuted)} claims are refuted, and the release is too malformed for the attacks.",
            hint="Run `reticent verify` to see what is wrong with the release.",
        ) from None


_MALFORMED_ERRORS = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError),
    *(RecursionError, pa.ArrowException),
)
"""Errors that attacks raise on malformed releases."""


def _build_audit(
    sources: Sequence[str | Path | Release | pa.Table],
    policy: Policy,
    inputs: AuditInputs,
    verification: VerificationResult,
    seed: int,
    progress: Progress,
) -> Audit:
    rng = np.random.default_rng(seed)
    progress("Reading the releases")
    releases = tuple(read_release(source, _name(source, number)) for number, source in enumerate(sources, 1))
    original = text_table(inputs.original) if inputs.original is not None else None
    progress("Measuring the re-identification risk")
    population = inputs.population
    population = text_table(population) if isinstance(population, pa.Table) else population
    risk = assess(releases[-1], policy, population=population, threshold=inputs.threshold)
    initial = _initial(original, inputs, policy)
    external = text_table(inputs.external) if inputs.external is not None else None
    evidence = Evidence(releases, policy, original, external, inputs.ledger, key=_key(inputs.seed), rng=rng)
    outcomes, skipped = _run_attacks(evidence, progress)
    progress("Measuring the utility")
    utility_figures = utility(releases, original, policy, rng, inputs.target)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    guarantee = _guarantee_text(sources[-1])
    return Audit(
        releases, policy, verification, risk, initial, outcomes, skipped, utility_figures, now, seed, *guarantee, inputs
    )


def _initial(original: pa.Table | None, inputs: AuditInputs, policy: Policy) -> Risk | None:
    """Return the risk if the data were published unchanged: of the table, or of all tables joined."""
    if inputs.tables is not None:
        return prosecutor(original_views(inputs.tables, policy), inputs.threshold)
    return initial_risk(original, policy, inputs.threshold) if original is not None else None


def _guarantee_text(source: str | Path | Release | pa.Table) -> tuple[str, tuple[str, ...]]:
    """Return the attacker that the guarantee is stated against, and what it does not cover."""
    if isinstance(source, pa.Table):
        return "none: the table claims nothing; all figures were measured", ()
    if isinstance(source, str | Path):
        path = Path(source) / "release.json"
        guarantee = json.loads(path.read_text(encoding="utf-8")).get("guarantee", {}) if path.is_file() else {}
        return str(guarantee.get("against", "")), tuple(str(part) for part in guarantee.get("not_covered", ()))
    return source.guarantee.against, tuple(source.guarantee.not_covered)


def _run_attacks(evidence: Evidence, progress: Progress) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    outcomes, skipped = [], []
    for name, attack in ATTACKS.items():
        progress(f"Attacking: {name}")
        outcome = attack(evidence)
        if outcome is None or not outcome.tried:
            skipped.append(name)
        else:
            outcomes.append(outcome)
    return tuple(outcomes), tuple(skipped)


def _key(seed: int | None) -> bytes:
    """Return the key of the pseudonyms: random, so that nobody can recompute them, or derived from a given seed."""
    return secrets.token_bytes(16) if seed is None else seed.to_bytes(16, "big", signed=True)


def _name(source: object, number: int) -> str:
    return Path(source).name if isinstance(source, str | Path) else f"release {number}"


def _describe(release: Published) -> dict[str, Any]:
    return {
        "name": release.name,
        "kind": release.kind,
        "shape": release.shape,
        "method": release.method,
        "policy_hash": release.policy_hash,
        "claims": dict(release.claims),
        "records": dict(release.counts),
        "metrics": dict(release.metrics),
        "altered_files": release.altered_files,
    }
