"""Synthetic data for demonstrations, tests and reproductions: seeded, fast, of any size, about nobody.

    hospital  one admission per person, ICD-10 diagnosis with a long tail
    visits    the hospital with persons who come back
    series    the same persons over several releases, with progression of disease
    feed      admissions in time: seasons, households, persons who return, an outbreak on request
    census    the tables of the papers on evolving tables and on m-Distinct
    adult     a loader for the public Adult set, which is not shipped

Each generator has ``generate(n, seed)`` for one table and ``batches(n, seed, size)`` for a stream of tables with the
very same rows; ``series`` gives one table per release.
"""
