"""House: what a key pins for life: l, the prior by stratum, the domain, the orders and the kernel."""

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
"""One order for all persons destroys the recipient's channel; with 64 the variance is 3 to 12 times that of seeing the value."""
_MAX_CANDIDATES = 254
"""What a byte counts."""
_MAX_CODES = 65_535
"""What two bytes count, and one sign for nothing."""
_COUNT_SCALE = 1 << 20
"""Of a count of one."""
ADDED_COLUMNS = ("stratum", "event", "person")
"""Columns that a veiled release adds."""


_CACHE_SIZE = 4
_CACHE: dict[tuple[str, str, Path], VeilParameters] = {}
"""The houses asked for lately, by all that they are made of: whoever begins a publication asks several times."""


class VeilPublisher(Publisher):
    """An engine whose veil is keyed by a house."""

    method = "veil"

    @classmethod
    def pin_digest(cls, policy: Policy) -> str:
        """The digest of the house."""
        return VeilParameters.of(policy, cls.kind).pin_digest

    @classmethod
    def has_kernel(cls, policy: Policy) -> bool:
        """Whether the house has a kernel."""
        return VeilParameters.of(policy, cls.kind).kernel is not None


@dataclass(frozen=True, repr=False)
class VeilParameters:
    """The public side of a veil, and how records fall into it.

    Attributes:
        l: candidates per record.
        sensitive: the veiled column.
        domain: its values, in canonical order.
        by: published columns that the prior depends on.
        strata: per row of the prior its cells, nodes or `*`.
        stretches: rows x values on a line of length l.
        orders: orders x values.
        steps: how values follow one another; None: later values that differ are not offered.
        figures: what was measured of the prior when it was made; None: nobody did.
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
        """The house of a policy; refuses one without a prior, and says the ways out."""
        _refuse_without_prior(policy)
        key, figures = (policy.hash, kind, policy.base.resolve()), read_report(policy)
        house = _CACHE.get(key)
        if house is None or house.figures != figures:
            house = cls._build(policy, kind)
            if len(_CACHE) >= _CACHE_SIZE:
                _CACHE.clear()
            _CACHE[key] = house
        return house

    @classmethod
    def _build(cls, policy: Policy, kind: str) -> VeilParameters:
        settings, file = _refuse_without_prior(policy)
        prior = read_strata(policy.path(file))
        strays = [name for name in prior.by if settings.by and name not in settings.by]
        if strays:
            raise PolicyError(
                f"prior.by: {file} also depends on {len(strays)} other columns, such as '{strays[0]}'.",
                hint="Take `by` out of the policy, or make the prior again.",
            )
        sensitive = _sensitive_column(policy)
        _refuse_k(policy, kind)
        refuse_counts(policy, kind)
        refuse_variants(prior.total_counts(), sensitive)
        domain = Domain(prior.total_counts(), policy, sensitive)
        _refuse_large_prior(file, len(domain), len(prior.strata))
        strata, counts = _complete_strata(prior, domain)
        l, steps = policy.l_of(kind), read_kernel(policy, sensitive, domain)
        if l > _MAX_CANDIDATES:
            raise PolicyError(f"l = {l}: the veil offers at most {_MAX_CANDIDATES} candidates.", hint="Lower l.")
        if settings.household is not None and prior.by:
            # The same value of two rows lies on two lines: what their sets have in common would be the truth.
            raise PolicyError(
                f"prior: a unit and a prior by fields do not go together: relatives in different rows of {file} would show two sets over "
                "one truth.",
                hint="Make the prior again with `reticent prior`, which takes no fields where the policy names a unit. Or take the unit out.",
            )
        if steps is not None and settings.household is not None:
            # Their decoys would move alike, and where values part, what differs would be the truth.
            raise PolicyError(
                "prior: a unit and a kernel do not go together: relatives whose values part would show which candidate is true.",
                hint="Take the kernel (or updates) out: later values that differ are then not offered. Or take the unit out.",
            )
        return cls(
            l=l,
            sensitive=sensitive,
            domain=domain,
            by=prior.by,
            strata=strata,
            segments=_core.veil.segments_of_counts(counts, l=l),
            permutations=_make_permutations(domain, settings.value_order, counts),
            kernel=steps,
            figures=read_report(policy),
            policy=policy,
        )

    @cached_property
    def levels(self) -> PublishedLevels:
        """How published columns lead to a row."""
        return PublishedLevels(self.policy, self.by, self.strata)

    @cached_property
    def digest(self) -> str:
        """The same for the same l, prior, domain, orders and kernel."""
        pinned = {word: part for word, part in self.to_metadata().items() if word not in ("epsilon", "figures")}
        return hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).hexdigest()

    @cached_property
    def pin_digest(self) -> str:
        """The digest with the unit: a household and a person of one name would share order and points under one key."""
        unit = self.policy.household
        return self.digest if unit is None else hashlib.sha256(f"{self.digest} {unit}".encode()).hexdigest()

    @property
    def seeded(self) -> bool:
        """Whether the noise of the prior came from a given seed."""
        return bool((self.figures or {}).get("seeded"))

    @property
    def epsilon(self) -> float | None:
        """What the prior has cost the persons of the past, as its report or the policy says."""
        stated = self.policy.prior.epsilon if self.policy.prior else None
        return stated if self.figures is None else self.figures.get("epsilon")

    def to_metadata(self) -> dict[str, Any]:
        """What `veil.json` says of the house: all that a recipient or a judge needs, and nothing private."""
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
        """The mechanism under a key."""
        kernel = None if self.kernel is None else self.kernel.to_core()
        return _core.veil.Veil(key=key, l=self.l, segments=self.segments, permutations=self.permutations, kernel=kernel)


def _refuse_without_prior(policy: Policy) -> tuple[PriorSettings, str]:
    settings = policy.prior
    if settings is not None and settings.warmup is not None and not policy.path(settings.file or "").is_file():
        raise PolicyError(
            f"prior.warmup: {settings.file} is not there yet; the first records of a stream make it.",
            hint="Begin with `reticent stream FILE -p POLICY`, or make it: `reticent prior FILE -p POLICY -o prior.csv --released`.",
        )
    if settings is None or settings.file is None:
        raise PolicyError(
            "The veil needs a prior: what a reader knows already of the sensitive values.",
            hint="Write prior: {file: prior.csv} with public statistics, or make it: from a past or a disjoint sample with "
            "`reticent prior PAST -p POLICY -o prior.csv`, or from the data themselves, at a stated epsilon, with "
            "`reticent prior DATA -p POLICY -o prior.csv --released`.",
        )
    return settings, settings.file


def _sensitive_column(policy: Policy) -> str:
    sensitive = sole_sensitive(policy, "The veil covers", "Join them into one: {role: sensitive, combine: [a, b]}.")
    if policy.privacy.t is not None:
        raise PolicyError(
            "t does not apply to the veil.",
            hint="Take t out, and write prior: {value_order: hierarchy} against similarity.",
        )
    taken = [name for name in policy.released if name in ADDED_COLUMNS]
    if taken:
        raise PolicyError(
            f"A released column is called '{taken[0]}', as one of the veil's own.", hint="Rename the column."
        )
    return sensitive


def _refuse_k(policy: Policy, kind: str) -> None:
    """Refuses k but for a table, which alone keeps it: over several releases a person's sets are alike and join what crowds keep apart."""
    if policy.privacy.k is None:
        return
    if kind != "table":
        raise PolicyError(
            f"k is not kept by the veil in a release of kind {kind}: a person's candidates link the releases.",
            hint="Take k out and choose levels (`reticent init` proposes them), or publish a table.",
        )
    if policy.prior is not None and policy.prior.link:
        raise PolicyError(
            "k and link do not go together: a pseudonym joins the records of a person, and what they have in common may be unique.",
            hint="Take prior: {link: true} out, or k.",
        )


