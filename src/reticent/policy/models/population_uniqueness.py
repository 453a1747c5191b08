"""Population uniqueness: at most an estimated share of the population that the table samples is unique.

Guarantee: against an attacker who has a register of the whole population: by the estimate, at most this share of its
    people is unique in the published quasi-identifiers and can be identified with certainty.
Not covered: errors of the estimate; samples that were not drawn at random; people in small classes.
Cost: linear in the distinct class sizes.
Reference: L. Zayatz, US Bureau of the Census, report 91/08, 1991; F. Dankar et al., BMC Med. Inform. Decis. Mak. 12, 2012.
Differences from the paper: none. A table of the whole population counts its own uniques.
"""

from __future__ import annotations

from reticent.arrays import Int64s


def population_uniques(sizes: Int64s, population: int) -> float:
    """Estimate the number of unique people in the population by Zayatz' method, from the class sizes of the sample.

    >>> import numpy as np
    >>> round(population_uniques(np.array([5, 5, 1]), 1000), 1), population_uniques(np.array([5, 5]), 1000)
    (8.6, 0.0)
    """
    rows, unique = int(sizes.sum()), int((sizes == 1).sum())
    if rows >= population or not unique:
        return float(unique)
    part = rows / population
    # The probability that the sample contains exactly one of n people of a class.
    probabilities = {n: n * part * (1 - part) ** (n - 1) for n in set(sizes.tolist())}
    return float(unique * unique / sum(probabilities[n] for n in sizes.tolist()))
