"""ENC: only the classes that a change leaves unsatisfied are examined.

Guarantee: at least l distinct sensitive values in every class of one publication.

Not covered: a second publication (subtract one from the next); values more frequent than 1/l inside a class.

Cost: a scan over all records per deletion.

Reference: O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019, Algorithms 1 and 2.

Differences from the paper: a class is satisfied with l or more distinct values (Definition 3 says more than l); what
Anatomy cannot group, and what finds no unsatisfied class, goes to the smallest satisfied class; without one it is
held back. Records are compared by 64-bit hashes, confirmed by identity.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Enc(ClusterPublisher):
    """Only the classes that a change leaves unsatisfied are examined."""

    method = "enc"
