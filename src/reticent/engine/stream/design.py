"""What a delay-free stream knows of its values before the first record: from a file of the past, or from the domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reticent.engine.spellings import refuse_variants
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.prior import read_prior
from reticent.policy.tree import read_tree, tree_from_dict

Label = str | None


@dataclass(frozen=True, repr=False)
class Prior:
    """Counts per value and where they come from: "past" or "domain"."""

    counts: Mapping[Label, int]
    source: str

    def __repr__(self) -> str:
        return f"Prior({len(self.counts)} values from the {self.source})"


def starting_prior(policy: Policy) -> Prior:
    """The prior a stream starts with; refuses a policy that names neither the past nor the domain."""
    column = sensitive_column(policy)
    prior = _listed(policy, column)
    refuse_variants(prior.counts, column)
    return prior


def _listed(policy: Policy, column: str) -> Prior:
    if policy.prior is not None and policy.prior.file is not None:
        return Prior(read_prior(policy.path(policy.prior.file), "prior"), "past")
    spec = policy.columns[column].hierarchy
    if spec is not None and spec.file is not None:
        return Prior(dict.fromkeys(read_tree(policy.path(spec.file), column=column).paths, 1), "domain")
    if spec is not None and spec.tree is not None:
        return Prior(dict.fromkeys(tree_from_dict(spec.tree, column=column).paths, 1), "domain")
    raise PolicyError(
        f"A stream needs to know which values '{column}' can have before the first record comes.",
        hint="Write prior: {file: prior.csv} with value,count of the past (0 is allowed), or give the column "
        "a hierarchy from a file.",
    )


def sensitive_column(policy: Policy) -> str:
    """The one sensitive column of a stream."""
    if len(policy.sensitive) != 1:
        raise PolicyError(
            f"A stream needs exactly one sensitive column; the policy has {len(policy.sensitive)}.",
            hint="Merge them into one column, or keep the others inside as identifiers.",
        )
    return policy.sensitive[0]
