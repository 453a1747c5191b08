//! The hot loops of Reticent: integer codes in, integer codes out.
//!
//! Nothing here knows a string, a policy or a file. Each kernel lives in its own module with its tests beside it, and has an
//! obvious Python twin in `tests/` that it must equal. Every folder's face towards Python is its `py` module, a submodule of
//! `reticent._core`; without the feature `python` the algorithms stand alone.

pub mod evolving;
pub mod random;
pub mod series;
pub mod stream;
pub mod table;
pub mod veil;
pub mod verify;
pub mod wire;

#[cfg(feature = "python")]
mod py;
