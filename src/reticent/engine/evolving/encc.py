"""ENCC: ENC with a cuckoo filter of records and one of sensitive values per class.

Guarantee: at least l distinct sensitive values in every class, against an attacker who sees one publication.

Not covered: an attacker who compares two publications; values more frequent than 1/l inside a class.

Cost: a scan over all filters per deletion, eight comparisons each.

Reference: O. Temuujin, J. Ahn, D.-H. Im, IEEE Access 2019; B. Fan and others, CoNEXT 2014.

Differences from the paper: as for ENC. The exact members confirm every match of a filter (at most 0.012% false
positives per lookup), so that no other record is ever deleted.
"""

from reticent.engine.evolving.cluster import ClusterPublisher


class Encc(ClusterPublisher):
    """ENC with a cuckoo filter of records and one of sensitive values per class."""

    method = "encc"
