//! Kernels for one table, released once.

pub mod anatomy;
pub mod arrange;
pub mod axis;
pub mod cancellation;
pub mod check;
pub mod collapse;
pub mod counterexample;
pub mod entropy;
pub mod frontier;
pub mod grouping;
pub mod linked;
pub mod local;
pub mod loss;
pub mod model;
pub mod mondrian;
pub mod optimal;
pub mod persons;
pub mod space;
pub mod texts;

#[cfg(feature = "python")]
pub mod py;
