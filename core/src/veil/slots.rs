//! One person under one veil: the slots of the first event move along the kernel from event to event.
//!
//! The true slot follows the person; every other slot takes a keyed step of the kernel, whether or not the true value
//! moved. Given the true slot, all l trajectories are independent chains of the same kernel, each from its own first
//! value. The law is the same for every true slot, so each slot remains the true one with probability 1/l.

use super::first_event::Veil;
use super::kernel::Kind;
use super::memory::Memory;

impl Veil {
    /// Moves the slots to `event`, and simulates the events in between that the person missed.
    ///
    /// A value that the kernel cannot reach is omitted for good: the true slot then takes the keyed steps of a false
    /// candidate.
    pub fn step(&self, person: u64, value: i32, kind: Kind, event: u32, memory: &mut Memory) {
        memory.true_slot = memory
            .true_slot
            .filter(|&slot| self.follows(memory, slot, value, kind, event));
        let true_slot = memory.true_slot.map(usize::from);
        let steps = &self.prf.steps(person);
        for event in memory.event + 1..=event {
            let stratum = memory.stratum.into();
            self.kernel
                .walk(kind, stratum, (steps, event), true_slot, &mut memory.slots);
        }
        if let Some(slot) = true_slot {
            memory.slots[slot] = value as u16;
        }
        memory.event = event;
    }

    fn follows(&self, memory: &Memory, slot: u8, value: i32, kind: Kind, event: u32) -> bool {
        let (stratum, from) = (usize::from(memory.stratum), memory.slots[usize::from(slot)]);
        match (u16::try_from(value), kind) {
            (Err(_), _) => false,
            (Ok(to), Kind::Correction) => self.kernel.possible(kind, stratum, from, to),
            (Ok(to), Kind::Visit) => {
                let steps = event - memory.event;
                self.kernel.reaches(self.values, stratum, from, to, steps)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SLOT_LENGTH;
    use super::super::cumulative_line::segments;
    use super::super::kernel::Kernel;
    use super::super::matrix::Matrix;
    use super::super::permutations::random;
    use super::super::shares::Shares;
    use super::*;

    fn begin(veil: &Veil, person: u64, value: i32) -> Memory {
        let (first, mut slots) = (veil.first_event(0, person, 0, value), vec![0; 3]);
        let true_slot = veil.slots(&first, 0, &mut slots);
        Memory {
            true_slot,
            slots,
            ..Memory::default()
        }
    }

    const COUNTS: [u64; 6] = [9, 1, 0, 4, 2, 3];

    fn veil(kernel: impl Fn(&[Vec<u64>]) -> Kernel) -> Veil {
        let strata = vec![segments(&COUNTS, 3).unwrap()];
        let kernel = kernel(&strata);
        Veil::new([3; 32], 3, strata, random(6, 8, [4; 32]), kernel)
    }

    fn shares(strata: &[Vec<u64>]) -> Kernel {
        let stay = vec![
            SLOT_LENGTH / 2,
            0,
            SLOT_LENGTH / 2,
            SLOT_LENGTH / 4,
            SLOT_LENGTH,
            SLOT_LENGTH / 2,
        ];
        Kernel::Shares(Shares::new(
            stay,
            SLOT_LENGTH / 2,
            vec![0, 0, 0, 1, 1, 1],
            strata,
        ))
    }

    #[test]
    fn false_candidates_do_not_depend_on_the_true_value() {
        let veil = veil(shares);
        for person in 0..500 {
            let (mut a, mut b) = (begin(&veil, person, 0), begin(&veil, person, 0));
            veil.step(person, 0, Kind::Visit, 1, &mut a);
            veil.step(person, 3, Kind::Visit, 1, &mut b);
            let true_slot = usize::from(a.true_slot.unwrap());
            assert_eq!((a.slots[true_slot], b.slots[true_slot]), (0, 3));
            assert!((0..3).all(|slot| slot == true_slot || a.slots[slot] == b.slots[slot]));
        }
    }

    #[test]
    fn an_impossible_step_omits_the_true_value_for_good() {
        let veil = veil(shares);
        for (first, then) in [(0, 2), (0, -1), (1, 1), (4, 0)] {
            let mut memory = begin(&veil, 8, first);
            assert!(memory.true_slot.is_some());
            veil.step(8, then, Kind::Visit, 1, &mut memory);
            assert_eq!(memory.true_slot, None);
            veil.step(8, first, Kind::Visit, 2, &mut memory);
            assert_eq!(memory.true_slot, None);
        }
    }

    #[test]
    fn a_correction_moves_every_slot_that_can_move() {
        let veil = veil(shares);
        for person in 0..500 {
            let mut memory = begin(&veil, person, 0);
            let before = memory.slots.clone();
            veil.step(person, 3, Kind::Correction, 1, &mut memory);
            let moved = |slot: usize| before[slot] != memory.slots[slot];
            assert!((0..3).all(|slot| moved(slot) == (before[slot] != 4)));
        }
    }

    #[test]
    fn an_absence_takes_one_step_per_missed_event() {
        let targets = vec![1, 2, 3, 4, 5, 0];
        let ring = |_: &[Vec<u64>]| {
            Kernel::Matrix(Matrix::new((0..=6).collect(), targets.clone(), &[1; 6]))
        };
        let veil = veil(ring);
        let mut memory = begin(&veil, 5, 0);
        let before = memory.slots.clone();
        veil.step(5, 3, Kind::Visit, 3, &mut memory);
        assert!(memory.true_slot.is_some());
        assert!((0..3).all(|slot| memory.slots[slot] == (before[slot] + 3) % 6));
        veil.step(5, 4, Kind::Visit, 5, &mut memory);
        assert_eq!(memory.true_slot, None);
    }

    #[test]
    fn without_a_kernel_the_first_set_stays() {
        let veil = veil(|_| Kernel::Identity);
        let mut memory = begin(&veil, 5, 0);
        let before = memory.slots.clone();
        veil.step(5, 0, Kind::Visit, 1, &mut memory);
        assert!(memory.true_slot.is_some());
        veil.step(5, 1, Kind::Visit, 2, &mut memory);
        assert!(memory.true_slot.is_none() && memory.slots == before);
    }
}
