//! The veil: the true value is one of l candidates, and each slot is the true one with probability 1/l.
//!
//! Values lie on a cumulative line of length l; value v has a segment of l p(v). A keyed point X in the segment of the
//! true value gives U = X mod 1. The values at U, U+1, ..., U+l-1 are published in canonical order. All arithmetic on
//! the line uses integers: a slot is `SLOT_LENGTH` long, so no value is lost to rounding and the law can be checked
//! exactly (`docs/veil.md`). A reference implementation in `tests/` gives the same bits.

pub mod canonical;
pub mod cumulative_line;
pub mod first_event;
pub mod kernel;
pub mod matrix;
pub mod memory;
pub mod people;
pub mod permutations;
pub mod places;
pub mod prf;
#[cfg(feature = "python")]
pub mod py;
pub mod schedule;
pub mod shares;
pub mod slots;

/// Length of a slot, in integer units.
pub const SLOT_LENGTH: u64 = 1 << 40;
