//! A kernel with few parameters: each value's stay probability, a share of changes within the parent node, the rest by
//! the prior.
//!
//! T(v, v) = stay(v) / SLOT_LENGTH. Of the remaining mass, the share `within` goes to the other values under v's
//! parent, in proportion to their segments. The rest goes to all values but v, in proportion to theirs. If v has no
//! sibling with a segment, all of the mass is rest; if v is the only value with a segment, it stays.

use std::array::from_fn;

use super::SLOT_LENGTH;
use super::kernel::Kind;
use super::prf::{BLOCK, Question, Steps, word};

pub struct Shares {
    stay: Vec<u64>,
    within: u64,
    parents: Vec<u32>,
    /// Values sorted by parent, so that a node is an interval.
    members: Vec<u16>,
    /// Position of each value among the members.
    places: Vec<u32>,
    /// Interval of each value's parent among the members.
    spans: Vec<(u32, u32)>,
    /// Per stratum, the sums of the segments before each member, and the total.
    sums: Vec<Vec<u64>>,
}

fn running_sums(segments: &[u64], members: &[u16]) -> Vec<u64> {
    let mut sum = 0;
    let after = members.iter().map(|&value| {
        sum += segments[usize::from(value)];
        sum
    });
    std::iter::once(0).chain(after).collect()
}

impl Shares {
    pub fn new(stay: Vec<u64>, within: u64, parents: Vec<u32>, strata: &[Vec<u64>]) -> Self {
        let mut members: Vec<u16> = (0..parents.len()).map(|value| value as u16).collect();
        members.sort_by_key(|&value| parents[usize::from(value)]);
        let mut places = vec![0; parents.len()];
        for (place, &value) in members.iter().enumerate() {
            places[usize::from(value)] = place as u32;
        }
        let parent = |value: &u16| parents[usize::from(*value)];
        let spans = parents.iter().map(|&node| {
            let from = members.partition_point(|value| parent(value) < node);
            let to = members.partition_point(|value| parent(value) <= node);
            (from as u32, to as u32)
        });
        Shares {
            spans: spans.collect(),
            sums: strata
                .iter()
                .map(|stratum| running_sums(stratum, &members))
                .collect(),
            stay,
            within,
            parents,
            members,
            places,
        }
    }

    /// Sums of the segments in a stratum before a value and up to it.
    fn own(&self, stratum: usize, value: usize) -> (u64, u64) {
        let place = self.places[value] as usize;
        (self.sums[stratum][place], self.sums[stratum][place + 1])
    }

    /// Total length of all other values, and of the other values under the same parent.
    fn others(&self, stratum: usize, value: usize) -> (u64, u64) {
        let (from, to) = self.spans[value];
        let sums = &self.sums[stratum];
        let (before, after) = self.own(stratum, value);
        let own = after - before;
        let siblings = sums[to as usize] - sums[from as usize] - own;
        (sums[sums.len() - 1] - own, siblings)
    }

    fn absorbs(&self, stratum: usize, value: usize) -> bool {
        self.stay[value] == SLOT_LENGTH || self.others(stratum, value).0 == 0
    }

    /// Whether the step has a positive probability.
    pub fn possible(&self, kind: Kind, stratum: usize, from: u16, to: u16) -> bool {
        let (from, to) = (usize::from(from), usize::from(to));
        if self.absorbs(stratum, from) {
            return from == to;
        }
        if from == to {
            return kind == Kind::Visit && self.stay[from] > 0;
        }
        let (before, after) = self.own(stratum, to);
        let sibling = self.parents[from] == self.parents[to];
        let rest = self.within < SLOT_LENGTH || self.others(stratum, from).1 == 0;
        before < after && (rest || sibling)
    }

