//! How slots move from event to event: the public transition kernel T, and the two kinds of event that use it.

use super::matrix::Matrix;
use super::prf::Steps;
use super::shares::Shares;

/// A visit may keep the value. A correction changes it by definition, so it moves by T / (1 - T_vv).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Visit,
    Correction,
}

pub enum Kernel {
    /// Without a kernel no slot moves. A later, different value is omitted.
    Identity,
    Shares(Shares),
    Matrix(Matrix),
}

impl Kernel {
    /// Whether T(from, to) is positive for this kind of event.
    pub fn possible(&self, kind: Kind, stratum: usize, from: u16, to: u16) -> bool {
        match self {
            Kernel::Identity => from == to,
            Kernel::Shares(shares) => shares.possible(kind, stratum, from, to),
            Kernel::Matrix(matrix) => matrix.possible(kind, from, to),
        }
    }

    /// Moves all slots but the true one to an event.
    pub fn walk(
        &self,
        kind: Kind,
        stratum: usize,
        (steps, event): (&Steps, u32),
        true_slot: Option<usize>,
        slots: &mut [u16],
    ) {
        match self {
            Kernel::Identity => (),
            Kernel::Shares(shares) => shares.walk(kind, stratum, (steps, event), true_slot, slots),
            Kernel::Matrix(matrix) => matrix.walk(kind, (steps, event), true_slot, slots),
        }
    }

    /// Whether `steps` visits can lead from one value to another, in a domain of `size` values.
    pub fn reaches(&self, size: usize, stratum: usize, from: u16, to: u16, steps: u32) -> bool {
        let possible = |a: u16, b: u16| self.possible(Kind::Visit, stratum, a, b);
        // If the value can stay, the last step alone decides. Nearly all absences end here.
        if steps == 1 || possible(from, from) && possible(from, to) {
            return possible(from, to);
        }
        let mut front = vec![from];
        for _ in 0..steps {
            let reached = |&b: &u16| front.iter().any(|&a| possible(a, b));
            front = (0..size).map(|b| b as u16).filter(reached).collect();
        }
        front.contains(&to)
    }
}
