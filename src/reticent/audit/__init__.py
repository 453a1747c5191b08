"""The judge: reads releases from the side and shares no code with the engines that made them."""

from reticent.audit.verdict import Finding, Verdict
from reticent.audit.verify import verify

__all__ = ["Finding", "Verdict", "verify"]
