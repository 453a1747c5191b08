//! Kernels for streams: every tuple is placed the moment it arrives.

use pyo3::prelude::*;

mod bytes;
mod delay_free;
mod draw;
mod epoch;
mod placed;
mod pools;
mod sealed;
mod sip;
mod slots;

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "stream")?;
    m.add_class::<delay_free::DelayFree>()?;
    m.add_class::<sealed::Sealed>()?;
    parent.add_submodule(&m)
}
