"""m-Distinct: every person keeps at least m candidate values that later releases cannot rule out.

Three phases. Buckets are made of the update set signatures that old records have (the candidate update sets of the group they stood in
last) and of the intersections of two signatures. Every record goes to the bucket with the highest score that its signature implies, those
with the fewest choices first; new records go wherever their value is covered, or form first groups of exactly m. Buckets are balanced with
counterfeits and halved along the quasi-identifiers until each part is a group with one value per entry.

Guarantee: every group has m records with different values (m-unique); the values of a person's group are a legal update instance, matched one to one, of
    the group before, so that no candidate is ever ruled out (Lemma 3); and the gate bounds what each candidate's share can grow to (`max_risk: 1,
    spread: false` is the paper's m-Distinct, without a gate). Against a reader who knows all releases, every quasi-identifier and the update knowledge,
    person by person.
Not covered: readers who reason over several persons jointly; update knowledge that does not hold. Without the gate the risk is not bounded.
Cost: O(n b) for b buckets a record may choose from, O(n log^2 n) for the splits, native; b is at most the number of signatures, and of their intersections:
    among signatures of the same components of the update graph, 24 at most are intersected with one another.
Reference: F. Li, S. Zhou, "Challenging more updates: towards anonymous re-publication of fully dynamic datasets", 2008.
Differences from the paper: Definition 14 is read with a one-to-one condition; a record enters an entry only if the others keep distinct representatives;
    records with a past are assigned before those without, a new record opens no empty bucket, and equal scores go to the bucket with most entries for
    the value; the records of a bucket are routed to its entries by flow, with the least number of groups, and counterfeits get their values by it; where the
    paper's search for a split is exponential, a cut along an axis or an edge colouring takes its place; first groups, for which the paper names no algorithm,
    are cut by place, or dealt by value where signatures would be many; with `spread`, first groups take values of different components of the update
    graph where that costs no counterfeits, or all of one component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent import _core
from reticent.arrays import Float32s, Int32s
from reticent.engine.series.grouping import Grouping
from reticent.engine.series.history import History
from reticent.engine.series.publisher import GroupPublisher
from reticent.engine.series.sug import People
from reticent.errors import GuaranteeError
from reticent.policy.updates import Updates

HEADROOM = 4
"""Times the least group size for the limit: measured on progressing illnesses, it lets five releases pass almost without holding anybody back."""


class MDistinct(GroupPublisher):
    """The next release of a fully dynamic table."""

    method = "m-distinct"

    def _colours(self, updates: Updates) -> tuple[Int32s, bool]:
        """What must differ in a first group, and whether that is only a wish."""
        if self.policy.series.spread:
            return updates.components, True
        return np.arange(len(updates), dtype=np.int32), False

    def _size(self, updates: Updates) -> int:
        """Members of a first group: m, or more where some updates are likelier than others and candidates will drift apart."""
        asked, components = self.policy.group_size, int(updates.components.max(initial=0)) + 1
        if updates.even or not self.policy.series.spread:
            return asked
        roomy = math.ceil(HEADROOM / self.policy.series.limit)
        return max(asked, roomy) if components >= 2 * roomy else asked

    def _group(self, people: People, updates: Updates, where: Float32s) -> Grouping:
        colours, relax = self._colours(updates)
        order = Order(self._size(updates), colours, self._key("groups"), relax, self.still)
        found = grouped(self.history, updates, people, where, order)
        if found is None:
            raise GuaranteeError(
                f"First groups of {order.m} need as many {self._wanted}, and the domain has fewer; nothing was published.",
                hint="Lower series.m, raise series.max_risk, or name more values in the update knowledge.",
            )
        return found

    _wanted = "different sensitive values"


@dataclass(frozen=True, repr=False)
class Order:
    """What first groups must look like, and the key of all random choices.

    Attributes:
        m: members of a first group.
        colours: what must differ in one, per sensitive code.
        key: of the release.
        relax: whether the colours are only a wish.
        still: values do not change; one that did is covered where the person's last group showed the new one.
    """

    m: int
    colours: Int32s
    key: bytes
    relax: bool = False
    still: bool = False


def grouped(history: History, updates: Updates, people: People, where: Float32s, order: Order) -> Grouping | None:
    """The groups of the next release; None when the domain has too few colours."""
    last = history.last(people.hashes)
    old, at = last >= 0, np.maximum(last, 0)
    group = history.group if len(history.group) else np.zeros(1, dtype=np.int32)
    value = history.value if len(history.value) else np.zeros(1, dtype=np.int32)
    found = _core.series.publish(
        people.values,
        np.where(old, group[at], np.int32(-1)),
        np.where(old, people.values if order.still else value[at], np.int32(0)),
        where,
        past=history.groups,
        sets=updates.steps(1)[0],
        colours=order.colours,
        relax=order.relax,
        m=order.m,
        key=order.key,
    )
    return None if found is None else Grouping(found.offsets, found.rows, found.values, found.donors, found.held)
