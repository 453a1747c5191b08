"""Reports: an audit as one HTML file that needs no network, and as JSON."""

from reticent.report.audit import Audit, Material, audit
from reticent.report.compare import Candidate, compare
from reticent.report.page import write_report

__all__ = ["Audit", "Candidate", "Material", "audit", "compare", "write_report"]
