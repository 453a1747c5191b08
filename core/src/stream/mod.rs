//! Kernels for streams: every tuple is placed the moment it arrives.

pub mod bytes;
pub mod castle;
mod castle_leave;
pub mod castle_snapshot;
mod castle_split;
pub mod cluster;
pub mod coder;
pub mod column;
mod crowd;
pub mod delay_free;
pub mod draw;
pub mod hash;
pub mod json_cell;
pub mod ndjson;
pub mod placed;
pub mod pools;
mod quick;
#[cfg(test)]
mod sample;
pub mod sip;
#[cfg(target_arch = "x86_64")]
mod sip_avx2;
pub mod slots;

#[cfg(feature = "python")]
pub mod py;
