//! `reticent._core`, its submodules, and what their Python interfaces share.

use std::sync::Mutex;

use numpy::ndarray::{Array2, ArrayView2};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::{evolving, random, series, stream, table, veil, verify, wire};

pub fn refuse(message: &str) -> PyErr {
    PyValueError::new_err(message.to_owned())
}

/// Shorter columns are copied into an array that NumPy owns: this is faster than an array that wraps a vector.
const COPIED: usize = 256;

/// A column as an array, fast for batches of any size, single records above all.
pub fn array<T: Element + Copy>(py: Python<'_>, column: Vec<T>) -> Py<PyArray1<T>> {
    match column.len() {
        0..COPIED => PyArray1::from_slice(py, &column).unbind(),
        _ => column.into_pyarray(py).unbind(),
    }
}

/// The same for rows of `width` cells, one after the other.
pub fn table<T: Element + Copy>(py: Python<'_>, cells: Vec<T>, width: usize) -> Py<PyArray2<T>> {
    let shape = (cells.len() / width, width);
    let table = ArrayView2::from_shape(shape, &cells).expect("whole rows");
    match cells.len() {
        0..COPIED => PyArray2::from_array(py, &table).unbind(),
        _ => Array2::from_shape_vec(shape, cells)
            .expect("whole rows")
            .into_pyarray(py)
            .unbind(),
    }
}

/// A column that becomes an array on first use: creating an array costs as much as reading a record.
pub struct Later<T, A> {
    column: Mutex<Vec<T>>,
    array: PyOnceLock<Py<A>>,
}

impl<T, A> Later<T, A> {
    pub fn new(column: Vec<T>) -> Self {
        let (column, array) = (Mutex::new(column), PyOnceLock::new());
        Later { column, array }
    }

    pub fn get(&self, py: Python<'_>, make: impl FnOnce(Vec<T>) -> Py<A>) -> Py<A> {
        let take = || {
            std::mem::take(
                &mut *self
                    .column
                    .lock()
                    .expect("no thread panics while it holds the lock"),
            )
        };
        self.array.get_or_init(py, || make(take())).clone_ref(py)
    }
}

/// A random permutation of `n` items, drawn from ChaCha20 under `key`.
#[pyfunction]
#[pyo3(signature = (n, *, key))]
fn permutation<'py>(py: Python<'py>, n: usize, key: [u8; 32]) -> Bound<'py, PyArray1<i64>> {
    py.detach(|| random::permutation(n, key)).into_pyarray(py)
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let draws = PyModule::new(m.py(), "random")?;
    draws.add_function(wrap_pyfunction!(permutation, &draws)?)?;
    m.add_submodule(&draws)?;
    evolving::py::register(m)?;
    verify::py::register(m)?;
    series::py::register(m)?;
    stream::py::register(m)?;
    table::py::register(m)?;
    veil::py::register(m)?;
    wire::py::register(m)
}
