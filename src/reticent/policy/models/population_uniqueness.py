"""Population uniqueness: of the population that the table is a sample of, an estimated share at most stands alone.

Guarantee: against an attacker who holds a register of the whole population: by the estimate, at most this share of the people in it is
    alone with the quasi-identifiers as they are published, and can be looked up with certainty.
Not covered: an estimate that is wrong, and samples that were not drawn at random; people in small classes.
Cost: linear in the distinct class sizes.
Reference: L. Zayatz, US Bureau of the Census, report 91/08, 1991; F. Dankar et al., BMC Med. Inform. Decis. Mak. 12, 2012.
Differences from the paper: none. A table of the whole population counts its own uniques.
"""

from __future__ import annotations

from reticent.arrays import Int64s


def population_uniques(sizes: Int64s, population: int) -> float:
    """People of the population who are alone, by Zayatz' estimate: unique records, each as likely as the class sizes make it.

    >>> import numpy as np
    >>> round(population_uniques(np.array([5, 5, 1]), 1000), 1), population_uniques(np.array([5, 5]), 1000)
    (8.6, 0.0)
    """
    rows, alone = int(sizes.sum()), int((sizes == 1).sum())
    if rows >= population or not alone:
        return float(alone)
    part = rows / population
    # A class of n people shows exactly one of them with this probability; a unique one always shows its own.
    seen = {n: n * part * (1 - part) ** (n - 1) for n in set(sizes.tolist())}
    return float(alone * alone / sum(seen[n] for n in sizes.tolist()))
