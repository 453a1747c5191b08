//! A kernel of few numbers: each value's stay; of the changes a share within the parent node; the rest by the prior.
//!
//! T(v, v) = stay(v) / ONE. Of the remaining mass the share `within` goes to the other values under v's parent, in
//! proportion to their stretches, and the rest to all values but v in proportion to theirs. Where v has no seen sibling all of it is
//! the rest; where v is the only seen value it stays.

use super::ONE;
use super::kernel::{Draw, Kind};
use super::prf::Question;

pub struct Shares {
    stay: Vec<u64>,
    within: u64,
    parents: Vec<u32>,
    /// Values sorted by parent, so that a node is an interval.
    members: Vec<u16>,
    /// Where each value stands among the members.
    places: Vec<u32>,
    /// Interval of each value's parent among the members.
    spans: Vec<(u32, u32)>,
    /// Per row the sums of the stretches before each member, and the whole.
    sums: Vec<Vec<u64>>,
}

fn running(stretches: &[u64], members: &[u16]) -> Vec<u64> {
    let mut sum = 0;
    let after = members.iter().map(|&value| {
        sum += stretches[usize::from(value)];
        sum
    });
    std::iter::once(0).chain(after).collect()
}

impl Shares {
    pub fn new(stay: Vec<u64>, within: u64, parents: Vec<u32>, rows: &[Vec<u64>]) -> Self {
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
            sums: rows.iter().map(|row| running(row, &members)).collect(),
            stay,
            within,
            parents,
            members,
            places,
        }
    }

    /// Sums of the stretches in row before a value and up to it.
    fn own(&self, row: usize, value: usize) -> (u64, u64) {
        let place = self.places[value] as usize;
        (self.sums[row][place], self.sums[row][place + 1])
    }

    /// Units of all other values, and of the other values under the same parent.
    fn others(&self, row: usize, value: usize) -> (u64, u64) {
        let (from, to) = self.spans[value];
        let sums = &self.sums[row];
        let (before, after) = self.own(row, value);
        let own = after - before;
        let siblings = sums[to as usize] - sums[from as usize] - own;
        (sums[sums.len() - 1] - own, siblings)
    }

    fn absorbs(&self, row: usize, value: usize) -> bool {
        self.stay[value] == ONE || self.others(row, value).0 == 0
    }

    /// Whether the step has a positive probability.
    pub fn possible(&self, kind: Kind, row: usize, from: u16, to: u16) -> bool {
        let (from, to) = (usize::from(from), usize::from(to));
        if self.absorbs(row, from) {
            return from == to;
        }
        if from == to {
            return kind == Kind::Visit && self.stay[from] > 0;
        }
        let (before, after) = self.own(row, to);
        let sibling = self.parents[from] == self.parents[to];
        let rest = self.within < ONE || self.others(row, from).1 == 0;
        before < after && (rest || sibling)
    }

    /// Where a slot goes from a value.
    pub fn next(&self, kind: Kind, row: usize, from: u16, draw: &Draw) -> u16 {
        let value = usize::from(from);
        let stay = self.stay[value];
        // The draws are keyed: one that is not needed is not made, and no other changes.
        if stay == ONE || kind == Kind::Visit && draw.below(Question::Stay, ONE) < stay {
            return from;
        }
        let (all, siblings) = self.others(row, value);
        if all == 0 {
            return from;
        }
        let near = siblings > 0
            && self.within > 0
            && (self.within == ONE || draw.below(Question::Within, ONE) < self.within);
        let begin = if near {
            self.sums[row][self.spans[value].0 as usize]
        } else {
            0
        };
        let units = if near { siblings } else { all };
        self.skipping(row, value, begin + draw.below(Question::Target, units))
    }

    /// The member at a point of the sums from which the value's own stretch is cut out.
    fn skipping(&self, row: usize, value: usize, point: u64) -> u16 {
        let (before, after) = self.own(row, value);
        let point = if point < before {
            point
        } else {
            point + after - before
        };
        let ends = &self.sums[row][1..];
        self.members[ends.partition_point(|&end| end <= point)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::prf::Prf;
    use super::*;

    fn targets(shares: &Shares, kind: Kind, from: u16) -> Vec<u16> {
        let prf = Prf::new([1; 32]);
        let next = |person: u64| {
            let draw = Draw {
                steps: &prf.steps(person),
                event: 1,
                slot: 0,
            };
            shares.next(kind, 0, from, &draw)
        };
        let mut targets: Vec<u16> = (0..2000).map(next).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    fn kernel(stay: u64, within: u64, units: [u64; 5]) -> Shares {
        Shares::new(
            vec![stay; 5],
            within,
            vec![0, 1, 0, 1, 2],
            &[units.to_vec()],
        )
    }

    #[test]
    fn slots_go_exactly_where_a_person_can_go() {
        let units = [ONE / 2, ONE / 2, ONE / 2, 0, ONE / 2];
        for (stay, within) in [
            (0, 0),
            (ONE / 2, ONE / 2),
            (ONE / 2, ONE),
            (0, ONE),
            (ONE, 0),
        ] {
            let shares = kernel(stay, within, units);
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
    fn the_only_seen_value_stays() {
        let shares = kernel(0, ONE / 2, [0, 2 * ONE, 0, 0, 0]);
        assert_eq!(targets(&shares, Kind::Visit, 1), [1]);
        assert_eq!(targets(&shares, Kind::Correction, 1), [1]);
    }

    #[test]
    fn shares_are_kept() {
        let prf = Prf::new([2; 32]);
        let shares = kernel(
            ONE / 2,
            ONE / 2,
            [ONE / 2, ONE / 4, ONE / 2, ONE / 4, ONE / 2],
        );
        let mut tally = [0.0_f64; 5];
        for person in 0..40_000 {
            let draw = Draw {
                steps: &prf.steps(person),
                event: 1,
                slot: 0,
            };
            tally[usize::from(shares.next(Kind::Visit, 0, 0, &draw))] += 1.0 / 40_000.0;
        }
        // Others weigh 1, 2, 1, 2 of 6; the sibling (2) has a quarter to itself.
        let law = [0.5, 1.0 / 24.0, 0.25 + 1.0 / 12.0, 1.0 / 24.0, 1.0 / 12.0];
        assert!(tally.iter().zip(law).all(|(a, b)| (a - b).abs() < 0.01));
    }
}
