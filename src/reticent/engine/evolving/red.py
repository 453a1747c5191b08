"""RED: the whole table is anonymised again after every change.

Guarantee: at least l distinct sensitive values in every class of one publication.

Not covered: a second publication (subtract one from the next); values more frequent than 1/l inside a class.

Cost: O(n log n) per change.

Reference: O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019, after X. Xiao, Y. Tao, Anatomy, VLDB 2006.

Differences from the paper: records that Anatomy cannot group join the smallest class instead of stopping it.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Red(ClusterPublisher):
    """The whole table is anonymised again after every change."""

    method = "red"
