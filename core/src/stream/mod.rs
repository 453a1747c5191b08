//! Kernels for streams: every tuple is placed when it arrives.

pub mod bytes;
pub mod castle;
mod castle_release;
pub mod castle_snapshot;
mod castle_split;
mod class_counts;
pub mod cluster;
pub mod coder;
pub mod column;
pub mod delay_free;
pub mod draw;
mod fast_hash;
pub mod hash;
pub mod json_cell;
pub mod ndjson;
pub mod placement;
pub mod pools;
#[cfg(test)]
mod sample;
pub mod sip;
#[cfg(target_arch = "x86_64")]
mod sip_avx2;
pub mod slots;

#[cfg(feature = "python")]
pub mod py;