def _refuse_large_prior(file: str, values: int, strata: int) -> None:
    if max(values, strata + 1) > _MAX_CODES:  # a row for everybody else may be added
        raise PolicyError(
            f"prior: {file} has {values:,} values in {strata:,} rows; the veil takes {_MAX_CODES:,} of each at most.",
            hint="Make the prior with `reticent prior`, which puts rare values under their parent in the hierarchy and fields into few rows.",
        )


def _complete_strata(prior: Strata, domain: Domain) -> tuple[tuple[tuple[str, ...], ...], UInt64s]:
    """Strata with their counts by code; one for everybody else is added where the file has none."""
    strata = dict(prior.strata)
    everybody = (ROOT,) * len(prior.by)
    strata.setdefault(everybody, prior.total_counts())
    counts = np.zeros((len(strata), len(domain)))
    for row, cells in enumerate(strata.values()):
        for value, count in cells.items():
            counts[row, domain.code(value)] += count
    # Counts need not be whole; the line is laid in integers.
    return tuple(strata), np.rint(counts * _COUNT_SCALE).astype(np.uint64)


def _make_permutations(domain: Domain, value_order: str, counts: UInt64s) -> UInt16s:
    """The public orders: the same for the same prior, whoever computes them."""
    seed = hashlib.sha256(json.dumps([list(domain.labels), counts.tolist()]).encode()).digest()
    if value_order == "hierarchy":
        return _core.veil.hierarchy_permutations(domain.levels(), count=PERMUTATIONS, seed=seed)
    return _core.veil.random_permutations(len(domain), count=PERMUTATIONS, seed=seed)
