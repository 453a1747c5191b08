//! The verifier of running streams: checks what is about to be delivered against all that was delivered before.
//!
//! It shares no code with the engines that it verifies; a test in `tests/` checks this.

pub mod hasher;
#[cfg(feature = "python")]
pub mod py;
pub mod support;
pub mod trajectories;
