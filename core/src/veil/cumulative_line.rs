//! The cumulative line of one stratum in one permutation: where each segment ends, and which value is at a point.

use super::SLOT_LENGTH;

/// Shares of `counts` on a line of length l, by largest remainder. They sum exactly to l * SLOT_LENGTH.
///
/// Ties go to the lower code. A value without a count has no segment and is omitted. `None` if no value has a count.
pub fn segments(counts: &[u64], l: usize) -> Option<Vec<u64>> {
    let length = l as u128 * u128::from(SLOT_LENGTH);
    let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    if total == 0 {
        return None;
    }
    let parts = |count: u64| {
        let wide = u128::from(count) * length;
        ((wide / total) as u64, wide % total)
    };
    let mut lengths: Vec<u64> = counts.iter().map(|&count| parts(count).0).collect();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|&v| std::cmp::Reverse(parts(counts[v]).1));
    let left = length - lengths.iter().map(|&u| u128::from(u)).sum::<u128>();
    for &value in by_remainder.iter().take(left as usize) {
        lengths[value] += 1;
    }
    Some(lengths)
}

/// A line is at most 254 * 2^40 long: an end takes 48 bits and leaves 16 bits for the code of its value.
const CODE: u32 = 16;

pub struct CumulativeLine {
    /// End of the segment at each position of the permutation, and the value: one cache line answers both.
    ends: Box<[u64]>,
    /// First position of each part of a slot. The same part of all slots is contiguous, because one place asks for all
    /// slots.
    first: Box<[u16]>,
    l: usize,
    /// Bits of a place below those that name its part.
    fine: u32,
}

impl CumulativeLine {
    pub fn new(segments: &[u64], permutation: &[u16], l: usize) -> Self {
        let mut end = 0;
        let ends: Box<[u64]> = permutation
            .iter()
            .map(|&value| {
                end += segments[usize::from(value)];
                end << CODE | u64::from(value)
            })
            .collect();
        // About as many parts as half a slot has values: few steps from the start of a part, and little memory.
        let parts = (permutation.len() / l).next_power_of_two();
        let fine = SLOT_LENGTH.ilog2() - parts.ilog2();
        let mut first = vec![0; parts * l].into_boxed_slice();
        let mut position = 0;
        for (j, part) in (0..l).flat_map(|j| (0..parts).map(move |part| (j, part))) {
            let point = j as u64 * SLOT_LENGTH + ((part as u64) << fine);
            while ends[position] >> CODE <= point {
                position += 1;
            }
            first[part * l + j] = position as u16;
        }
        CumulativeLine {
            ends,
            first,
            l,
            fine,
        }
    }

    /// Where the segment at a position starts.
    pub fn start(&self, position: usize) -> u64 {
        let before = position.checked_sub(1);
        before.map_or(0, |before| self.ends[before] >> CODE)
    }

    /// Writes the values at `place` (0 .. SLOT_LENGTH) of every slot.
    #[inline]
    pub fn values(&self, place: u64, slots: &mut [u16]) {
        let part = (place >> self.fine) as usize;
        let first = &self.first[part * self.l..(part + 1) * self.l];
        let mut point = place;
        for (slot, &from) in slots.iter_mut().zip(first) {
            *slot = self.value(usize::from(from), point);
            point += SLOT_LENGTH;
        }
    }

    /// The value at a point that lies at a position or after it.
    #[inline]
    fn value(&self, mut position: usize, point: u64) -> u16 {
        // Two steps without a branch, rarely more: mispredicting the number of steps costs more than taking them.
        for _ in 0..2 {
            position += usize::from(self.ends[position] >> CODE <= point);
        }
        while self.ends[position] >> CODE <= point {
            position += 1;
        }
        self.ends[position] as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_sum_to_the_line_by_largest_remainder() {
        let lengths = segments(&[1, 1, 1, 0], 2).unwrap();
        assert_eq!(lengths.iter().sum::<u64>(), 2 * SLOT_LENGTH);
        assert_eq!(
            lengths,
            [
                2 * SLOT_LENGTH / 3 + 1,
                2 * SLOT_LENGTH / 3 + 1,
                2 * SLOT_LENGTH / 3,
                0
            ]
        );
        assert_eq!(segments(&[0, 0], 2), None);
        let huge = segments(&[u64::MAX, u64::MAX, 1], 200).unwrap();
        assert_eq!(huge.iter().sum::<u64>(), 200 * SLOT_LENGTH);
    }

    #[test]
    fn every_point_lies_in_the_segment_found_for_it() {
        let lengths = segments(&[5, 0, 1, 9, 1, 0], 3).unwrap();
        let permutation = [1, 4, 3, 0, 2, 5];
        let line = CumulativeLine::new(&lengths, &permutation, 3);
        for place in (0..SLOT_LENGTH)
            .step_by(SLOT_LENGTH as usize / 997)
            .chain([SLOT_LENGTH - 1])
        {
            let mut slots = [0; 3];
            line.values(place, &mut slots);
            for (j, value) in slots.into_iter().enumerate() {
                let position = permutation
                    .iter()
                    .position(|&other| other == value)
                    .unwrap();
                let offset = j as u64 * SLOT_LENGTH + place - line.start(position);
                assert!(offset < lengths[usize::from(value)]);
            }
        }
    }

    #[test]
    fn the_longest_line_fits() {
        let lengths = segments(&[1; 300], 254).unwrap();
        let permutation: Vec<u16> = (0..300).rev().collect();
        let line = CumulativeLine::new(&lengths, &permutation, 254);
        let mut slots = [0; 254];
        line.values(0, &mut slots);
        assert_eq!(slots[0], 299);
        line.values(SLOT_LENGTH - 1, &mut slots);
        assert_eq!(slots[253], 0);
    }
}
