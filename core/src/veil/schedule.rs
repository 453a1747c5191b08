//! Groups first events by line, so that a line is fetched from memory once for several of them.
//!
//! It groups a part of a batch at a time: results are written at the record's position, and writing all over a large
//! batch costs as much as reading lines from all over memory. A part is small enough for the writes and large enough
//! for the reads.

use super::first_event::Veil;

/// Lines of this many bytes in total stay in the cache in any order.
const CACHE: usize = 1 << 20;
/// Bytes of lines that one record may fetch.
const SHARE: usize = 1 << 7;
/// The results of this many records stay in the cache in any order.
const NEAR: usize = 1 << 13;

/// The first event of a person.
#[derive(Clone, Copy, Default)]
pub struct FirstEvent {
    /// The key of the veil: the person or the household.
    pub household: u64,
    pub stratum: u32,
    pub value: i32,
    /// The record's position in its batch.
    pub record: u32,
    /// The household's permutation.
    pub permutation: u32,
}

impl Veil {
    pub fn first_event(
        &self,
        record: usize,
        household: u64,
        stratum: u32,
        value: i32,
    ) -> FirstEvent {
        FirstEvent {
            household,
            stratum,
            value,
            record: record as u32,
            permutation: self.prf.permutation(household, self.permutations.len()) as u32,
        }
    }

    /// Calls `take` on every first event, in the order that suits the cache.
    pub fn for_each_by_line(
        &self,
        mut firsts: impl Iterator<Item = FirstEvent>,
        mut take: impl FnMut(&FirstEvent),
    ) {
        let lines = self.strata.len() * self.permutations.len();
        let bytes = lines * self.values * size_of::<u64>();
        if bytes <= CACHE {
            return firsts.for_each(|first| take(&first));
        }
        let size = (bytes / SHARE).max(NEAR);
        let (mut part, mut sorted) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        loop {
            part.clear();
            part.extend(firsts.by_ref().take(size));
            if part.len() < (lines / 4).max(1) {
                return part.iter().for_each(take);
            }
            places.clear();
            places.resize(lines + 1, 0);
            sorted.resize(part.len(), FirstEvent::default());
            self.sort(&part, &mut places, &mut sorted);
            sorted.iter().for_each(&mut take);
        }
    }

    /// Counting sort by line.
    fn sort(&self, part: &[FirstEvent], places: &mut [usize], sorted: &mut [FirstEvent]) {
        let line = |first: &FirstEvent| {
            first.stratum as usize * self.permutations.len() + first.permutation as usize
        };
        part.iter().for_each(|first| places[line(first) + 1] += 1);
        (1..places.len()).for_each(|at| places[at] += places[at - 1]);
        for first in part {
            let place = &mut places[line(first)];
            sorted[*place] = *first;
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cumulative_line::segments;
    use super::super::kernel::Kernel;
    use super::super::permutations::random;
    use super::*;

    /// Values, strata, permutations: a parameter set whose lines fit the cache, and two whose lines do not.
    const PARAMETER_SETS: [(usize, usize, usize); 3] = [(6, 2, 64), (1100, 4, 64), (60_000, 1, 3)];

    #[test]
    fn every_first_event_is_visited_once_and_grouped_by_line() {
        for (values, strata, permutations) in PARAMETER_SETS {
            let lines = vec![segments(&vec![1; values], 3).unwrap(); strata];
            let permutations = random(values, permutations, [4; 32]);
            let veil = Veil::new([3; 32], 3, lines, permutations, Kernel::Identity);
            for size in [0, 1, 60, 64, 5000, 20_000, 50_000] {
                let first = |i: usize| veil.first_event(i, i as u64 * 7, (i % strata) as u32, 0);
                let mut turns: Vec<FirstEvent> = Vec::new();
                veil.for_each_by_line((0..size).map(first), |first| turns.push(*first));
                let line = |first: &FirstEvent| (first.stratum, first.permutation);
                let changes = turns
                    .windows(2)
                    .filter(|two| line(&two[0]) != line(&two[1]));
                let together = changes.count() < 256 * (1 + size / 5000);
                assert!(together || values == 6);
                turns.sort_unstable_by_key(|first| first.record);
                assert!((0..size).eq(turns.iter().map(|first| first.record as usize)));
                assert!(
                    turns
                        .iter()
                        .all(|first| first.household == u64::from(first.record) * 7)
                );
            }
        }
    }
}
