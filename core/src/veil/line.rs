//! The line of one row of the prior in one order: where each value's stretch ends, and which value stands at a point.

use super::ONE;

/// Shares of `counts` on a line of length l, in units, by largest remainder: they sum exactly to l * ONE.
///
/// Ties go to the lower code. A value without count gets no stretch: it is unseen. `None` if all are without count.
pub fn stretches(counts: &[u64], l: usize) -> Option<Vec<u64>> {
    let length = l as u128 * u128::from(ONE);
    let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    if total == 0 {
        return None;
    }
    let parts = |count: u64| {
        let wide = u128::from(count) * length;
        ((wide / total) as u64, wide % total)
    };
    let mut units: Vec<u64> = counts.iter().map(|&count| parts(count).0).collect();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|&v| std::cmp::Reverse(parts(counts[v]).1));
    let left = length - units.iter().map(|&u| u128::from(u)).sum::<u128>();
    for &value in by_remainder.iter().take(left as usize) {
        units[value] += 1;
    }
    Some(units)
}

/// A line is at most 254 * 2^40 units long: an end takes 48 bits and leaves 16 for the value that ends there.
const CODE: u32 = 16;

pub struct Line {
    /// End of the stretch at each position of the order, and the value: one cache line answers both.
    ends: Box<[u64]>,
    /// Position at which each slot begins: a search in slot j looks from first[j] to first[j + 1].
    first: Box<[u32]>,
}

impl Line {
    pub fn new(stretches: &[u64], order: &[u16], l: usize) -> Self {
        let mut end = 0;
        let ends: Box<[u64]> = order
            .iter()
            .map(|&value| {
                end += stretches[usize::from(value)];
                end << CODE | u64::from(value)
            })
            .collect();
        let begin = |j: usize| ends.partition_point(|&end| end >> CODE <= j as u64 * ONE);
        let last = ends.len() - 1;
        let first = (0..=l).map(|j| begin(j).min(last) as u32).collect();
        Line { ends, first }
    }

    /// Where the stretch at a position begins.
    pub fn start(&self, position: usize) -> u64 {
        let before = position.checked_sub(1);
        before.map_or(0, |before| self.ends[before] >> CODE)
    }

    /// The value that stands at `place` (0 .. ONE) of slot j.
    #[inline]
    pub fn value(&self, j: usize, place: u64) -> u16 {
        let point = j as u64 * ONE + place;
        let (from, to) = (self.first[j] as usize, self.first[j + 1] as usize);
        let reach = &self.ends[from..=to];
        reach[reach.partition_point(|&end| end >> CODE <= point)] as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_sum_to_the_line_and_follow_the_largest_remainder() {
        let units = stretches(&[1, 1, 1, 0], 2).unwrap();
        assert_eq!(units.iter().sum::<u64>(), 2 * ONE);
        assert_eq!(units, [2 * ONE / 3 + 1, 2 * ONE / 3 + 1, 2 * ONE / 3, 0]);
        assert_eq!(stretches(&[0, 0], 2), None);
        let huge = stretches(&[u64::MAX, u64::MAX, 1], 200).unwrap();
        assert_eq!(huge.iter().sum::<u64>(), 200 * ONE);
    }

    #[test]
    fn every_point_lies_in_the_stretch_that_is_found() {
        let units = stretches(&[5, 0, 1, 9, 1, 0], 3).unwrap();
        let order = [1, 4, 3, 0, 2, 5];
        let line = Line::new(&units, &order, 3);
        for j in 0..3 {
            for place in (0..ONE).step_by(ONE as usize / 997).chain([ONE - 1]) {
                let value = line.value(j, place);
                let position = order.iter().position(|&other| other == value).unwrap();
                let offset = j as u64 * ONE + place - line.start(position);
                assert!(offset < units[usize::from(value)]);
            }
        }
    }

    #[test]
    fn the_longest_line_fits() {
        let units = stretches(&[1; 300], 254).unwrap();
        let order: Vec<u16> = (0..300).rev().collect();
        let line = Line::new(&units, &order, 254);
        assert_eq!(line.value(0, 0), 299);
        assert_eq!(line.value(253, ONE - 1), 0);
    }
}
