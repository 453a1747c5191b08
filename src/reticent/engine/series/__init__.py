"""Engines for series, which publish the same persons again; one algorithm per module."""
