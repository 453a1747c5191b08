"""Synthetic data for demonstrations, tests and reproductions: seeded, fast, of any size, without real persons.

    hospital  one admission per person, ICD-10 diagnosis with a long tail
    visits    the hospital with several admissions per person
    series    the same persons over several releases, with progression of disease
    feed      admissions over time: seasons, households, persons who return, an optional outbreak
    census    the tables of the papers on evolving tables and on m-Distinct
    adult     a loader for the public Adult set, which is not included

Each generator has ``generate(n, seed)`` for one table and ``batches(n, seed, size)`` for a stream of tables with the
same rows; ``series`` returns one table per release.
"""
