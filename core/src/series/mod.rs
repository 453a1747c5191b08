//! Kernels for a series: the same persons published again after their records changed.

use pyo3::prelude::*;

mod assign;
mod bucket;
mod colour;
mod flow;
mod fresh;
mod knowledge;
mod l_diverse;
mod matching;
mod publish;
mod query;
mod space;
mod split;
mod sug;

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "series")?;
    m.add_function(wrap_pyfunction!(publish::publish_py, &m)?)?;
    m.add_function(wrap_pyfunction!(sug::risks, &m)?)?;
    m.add_function(wrap_pyfunction!(query::estimate, &m)?)?;
    m.add_function(wrap_pyfunction!(query::count, &m)?)?;
    m.add_function(wrap_pyfunction!(l_diverse::l_diverse, &m)?)?;
    parent.add_submodule(&m)
}
