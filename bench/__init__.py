"""Benchmarks: each module has `run(quick)`; `python -m bench [area ...] [--quick]` writes the figures to bench/results."""
