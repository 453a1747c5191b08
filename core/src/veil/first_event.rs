//! The first event of a person: a keyed point in the segment of the true value, and the values at that place of every
//! slot.

use std::sync::OnceLock;

use super::SLOT_LENGTH;
use super::cumulative_line::CumulativeLine;
use super::kernel::Kernel;
use super::prf::Prf;
use super::schedule::FirstEvent;

/// The parameters of a veil: key, l, the segments of every stratum, permutations and kernel.
pub struct Veil {
    pub prf: Prf,
    pub l: usize,
    /// Number of values of the domain.
    pub values: usize,
    pub strata: Vec<Vec<u64>>,
    pub kernel: Kernel,
    pub permutations: Vec<Vec<u16>>,
    /// Position of every value in every permutation.
    positions: Vec<Vec<u16>>,
    /// One cumulative line per stratum and permutation, built on first use.
    lines: Vec<OnceLock<CumulativeLine>>,
}

fn inverse(permutation: &[u16]) -> Vec<u16> {
    let mut positions = vec![0; permutation.len()];
    for (position, &value) in permutation.iter().enumerate() {
        positions[usize::from(value)] = position as u16;
    }
    positions
}

impl Veil {
    /// Every stratum sums to l * SLOT_LENGTH. Every permutation covers the domain.
    pub fn new(
        key: [u8; 32],
        l: usize,
        strata: Vec<Vec<u64>>,
        permutations: Vec<Vec<u16>>,
        kernel: Kernel,
    ) -> Self {
        let cells = strata.len() * permutations.len();
        Veil {
            prf: Prf::new(key),
            l,
            values: permutations[0].len(),
            positions: permutations
                .iter()
                .map(|permutation| inverse(permutation))
                .collect(),
            lines: (0..cells).map(|_| OnceLock::new()).collect(),
            strata,
            permutations,
            kernel,
        }
    }

    fn line(&self, stratum: usize, permutation: usize) -> &CumulativeLine {
        self.lines[stratum * self.permutations.len() + permutation].get_or_init(|| {
            CumulativeLine::new(
                &self.strata[stratum],
                &self.permutations[permutation],
                self.l,
            )
        })
    }

    /// Length of the value's segment in a stratum; none if the value is omitted. -1 is a value outside the domain.
    fn segment(&self, stratum: usize, value: i32) -> Option<u64> {
        let length = self.strata[stratum][usize::try_from(value).ok()?];
        (length > 0).then_some(length)
    }

    pub fn is_offered(&self, stratum: usize, value: i32) -> bool {
        self.segment(stratum, value).is_some()
    }

    /// Writes the l slots of a first event in the order of the line. Returns the true slot if the value is a candidate.
    pub fn slots(&self, first: &FirstEvent, event: u32, slots: &mut [u16]) -> Option<u8> {
        let &FirstEvent {
            household,
            stratum,
            value,
            ..
        } = first;
        let (stratum, permutation) = (stratum as usize, first.permutation as usize);
        let line = self.line(stratum, permutation);
        let point = self.segment(stratum, value).map(|length| {
            let position = self.positions[permutation][value as usize];
            line.start(usize::from(position)) + self.prf.point(household, value as u16, length)
        });
        let place = point.map_or_else(
            || self.prf.omitted_place(household, event),
            |x| x % SLOT_LENGTH,
        );
        line.values(place, slots);
        point.map(|x| (x / SLOT_LENGTH) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cumulative_line::segments, permutations::random};
    use super::*;

    fn veil(counts: &[u64], l: usize) -> Veil {
        let strata = vec![segments(counts, l).unwrap()];
        Veil::new(
            [3; 32],
            l,
            strata,
            random(counts.len(), 8, [4; 32]),
            Kernel::Identity,
        )
    }

    fn slots(veil: &Veil, person: u64, value: i32, event: u32, slots: &mut [u16]) -> Option<u8> {
        veil.slots(&veil.first_event(0, person, 0, value), event, slots)
    }

    #[test]
    fn the_true_slot_holds_the_true_value() {
        let veil = veil(&[9, 1, 1, 4, 2, 3], 3);
        let mut candidates = [0; 3];
        for person in 0..2000 {
            let value = (person % 6) as i32;
            let true_slot = slots(&veil, person, value, 0, &mut candidates).unwrap();
            assert_eq!(i32::from(candidates[usize::from(true_slot)]), value);
        }
    }

    #[test]
    fn frequent_values_are_repeated_and_omitted_values_never_appear() {
        let veil = veil(&[5, 2, 0, 3], 4);
        let mut candidates = [0; 4];
        for person in 0..2000 {
            let value = [0, 1, 2, 3, -1][person as usize % 5];
            let true_slot = slots(&veil, person, value, 0, &mut candidates);
            assert_eq!(true_slot.is_some(), value != 2 && value != -1);
            assert_eq!(candidates.iter().filter(|&&slot| slot == 0).count(), 2);
            assert!(!candidates.contains(&2));
        }
    }

    #[test]
    fn candidates_of_an_omitted_value_do_not_depend_on_it() {
        let veil = veil(&[5, 2, 0, 3, 0], 3);
        let (mut a, mut b) = ([0; 3], [0; 3]);
        for person in 0..200 {
            slots(&veil, person, 2, 7, &mut a);
            slots(&veil, person, -1, 7, &mut b);
            assert_eq!(a, b);
        }
    }
}
