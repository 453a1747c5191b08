"""The parameter set of a veil, pinned in the store on first use: l, prior, value domain, value orders and kernel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from reticent import _core
from reticent.arrays import UInt16s, UInt64s
from reticent.engine.base import Publisher, sole_sensitive
from reticent.engine.value_variants import refuse_variants
from reticent.engine.veil.domain import Domain
from reticent.engine.veil.kernel import TransitionKernel, read_kernel
from reticent.engine.veil.published_levels import PublishedLevels
from reticent.engine.veil.release import refuse_counts
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT
from reticent.policy.prior import Strata, read_report, read_strata
from reticent.policy.settings.kinds import PriorSettings

PERMUTATIONS = 64
"""One value order for all persons leaves the recipient no information; with 64 the variance is 3 to 12 times that of true values."""
_MAX_CANDIDATES = 254
"""One byte holds the number of a slot."""
_MAX_CODES = 65_535
"""Two bytes hold a code; one code means none."""
_COUNT_SCALE = 1 << 20
"""The integer for a count of 1."""
ADDED_COLUMNS = ("stratum", "event", "person")
"""Columns that a veiled release adds."""


_CACHE_SIZE = 4
_CACHE: dict[tuple[str, str, Path], VeilParameters] = {}
"""Recent parameter sets, by all inputs: one publication asks for the same set several times."""


class VeilPublisher(Publisher):
    """A publisher whose veil is pinned to a parameter set."""

    method = "veil"

    @classmethod
    def pin_digest(cls, policy: Policy) -> str:
        """Return the digest of the parameter set."""
        return VeilParameters.of(policy, cls.kind).pin_digest

    @classmethod
    def has_kernel(cls, policy: Policy) -> bool:
        """Whether the parameter set has a transition kernel."""
        return VeilParameters.of(policy, cls.kind).kernel is not None


@dataclass(frozen=True, repr=False)
class VeilParameters:
    """The public parameters of a veil.

    Attributes:
        l: candidates per record.
        sensitive: the veiled column.
        domain: its values, in canonical order.
        by: published columns that the prior depends on.
        strata: per stratum of the prior, its cells: nodes or `*`.
        segments: strata x values, lengths on the cumulative line of length l.
        permutations: value orders x values.
        kernel: how values follow one another; None: later values that differ are omitted.
        figures: what was measured when the prior was made; None: nothing was.
        policy: the policy of the parameter set.
    """

    l: int
    sensitive: str
    domain: Domain
    by: tuple[str, ...]
    strata: tuple[tuple[str, ...], ...]
    segments: UInt64s
    permutations: UInt16s
    kernel: TransitionKernel | None
    figures: dict[str, Any] | None
    policy: Policy

    @classmethod
    def of(cls, policy: Policy, kind: str) -> VeilParameters:
        """Return the parameter set of a policy, from the cache where possible; refuses a policy without a prior."""
        _refuse_without_prior(policy)
        key, figures = (policy.hash, kind, policy.base.resolve()), read_report(policy)
        parameters = _CACHE.get(key)
        if parameters is None or parameters.figures != figures:
            parameters = cls._build(policy, kind)
            if len(_CACHE) >= _CACHE_SIZE:
                _CACHE.clear()
            _CACHE[key] = parameters
        return parameters

    @classmethod
    def _build(cls, policy: Policy, kind: str) -> VeilParameters:
        settings, file = _refuse_without_prior(policy)
        prior = read_strata(policy.path(file))
        extra = [name for name in prior.by if settings.by and name not in settings.by]
        if extra:
            raise PolicyError(
                f"prior.by: {file} also depends on {len(extra)} other columns, such as '{extra[0]}'.",
                hint="Remove `by` from the policy, or make the prior again.",
            )
        sensitive = _sensitive_column(policy)
        _refuse_k(policy, kind)
        refuse_counts(policy, kind)
        refuse_variants(prior.total_counts(), sensitive)
        domain = Domain(prior.total_counts(), policy, sensitive)
        _refuse_large_prior(file, len(domain), len(prior.strata))
        strata, counts = _complete_strata(prior, domain)
        l, kernel = policy.l_of(kind), read_kernel(policy, sensitive, domain)
        if l > _MAX_CANDIDATES:
            raise PolicyError(f"l = {l}: the veil offers at most {_MAX_CANDIDATES} candidates.", hint="Lower l.")
        if settings.household is not None and prior.by:
            # One value lies on the lines of two strata: the candidates that both sets share would reveal the true value.
            raise PolicyError(
                f"prior: a household and a prior by fields cannot be combined: members in different strata of {file} would show "
                "two candidate sets for one true value.",
                hint="Make the prior again with `reticent prior`, which uses no fields where the policy names a household; or remove household.",
            )
        if kernel is not None and settings.household is not None:
            # False candidates of a household move alike; where members' values differ, the difference reveals the true value.
            raise PolicyError(
                "prior: a household and a kernel cannot be combined: members whose values diverge would reveal the true candidate.",
                hint="Remove the kernel (or updates), so that later values that differ are omitted; or remove household.",
            )
        return cls(
            l=l,
            sensitive=sensitive,
            domain=domain,
            by=prior.by,
            strata=strata,
            segments=_core.veil.segments_of_counts(counts, l=l),
            permutations=_make_permutations(domain, settings.value_order, counts),
            kernel=kernel,
            figures=read_report(policy),
            policy=policy,
        )

    @cached_property
    def levels(self) -> PublishedLevels:
        """The published levels, which assign records to strata."""
        return PublishedLevels(self.policy, self.by, self.strata)

    @cached_property
    def digest(self) -> str:
        """The hash of l, prior, domain, value orders and kernel."""
        pinned = {word: part for word, part in self.to_metadata().items() if word not in ("epsilon", "figures")}
        return hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).hexdigest()

    @cached_property
    def pin_digest(self) -> str:
        """The digest with the household column: a household and a person with equal names would share all draws."""
        household = self.policy.household
        return self.digest if household is None else hashlib.sha256(f"{self.digest} {household}".encode()).hexdigest()

    @property
    def seeded(self) -> bool:
        """Whether the noise of the prior came from a given seed."""
        return bool((self.figures or {}).get("seeded"))

    @property
    def epsilon(self) -> float | None:
        """The privacy cost of the prior for the persons it was counted on, from its report or the policy."""
        stated = self.policy.prior.epsilon if self.policy.prior else None
        return stated if self.figures is None else self.figures.get("epsilon")

    def to_metadata(self) -> dict[str, Any]:
        """Return the entries of `veil.json`: all that the recipient and the verifier need, and nothing private."""
        settings = self.policy.prior
        return {
            "l": self.l,
            "slot_length": int(_core.veil.SLOT_LENGTH),
            "sensitive": self.sensitive,
            "domain": list(self.domain.labels),
            "by": list(self.by),
            "strata": [list(cells) for cells in self.strata],
            "segments": self.segments.tolist(),
            "value_order": settings.value_order if settings else "random",
            "permutations": self.permutations.tolist(),
            "kernel": None if self.kernel is None else self.kernel.to_metadata(),
            "epsilon": self.epsilon,
            "figures": self.figures,
        }

    def veil(self, key: bytes) -> _core.veil.Veil:
        """Return the mechanism under a key."""
        kernel = None if self.kernel is None else self.kernel.to_core()
        return _core.veil.Veil(key=key, l=self.l, segments=self.segments, permutations=self.permutations, kernel=kernel)


def _refuse_without_prior(policy: Policy) -> tuple[PriorSettings, str]:
    settings = policy.prior
    if settings is not None and settings.warmup is not None and not policy.path(settings.file or "").is_file():
        raise PolicyError(
            f"prior.warmup: the file {settings.file} does not exist yet; the first records of a stream make it.",
            hint="Run `reticent stream FILE -p POLICY`, or make the file: `reticent prior FILE -p POLICY -o prior.csv --released`.",
        )
    if settings is None or settings.file is None:
        raise PolicyError(
            "The veil needs a prior: what an attacker already knows about the sensitive values.",
            hint="Write prior: {file: prior.csv} with public statistics, or make the file: from past or separate data with "
            "`reticent prior PAST -p POLICY -o prior.csv`, or from the released data, at a stated epsilon, with "
            "`reticent prior DATA -p POLICY -o prior.csv --released`.",
        )
    return settings, settings.file


def _sensitive_column(policy: Policy) -> str:
    sensitive = sole_sensitive(policy, "The veil covers", "Combine them into one: {role: sensitive, combine: [a, b]}.")
    if policy.privacy.t is not None:
        hint = "Remove t; write prior: {value_order: hierarchy} against similar candidates."
        raise PolicyError("privacy.t does not apply to the veil.", hint=hint)
    clashes = [name for name in policy.released if name in ADDED_COLUMNS]
    if clashes:
        raise PolicyError(
            f"The veil adds a column '{clashes[0]}', which the policy releases.", hint="Rename the column."
        )
    return sensitive


def _refuse_k(policy: Policy, kind: str) -> None:
    """Refuse k except for a table: a person's candidates are alike in several releases and join equivalence classes."""
    if policy.privacy.k is None:
        return
    if kind != "table":
        raise PolicyError(
            f"privacy.k: the veil does not guarantee k in a release of kind {kind}: a person's candidates link the releases.",
            hint="Remove k and choose levels (`reticent init` proposes them), or publish a table.",
        )
    if policy.prior is not None and policy.prior.link:
        raise PolicyError(
            "k and link cannot be combined: a pseudonym joins the records of a person, and together they may be unique.",
            hint="Remove prior: {link: true}, or remove k.",
        )


