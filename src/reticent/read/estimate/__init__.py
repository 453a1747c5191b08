"""Estimators of counts, one module per kind of release."""
