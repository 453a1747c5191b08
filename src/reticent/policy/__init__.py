"""Policies: frozen values that state what a release must satisfy; they contain no data."""

from reticent.policy.policy import Policy
from reticent.policy.privacy import LSpec, Privacy, TSpec
from reticent.policy.spec import Column, HierarchySpec, UpdatesSpec

__all__ = ["Column", "HierarchySpec", "LSpec", "Policy", "Privacy", "TSpec", "UpdatesSpec"]