def _refuse_large_prior(file: str, values: int, strata: int) -> None:
    if max(values, strata + 1) > _MAX_CODES:  # a stratum for all other records may be added
        raise PolicyError(
            f"prior: {file} has {values:,} values and {strata:,} strata; the veil allows at most {_MAX_CODES:,} of each.",
            hint="Make the prior with `reticent prior`, which merges rare values and forms few strata.",
        )


def _complete_strata(prior: Strata, domain: Domain) -> tuple[tuple[tuple[str, ...], ...], UInt64s]:
    """Return strata with their counts by code; a stratum for all other records is added where the file has none."""
    strata = dict(prior.strata)
    everybody = (ROOT,) * len(prior.by)
    strata.setdefault(everybody, prior.total_counts())
    counts = np.zeros((len(strata), len(domain)))
    for stratum, cells in enumerate(strata.values()):
        for value, count in cells.items():
            counts[stratum, domain.code(value)] += count
    # Counts may be fractions; the cumulative line has integer lengths.
    return tuple(strata), np.rint(counts * _COUNT_SCALE).astype(np.uint64)


def _make_permutations(domain: Domain, value_order: str, counts: UInt64s) -> UInt16s:
    """Return the public value orders; the same prior always gives the same orders."""
    seed = hashlib.sha256(json.dumps([list(domain.labels), counts.tolist()]).encode()).digest()
    if value_order == "hierarchy":
        return _core.veil.hierarchy_permutations(domain.levels(), count=PERMUTATIONS, seed=seed)
    return _core.veil.random_permutations(len(domain), count=PERMUTATIONS, seed=seed)
