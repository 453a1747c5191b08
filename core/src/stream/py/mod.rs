//! `reticent._core.stream`: batches in, groups and lines out.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use self::capsules::Capsules;
use super::{ndjson, placement};
use crate::py::array;

pub mod capsules;
mod castle;
pub mod coder;
mod delay_free;
mod hasher;
mod lines;

/// The groups of a batch: the group of each tuple, and the opened groups, each announced before row `at`.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
pub struct PlacedRecords {
    groups: Py<PyArray1<u64>>,
    opened: Py<PyArray1<u64>>,
    at: Py<PyArray1<i64>>,
    offsets: Py<PyArray1<i64>>,
    codes: Py<PyArray1<i32>>,
    counts: Py<PyArray1<i32>>,
}

impl PlacedRecords {
    pub fn new(py: Python<'_>, placed: placement::Placement) -> Self {
        PlacedRecords {
            groups: array(py, placed.groups),
            opened: array(py, placed.opened),
            at: array(py, placed.at),
            offsets: array(py, placed.offsets),
            codes: array(py, placed.codes),
            counts: array(py, placed.counts),
        }
    }
}

/// The published names of groups, 17 characters each.
#[pyfunction]
fn group_names<'py>(
    py: Python<'py>,
    ids: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let ids = ids.as_slice()?;
    let names = py.detach(|| ndjson::group_names(ids));
    Ok(PyBytes::new(py, &names))
}

/// Whether no text of a column has a space, a period or a non-ASCII character; it may wrongly say no.
#[pyfunction]
fn is_plain(column: Capsules<'_>) -> PyResult<bool> {
    Ok(capsules::column(&column)?.is_plain())
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "stream")?;
    m.add_class::<PlacedRecords>()?;
    m.add_class::<castle::Castle>()?;
    m.add_class::<castle::CastleLosses>()?;
    m.add_class::<castle::CastleTotals>()?;
    m.add_class::<castle::ReleasedRecords>()?;
    m.add_class::<coder::CodedBatch>()?;
    m.add_class::<coder::Coder>()?;
    m.add_class::<delay_free::DelayFree>()?;
    m.add_class::<delay_free::Totals>()?;
    m.add_class::<hasher::Hasher>()?;
    m.add_class::<hasher::Hashes>()?;
    m.add_class::<lines::LineWriter>()?;
    m.add_function(wrap_pyfunction!(group_names, &m)?)?;
    m.add_function(wrap_pyfunction!(is_plain, &m)?)?;
    parent.add_submodule(&m)
}
