"""Benchmarks: `python -m bench [area ...] [--quick]` calls `run(quick)` of modules and writes bench/results."""
