//! The first sight of a person: a keyed point in the true value's stretch, and the values that stand where it stands.

use std::sync::OnceLock;

use super::ONE;
use super::canonical;
use super::kernel::Kernel;
use super::line::Line;
use super::prf::Prf;

/// Bytes of lines that are as near in any turn.
const CACHE: usize = 1 << 20;

/// What a house has pinned: key, l, stretches of every row, orders, kernel.
pub struct Veil {
    pub prf: Prf,
    pub l: usize,
    /// Number of values of the domain.
    pub values: usize,
    pub rows: Vec<Vec<u64>>,
    pub kernel: Kernel,
    orders: Vec<Vec<u16>>,
    /// Position of every value in every order.
    positions: Vec<Vec<u16>>,
    /// One line per row and order, built when it is first needed.
    lines: Vec<OnceLock<Line>>,
}

/// A record of a batch, and the order of its person.
#[derive(Clone, Copy, Default)]
pub struct Turn {
    pub record: u32,
    pub order: u32,
}

fn inverse(order: &[u16]) -> Vec<u16> {
    let mut positions = vec![0; order.len()];
    for (position, &value) in order.iter().enumerate() {
        positions[usize::from(value)] = position as u16;
    }
    positions
}

impl Veil {
    /// Every row sums to l * ONE; every order is a permutation of the domain.
    pub fn new(
        key: [u8; 32],
        l: usize,
        rows: Vec<Vec<u64>>,
        orders: Vec<Vec<u16>>,
        kernel: Kernel,
    ) -> Self {
        let cells = rows.len() * orders.len();
        Veil {
            prf: Prf::new(key),
            l,
            values: orders[0].len(),
            positions: orders.iter().map(|order| inverse(order)).collect(),
            lines: (0..cells).map(|_| OnceLock::new()).collect(),
            rows,
            orders,
            kernel,
        }
    }

    fn line(&self, row: usize, order: usize) -> &Line {
        self.lines[row * self.orders.len() + order]
            .get_or_init(|| Line::new(&self.rows[row], &self.orders[order], self.l))
    }

    /// The value's stretch in a row, as far as it is seen there; -1 is a value outside the domain.
    fn stretch(&self, row: usize, value: i32) -> Option<u64> {
        let units = self.rows[row][usize::try_from(value).ok()?];
        (units > 0).then_some(units)
    }

    pub fn offers(&self, row: usize, value: i32) -> bool {
        self.stretch(row, value).is_some()
    }

    /// The records of a batch with the order of each person: those of one line together, so that a line is fetched from
    /// memory once; as they stand where all lines lie in the cache, or there are few records.
    pub fn by_line(&self, persons: &[u64], rows: &[u32]) -> Vec<Turn> {
        let order = |&person: &u64| self.prf.order(person, self.orders.len()) as u32;
        let turns = persons.iter().map(order).zip(0..);
        let turns = turns.map(|(order, record)| Turn { record, order });
        let near = self.lines.len() * self.values * size_of::<u64>() <= CACHE;
        if near || persons.len() < self.lines.len() / 4 {
            return turns.collect();
        }
        let turns: Vec<Turn> = turns.collect();
        let cell = |turn: &Turn| {
            rows[turn.record as usize] as usize * self.orders.len() + turn.order as usize
        };
        let mut places = vec![0; self.lines.len() + 1];
        turns.iter().for_each(|turn| places[cell(turn) + 1] += 1);
        (1..places.len()).for_each(|at| places[at] += places[at - 1]);
        let mut sorted = vec![Turn::default(); turns.len()];
        for turn in turns {
            let place: &mut usize = &mut places[cell(&turn)];
            sorted[*place] = turn;
            *place += 1;
        }
        sorted
    }

    /// As `slots_in`, in the person's own order.
    pub fn slots(
        &self,
        person: u64,
        row: usize,
        value: i32,
        event: u32,
        slots: &mut [u16],
    ) -> Option<u8> {
        let order = self.prf.order(person, self.orders.len());
        self.slots_in(order, person, (row, value), event, slots)
    }

    /// Writes the l slots in the order of the line; returns the true one if the value is offered.
    pub fn slots_in(
        &self,
        order: usize,
        person: u64,
        (row, value): (usize, i32),
        event: u32,
        slots: &mut [u16],
    ) -> Option<u8> {
        let line = self.line(row, order);
        let point = self.stretch(row, value).map(|units| {
            let position = self.positions[order][value as usize];
            line.start(usize::from(position)) + self.prf.point(person, value as u16, units)
        });
        let place = point.map_or_else(|| self.prf.unseen(person, event), |x| x % ONE);
        for (j, slot) in slots.iter_mut().enumerate() {
            *slot = line.value(j, place);
        }
        point.map(|x| (x / ONE) as u8)
    }

    /// Writes the candidates of one record in canonical order.
    pub fn candidates(
        &self,
        order: usize,
        person: u64,
        of: (usize, i32),
        event: u32,
        out: &mut [u16],
    ) {
        self.slots_in(order, person, of, event, out);
        canonical::sort(out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{line::stretches, orders::random};
    use super::*;

    fn veil(counts: &[u64], l: usize) -> Veil {
        let rows = vec![stretches(counts, l).unwrap()];
        Veil::new(
            [3; 32],
            l,
            rows,
            random(counts.len(), 8, [4; 32]),
            Kernel::Still,
        )
    }

    #[test]
    fn the_truth_stands_in_its_slot() {
        let veil = veil(&[9, 1, 1, 4, 2, 3], 3);
        let mut slots = [0; 3];
        for person in 0..2000 {
            let value = (person % 6) as i32;
            let truth = veil.slots(person, 0, value, 0, &mut slots).unwrap();
            assert_eq!(i32::from(slots[usize::from(truth)]), value);
        }
    }

    #[test]
    fn frequent_values_have_their_copies_and_unseen_ones_none() {
        let veil = veil(&[5, 2, 0, 3], 4);
        let mut slots = [0; 4];
        for person in 0..2000 {
            let value = [0, 1, 2, 3, -1][person as usize % 5];
            let truth = veil.slots(person, 0, value, 0, &mut slots);
            assert_eq!(truth.is_some(), value != 2 && value != -1);
            assert_eq!(slots.iter().filter(|&&slot| slot == 0).count(), 2);
            assert!(!slots.contains(&2));
        }
    }

    #[test]
    fn what_is_not_offered_does_not_depend_on_the_value() {
        let veil = veil(&[5, 2, 0, 3, 0], 3);
        let (mut a, mut b) = ([0; 3], [0; 3]);
        for person in 0..200 {
            veil.slots(person, 0, 2, 7, &mut a);
            veil.slots(person, 0, -1, 7, &mut b);
            assert_eq!(a, b);
        }
    }
}
