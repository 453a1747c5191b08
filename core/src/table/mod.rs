//! Kernels for one table, released once.

use pyo3::prelude::*;

pub(crate) mod anatomy;
mod binding;
mod check;
mod collapse;
mod entropy;
mod frontier;
mod grouping;
mod local;
mod loss;
mod model;
mod mondrian;
mod optimal;
mod space;
mod witness;

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "table")?;
    m.add_function(wrap_pyfunction!(anatomy::anatomize, &m)?)?;
    m.add_class::<binding::Collapsed>()?;
    m.add_class::<binding::PyModel>()?;
    m.add_function(wrap_pyfunction!(mondrian::mondrian, &m)?)?;
    parent.add_submodule(&m)
}
