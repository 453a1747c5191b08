"""Reports: an audit as one HTML file that needs no network, and as JSON."""

from reticent.report.audit import Audit, AuditInputs, audit
from reticent.report.compare import ComparedPolicy, compare
from reticent.report.page import write_report

__all__ = ["Audit", "AuditInputs", "ComparedPolicy", "audit", "compare", "write_report"]
