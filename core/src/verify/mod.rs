//! The judge of running streams: what is about to be delivered, beside all that was delivered before.
//!
//! Code of its own: nothing here uses a line of the engines that it judges (`tests/unit/audit/test_judge_stands_alone.py`).

pub mod hasher;
#[cfg(feature = "python")]
pub mod py;
pub mod support;
pub mod trajectories;
