//! The Python interface of the hasher.

use numpy::PyArray1;
use pyo3::prelude::*;

use super::capsules::{Capsules, batch, to_py_error};
use crate::py::array;
use crate::stream::hash;

/// Hashes of quasi-identifiers and persons, the number of records without a person, and codes unless a value is
/// unknown.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
pub struct Hashes {
    quasi: Py<PyArray1<u64>>,
    persons: Option<Py<PyArray1<u64>>>,
    missing: usize,
    codes: Option<Py<PyArray1<i32>>>,
}

/// Hashes the records of a stream, and maps its sensitive values to codes.
#[pyclass(module = "reticent._core.stream")]
pub struct Hasher(hash::Hasher);

#[pymethods]
impl Hasher {
    #[new]
    fn new(key: [u8; 32]) -> Self {
        Hasher(hash::Hasher::new(key))
    }

    /// Adds values; each gets the next code.
    fn learn(&mut self, labels: Vec<Option<String>>) {
        self.0.learn(labels);
    }

    /// Hashes and codes of a batch, whose columns are given by number.
    fn read(
        &self,
        py: Python<'_>,
        batch: Capsules<'_>,
        quasi: Vec<usize>,
        person: Option<usize>,
        sensitive: usize,
    ) -> PyResult<Hashes> {
        let rows = self::batch(&batch)?;
        let column = |number: usize| rows.column(number).map_err(to_py_error);
        let quasi = quasi
            .into_iter()
            .map(column)
            .collect::<PyResult<Vec<_>>>()?;
        let person = person.map(column).transpose()?;
        let sensitive = column(sensitive)?;
        let hashes = py.detach(|| self.0.read(&quasi, person.as_ref(), &sensitive));
        Ok(Hashes {
            quasi: array(py, hashes.quasi),
            persons: hashes.persons.map(|p| array(py, p)),
            missing: hashes.missing,
            codes: hashes.codes.map(|c| array(py, c)),
        })
    }
}
