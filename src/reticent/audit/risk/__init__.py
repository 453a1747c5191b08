"""Risk of one release in the terms of regulators; one measure per file."""

from reticent.audit.risk.assessment import Assessment, assess

__all__ = ["Assessment", "assess"]
