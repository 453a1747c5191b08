"""A scikit-learn transformer that releases a frame as a table.

Needs the extra `audit`. A release may have fewer rows than its input, in another order. Therefore fit a model on columns of
the released frame, not on separate labels. Each call of `transform` is a release of its own. To release the same persons
repeatedly, use `EvolvingTable` or `Series`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reticent.api import anonymize
from reticent.errors import ConnectorError
from reticent.frames import table_of
from reticent.policy import Policy

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError:
    raise ConnectorError(
        "The transformer needs scikit-learn.", hint="Install it: pip install 'reticent[audit]'."
    ) from None

if TYPE_CHECKING:
    import os

__all__ = ["Anonymizer"]


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Releases frames under a policy. Returns pandas for pandas, polars for polars, and Arrow otherwise.

    Args:
        policy: a policy, the path of its file, or None to guess it in `fit`.
        method: the method to use instead of the policy's `table.method`.
        seed: makes the release repeatable, for tests only.
    """

    def __init__(
        self,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        method: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.policy = policy
        self.method = method
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002, N803 - the library's words
        """Load the policy and check that it has the columns of the frame."""
        table = table_of(X)
        policy = Policy.guess(table) if self.policy is None else self.policy
        self.policy_ = policy if isinstance(policy, Policy) else Policy.load(Path(policy))
        self.policy_.check_columns(table.column_names)
        self.feature_names_in_ = list(table.column_names)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803 - the library's word
        """Return the release of a frame. Its guarantee is in `release_`."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "policy_")
        self.release_ = anonymize(X, self.policy_, method=self.method, seed=self.seed)
        library = type(X).__module__.partition(".")[0]
        converters = {"pandas": self.release_.to_pandas, "polars": self.release_.to_polars}
        return converters.get(library, self.release_.to_arrow)()
