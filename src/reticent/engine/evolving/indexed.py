"""Indexed: ENC's classes with an exact map from record to class, no scan.

Guarantee: at least l distinct sensitive values in every class, against an attacker who sees one publication.

Not covered: an attacker who compares two publications; values more frequent than 1/l inside a class.

Cost: O(l) per record.

Reference: our own method; relocation as in O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019.

Differences from the paper: a relocated record tries at most 64 unsatisfied classes before it joins the smallest
satisfied one.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Indexed(ClusterPublisher):
    """ENC's classes with an exact map from record to class, no scan."""

    method = "indexed"
