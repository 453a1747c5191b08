//! Kernels for one table, released once.

use pyo3::prelude::*;

pub(crate) mod anatomy;

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "table")?;
    m.add_function(wrap_pyfunction!(anatomy::anatomize, &m)?)?;
    parent.add_submodule(&m)
}
