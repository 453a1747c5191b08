//! Kernels for streams: every tuple is placed the moment it arrives.

use pyo3::prelude::*;

mod bytes;
mod castle;
mod castle_api;
mod cluster;
mod column;
mod delay_free;
pub(crate) mod draw;
mod epoch;
mod hash;
mod ndjson;
mod placed;
mod pools;
mod sealed;
pub(crate) mod sip;
mod slots;

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "stream")?;
    m.add_class::<castle_api::Castle>()?;
    m.add_class::<delay_free::DelayFree>()?;
    m.add_class::<hash::Hasher>()?;
    m.add_class::<ndjson::Lines>()?;
    m.add_class::<sealed::Sealed>()?;
    m.add_function(wrap_pyfunction!(ndjson::csv_end, &m)?)?;
    m.add_function(wrap_pyfunction!(ndjson::group_names, &m)?)?;
    parent.add_submodule(&m)
}
