//! The veil: a sensitive value stands among l candidates, each slot of which is the true one with probability 1/l.
//!
//! Values lie on a line of length l; value v takes a stretch of l p(v). A keyed point X in the stretch of the true value
//! gives U = X mod 1, and the values at U, U+1, ..., U+l-1 are published in canonical order. All arithmetic on the line is
//! in integers: a slot is `ONE` units long, so that no value is lost to rounding and the law can be checked exactly
//! (`docs/veil.md`; `tests/twins/veil_twin.py` is the twin that these files equal bit for bit).

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

/// Units of one slot.
pub const SLOT_LENGTH: u64 = 1 << 40;
