//! Kernels for tables that change: equivalence classes that stay l-diverse under insertion and deletion.

pub mod classes;
pub mod cuckoo;
pub mod eac;
pub mod enc;
pub mod locate;
pub mod method;
pub mod red;

#[cfg(feature = "python")]
pub mod py;
