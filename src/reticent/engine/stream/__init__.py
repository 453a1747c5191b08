"""Engines for streams, one algorithm per module."""
