"""Risk measures of one release, as regulators define them; one measure per file."""

from reticent.audit.risk.assessment import Assessment, assess

__all__ = ["Assessment", "assess"]
