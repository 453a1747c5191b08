"""ENCC: ENC with a cuckoo filter of records and one of sensitive values per class.

Guarantee: at least l distinct sensitive values in every class of one publication.

Not covered: a second publication (subtract one from the next); values more frequent than 1/l inside a class.

Cost: a scan over all filters per deletion, eight comparisons each.

Reference: O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019; B. Fan and others, CoNEXT 2014.

Differences from the paper: as for ENC; what a filter reports (false positives at most 0.012% per lookup) is confirmed
by the exact members, so that no other record is ever deleted.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Encc(ClusterPublisher):
    """ENC with a cuckoo filter of records and one of sensitive values per class."""

    method = "encc"
