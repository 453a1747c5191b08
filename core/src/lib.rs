//! The hot loops of Reticent: integer codes in, integer codes out.
//!
//! Nothing here knows a string, a policy or a file. Each kernel has a module with its tests, and must equal a simple
//! Python reference implementation in `tests/`. Every folder has a `py` module, a submodule of `reticent._core`, as its
//! Python interface. Without the feature `python` the algorithms build alone.

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
