//! Kernels for tables that change: equivalence classes kept l-diverse under insertion and deletion.

use pyo3::prelude::*;

mod classes;
mod cuckoo;
mod eac;
mod enc;
mod locate;
mod red;
mod seats;
mod table;

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "evolving")?;
    m.add_class::<cuckoo::CuckooFilter>()?;
    m.add_class::<table::Classes>()?;
    m.add_function(wrap_pyfunction!(seats::seat, &m)?)?;
    parent.add_submodule(&m)
}
