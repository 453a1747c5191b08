"""Benchmarks: each module has `run(quick)`; `python -m bench [area ...] [--quick]` writes the results to bench/results."""
