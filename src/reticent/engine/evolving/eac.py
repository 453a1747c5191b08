"""EAC: examine every cluster for the least extra information loss.

Guarantee: at least l distinct sensitive values in every class, against an attacker who sees one publication.

Not covered: an attacker who compares two publications; values more frequent than 1/l inside a class.

Cost: O(clusters) per inserted or dispersed record.

Reference: X. Sun, H. Wang, J. Li, AI 2008, as described by O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019.

Differences from the paper: a cluster is split when both halves keep l distinct values; the first load is grouped by
Anatomy; a record's host is found by the exact map.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Eac(ClusterPublisher):
    """Examines every cluster for the least extra information loss."""

    method = "eac"
    uses_distance = True
