"""ENC: examine only the classes that a change leaves unsatisfied.

Guarantee: at least l distinct sensitive values in every class, against an attacker who sees one publication.

Not covered: an attacker who compares two publications; values more frequent than 1/l inside a class.

Cost: a scan over all records per deletion.

Reference: O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019, Algorithms 1 and 2.

Differences from the paper: l or more distinct values satisfy a class (Definition 3 says more than l). Records that
Anatomy cannot group or that find no unsatisfied class go to the smallest satisfied class, or are withheld if there is
none. Records are compared by 64-bit hashes, confirmed by identity.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Enc(ClusterPublisher):
    """Examines only the classes that a change leaves unsatisfied."""

    method = "enc"
