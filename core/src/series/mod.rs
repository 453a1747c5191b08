//! Kernels for a series: the same persons are published again after their records changed.

pub mod assign;
pub mod bucket;
pub mod buckets;
pub mod color;
pub mod flow;
pub mod fresh;
pub mod knowledge;
pub mod l_diverse;
pub mod matching;
pub mod publish;
pub mod query;
pub mod space;
pub mod split;
pub mod sug;

#[cfg(feature = "python")]
pub mod py;
