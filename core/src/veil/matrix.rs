//! A kernel as a matrix: for every value its targets with integer weights, as read from a file of updates.

use std::array::from_fn;

use super::kernel::Kind;
use super::prf::{BLOCK, Question, Steps, word};

pub struct Matrix {
    /// Targets of value v: starts[v] .. starts[v + 1].
    starts: Vec<usize>,
    /// Sorted within a value.
    targets: Vec<u16>,
    /// Cumulative weights within a value, each target included.
    ends: Vec<u64>,
    /// Weights before each value's own target and up to it; empty if the value cannot stay.
    own: Vec<(u64, u64)>,
}

impl Matrix {
    /// Builds from pairs of (target, weight). Targets ascend, weights are positive, and their sum fits 64 bits.
    pub fn new(starts: Vec<usize>, targets: Vec<u16>, weights: &[u64]) -> Self {
        let mut ends = Vec::with_capacity(weights.len());
        for span in starts.windows(2) {
            let mut sum = 0;
            ends.extend(weights[span[0]..span[1]].iter().map(|&weight| {
                sum += weight;
                sum
            }));
        }
        let own = starts.windows(2).zip(0..).map(|(span, value)| {
            let (targets, ends) = (&targets[span[0]..span[1]], &ends[span[0]..span[1]]);
            let sum = |count: usize| count.checked_sub(1).map_or(0, |at| ends[at]);
            let place = targets.binary_search(&value);
            place.map_or((0, 0), |at| (sum(at), sum(at + 1)))
        });
        Matrix {
            own: own.collect(),
            starts,
            targets,
            ends,
        }
    }

    fn row(&self, value: u16) -> (&[u16], &[u64]) {
        let span = self.starts[usize::from(value)]..self.starts[usize::from(value) + 1];
        (&self.targets[span.clone()], &self.ends[span])
    }

    fn absorbs(&self, value: u16) -> bool {
        let (before, after) = self.own[usize::from(value)];
        self.row(value)
            .1
            .last()
            .is_none_or(|&all| all == after - before)
    }

    /// Whether the step has a positive probability.
    pub fn possible(&self, kind: Kind, from: u16, to: u16) -> bool {
        if self.absorbs(from) {
            return from == to;
        }
        (kind == Kind::Visit || from != to) && self.row(from).0.binary_search(&to).is_ok()
    }

    /// Moves all slots but the true one to an event. The hashes of a block are computed together.
    pub fn walk(
        &self,
        kind: Kind,
        (steps, event): (&Steps, u32),
        true_slot: Option<usize>,
        slots: &mut [u16],
    ) {
        for (block, first) in slots.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
            let ask = |slot: usize| word(event, first + slot, Question::Target);
            let mut hashes: [u64; BLOCK] = from_fn(ask);
            steps.hash_words(&mut hashes[..block.len()]);
            for (slot, value) in block.iter_mut().enumerate() {
                if Some(first + slot) != true_slot {
                    let below = |n| steps.answer(ask(slot), hashes[slot], n);
                    *value = self.next(kind, *value, below);
                }
            }
        }
    }

    /// The next value of a slot.
    #[inline]
    fn next(&self, kind: Kind, from: u16, below: impl FnOnce(u64) -> u64) -> u16 {
        let (targets, ends) = self.row(from);
        if self.absorbs(from) {
            return from;
        }
        let (before, after) = if kind == Kind::Visit {
            (0, 0)
        } else {
            self.own[usize::from(from)]
        };
        let own = after - before;
        let point = below(ends[ends.len() - 1] - own);
        let point = if point < before { point } else { point + own };
        targets[ends.partition_point(|&end| end <= point)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::prf::Prf;
    use super::*;

    #[test]
    fn slots_reach_exactly_the_possible_values() {
        // 0 -> 0, 1, 3; 1 -> 1; 2 -> nowhere; 3 -> 2
        let starts = vec![0, 3, 4, 4, 5];
        let matrix = Matrix::new(starts, vec![0, 1, 3, 1, 2], &[5, 1, 2, 9, 1]);
        let prf = Prf::new([1; 32]);
        for kind in [Kind::Visit, Kind::Correction] {
            for from in 0..4 {
                let next = |person: u64| {
                    let mut slots = [from];
                    matrix.walk(kind, (&prf.steps(person), 1), None, &mut slots);
                    slots[0]
                };
                let mut reached: Vec<u16> = (0..500).map(next).collect();
                reached.sort_unstable();
                reached.dedup();
                let possible = |&to: &u16| matrix.possible(kind, from, to);
                assert_eq!(reached, (0..4).filter(possible).collect::<Vec<u16>>());
            }
        }
        assert!(!matrix.possible(Kind::Correction, 0, 0) && matrix.possible(Kind::Visit, 0, 0));
        assert!(matrix.possible(Kind::Visit, 2, 2));
    }
}