    /// Moves all slots but the true one to an event.
    ///
    /// It works question by question, not slot by slot, so that hashes are computed together. The draws are keyed: an
    /// unused draw changes no other.
    pub fn walk(
        &self,
        kind: Kind,
        stratum: usize,
        (steps, event): (&Steps, u32),
        true_slot: Option<usize>,
        slots: &mut [u16],
    ) {
        for (block, first) in slots.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
            let ask = |slot: usize, question| word(event, first + slot, question);
            let (mut movers, mut size) = ([0; BLOCK], 0);
            let mut stays: [u64; BLOCK] = from_fn(|slot| ask(slot, Question::Stay));
            if kind == Kind::Visit {
                steps.hash_words(&mut stays[..block.len()]);
            }
            for (slot, &value) in block.iter().enumerate() {
                let stay = self.stay[usize::from(value)];
                let draw = || steps.answer(ask(slot, Question::Stay), stays[slot], SLOT_LENGTH);
                let stays = stay == SLOT_LENGTH || kind == Kind::Visit && draw() < stay;
                movers[size] = slot;
                size += usize::from(Some(first + slot) != true_slot && !stays);
            }
            let movers = &movers[..size];
            let mut hashes = [0; 2 * BLOCK];
            let (near, far) = hashes[..2 * size].split_at_mut(size);
            for (at, &slot) in movers.iter().enumerate() {
                near[at] = ask(slot, Question::Within);
                far[at] = ask(slot, Question::Target);
            }
            steps.hash_words(&mut hashes[..2 * size]);
            for (at, &slot) in movers.iter().enumerate() {
                let near = || steps.answer(ask(slot, Question::Within), hashes[at], SLOT_LENGTH);
                let target = |n| steps.answer(ask(slot, Question::Target), hashes[size + at], n);
                block[slot] = self.change(stratum, block[slot], near, target);
            }
        }
    }

    /// The next value of a slot that does not stay.
    #[inline]
    fn change(
        &self,
        stratum: usize,
        from: u16,
        near: impl Fn() -> u64,
        below: impl Fn(u64) -> u64,
    ) -> u16 {
        let value = usize::from(from);
        let (all, siblings) = self.others(stratum, value);
        if all == 0 {
            return from;
        }
        let near = siblings > 0 && (self.within == SLOT_LENGTH || near() < self.within);
        let (begin, end) = match near {
            true => self.spans[value],
            false => (0, self.members.len() as u32),
        };
        let length = if near { siblings } else { all };
        let sums = &self.sums[stratum][begin as usize..=end as usize];
        // The value's own segment is cut out of the sums.
        let (before, after) = self.own(stratum, value);
        let point = sums[0] + below(length);
        let point = if point < before {
            point
        } else {
            point + after - before
        };
        let place = sums[1..].partition_point(|&end| end <= point);
        self.members[begin as usize + place]
    }
}

#[cfg(test)]
mod tests {
    use super::super::prf::Prf;
    use super::*;

    fn targets(shares: &Shares, kind: Kind, from: u16) -> Vec<u16> {
        let prf = Prf::new([1; 32]);
        let next = |person: u64| {
            let mut slots = [from];
            shares.walk(kind, 0, (&prf.steps(person), 1), None, &mut slots);
            slots[0]
        };
        let mut targets: Vec<u16> = (0..2000).map(next).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    fn kernel(stay: u64, within: u64, lengths: [u64; 5]) -> Shares {
        Shares::new(
            vec![stay; 5],
            within,
            vec![0, 1, 0, 1, 2],
            &[lengths.to_vec()],
        )
    }

    #[test]
    fn slots_reach_exactly_the_possible_values() {
        let lengths = [
            SLOT_LENGTH / 2,
            SLOT_LENGTH / 2,
            SLOT_LENGTH / 2,
            0,
            SLOT_LENGTH / 2,
        ];
        for (stay, within) in [
            (0, 0),
            (SLOT_LENGTH / 2, SLOT_LENGTH / 2),
            (SLOT_LENGTH / 2, SLOT_LENGTH),
            (0, SLOT_LENGTH),
            (SLOT_LENGTH, 0),
        ] {
            let shares = kernel(stay, within, lengths);
            for kind in [Kind::Visit, Kind::Correction] {
                for from in [0, 1, 2, 4] {
                    let possible = |&to: &u16| shares.possible(kind, 0, from, to);
                    let reached = targets(&shares, kind, from);
                    assert_eq!(reached, (0..5).filter(possible).collect::<Vec<u16>>());
                }
            }
        }
    }

    #[test]
    fn the_only_value_with_a_segment_stays() {
        let shares = kernel(0, SLOT_LENGTH / 2, [0, 2 * SLOT_LENGTH, 0, 0, 0]);
        assert_eq!(targets(&shares, Kind::Visit, 1), [1]);
        assert_eq!(targets(&shares, Kind::Correction, 1), [1]);
    }

    #[test]
    fn steps_follow_the_stated_shares() {
        let prf = Prf::new([2; 32]);
        let shares = kernel(
            SLOT_LENGTH / 2,
            SLOT_LENGTH / 2,
            [
                SLOT_LENGTH / 2,
                SLOT_LENGTH / 4,
                SLOT_LENGTH / 2,
                SLOT_LENGTH / 4,
                SLOT_LENGTH / 2,
            ],
        );
        let mut tally = [0.0_f64; 5];
        for person in 0..40_000 {
            let mut slots = [0];
            shares.walk(Kind::Visit, 0, (&prf.steps(person), 1), None, &mut slots);
            tally[usize::from(slots[0])] += 1.0 / 40_000.0;
        }
        // The others weigh 1, 2, 1, 2 of 6; the sibling (2) has a quarter to itself.
        let law = [0.5, 1.0 / 24.0, 0.25 + 1.0 / 12.0, 1.0 / 24.0, 1.0 / 12.0];
        assert!(tally.iter().zip(law).all(|(a, b)| (a - b).abs() < 0.01));
    }
}
