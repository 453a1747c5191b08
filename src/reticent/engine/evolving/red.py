"""RED: anonymize the whole table again after every change.

Guarantee: at least l distinct sensitive values in every class, against an attacker who sees one publication.

Not covered: an attacker who compares two publications; values more frequent than 1/l inside a class.

Cost: O(n log n) per change.

Reference: O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019, after X. Xiao, Y. Tao, Anatomy, VLDB 2006.

Differences from the paper: records that Anatomy cannot group join the smallest class; the release does not fail.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Red(ClusterPublisher):
    """Anonymizes the whole table again after every change."""

    method = "red"
