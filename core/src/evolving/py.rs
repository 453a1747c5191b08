//! `reticent._core.evolving`: rows and codes in, changed rows and their classes out.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::locate::NotFound;
use super::method::{self, Evolving};
use crate::py::refuse;

/// The result of one change: the rows whose class changed with their classes (-1: withheld), and counts.
#[pyclass(frozen, get_all, module = "reticent._core.evolving")]
pub struct Change {
    rows: Py<PyArray1<u32>>,
    classes: Py<PyArray1<i32>>,
    touched: usize,
    dissolved: usize,
    relocated: usize,
    withheld: usize,
}

impl Change {
    fn new(py: Python<'_>, change: method::Change) -> Self {
        Change {
            rows: change.rows.into_pyarray(py).unbind(),
            classes: change.classes.into_pyarray(py).unbind(),
            touched: change.touched,
            dissolved: change.dissolved,
            relocated: change.relocated,
            withheld: change.withheld,
        }
    }
}

/// Equivalence classes under one method: `red`, `eac`, `enc`, `encc` or `indexed`.
#[pyclass(module = "reticent._core.evolving")]
pub struct Classes(Evolving);

impl Classes {
    /// Checks that every row occurs once and is live or not, as the change requires.
    fn check(&self, rows: &[u32], live: bool) -> PyResult<()> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || rows.iter().any(|&r| self.0.live(r) != live) {
            return Err(refuse("a row occurs twice, or not at all"));
        }
        Ok(())
    }

    /// Checks that every new row has one value of zero or more and one code per quasi-identifier.
    fn check_new(&self, rows: &[u32], values: &[i32], quasi: &[i32]) -> PyResult<()> {
        if rows.len() != values.len() || values.iter().any(|&v| v < 0) {
            return Err(refuse("there must be one value of zero or more per row"));
        }
        if quasi.len() != rows.len() * self.0.width {
            return Err(refuse(
                "there must be one code per row and quasi-identifier",
            ));
        }
        self.check(rows, false)
    }
}

#[pymethods]
impl Classes {
    #[new]
    #[pyo3(signature = (method, *, l, scale))]
    fn new(method: &str, l: usize, scale: Vec<f64>) -> PyResult<Self> {
        if l == 0 {
            return Err(refuse("l must be at least 1"));
        }
        let table = Evolving::new(method, l, scale);
        Ok(Classes(table.ok_or_else(|| refuse("unknown method"))?))
    }

    /// Adds rows as one batch.
    #[pyo3(signature = (rows, values, quasi, *, key))]
    fn insert(
        &mut self,
        py: Python<'_>,
        rows: PyReadonlyArray1<'_, u32>,
        values: PyReadonlyArray1<'_, i32>,
        quasi: PyReadonlyArray2<'_, i32>,
        key: [u8; 32],
    ) -> PyResult<Change> {
        let (rows, values, quasi) = (rows.as_slice()?, values.as_slice()?, quasi.as_slice()?);
        self.check_new(rows, values, quasi)?;
        let change = py.detach(|| self.0.insert(rows, values, quasi, key));
        Ok(Change::new(py, change))
    }

    /// Removes rows, as one batch or (`each`) one after the other.
    #[pyo3(signature = (rows, *, key, each=false))]
    fn delete(
        &mut self,
        py: Python<'_>,
        rows: PyReadonlyArray1<'_, u32>,
        key: [u8; 32],
        each: bool,
    ) -> PyResult<Change> {
        let rows = rows.as_slice()?;
        self.check(rows, true)?;
        let change = py.detach(|| self.0.delete(rows, key, each));
        let change =
            change.map_err(|NotFound| PyRuntimeError::new_err("a live row is in no class"))?;
        Ok(Change::new(py, change))
    }

    /// Restores existing classes: one class number per row, -1 for withheld.
    fn load(
        &mut self,
        py: Python<'_>,
        rows: PyReadonlyArray1<'_, u32>,
        values: PyReadonlyArray1<'_, i32>,
        quasi: PyReadonlyArray2<'_, i32>,
        classes: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<()> {
        let (rows, values, quasi) = (rows.as_slice()?, values.as_slice()?, quasi.as_slice()?);
        let classes = classes.as_slice()?;
        self.check_new(rows, values, quasi)?;
        let numbered = |&c: &i32| (-1..i32::MAX).contains(&c);
        if !self.0.is_empty() || rows.len() != classes.len() || !classes.iter().all(numbered) {
            return Err(refuse(
                "load needs an empty table, and one class of -1 or more per row",
            ));
        }
        py.detach(|| self.0.load(rows, values, quasi, classes));
        Ok(())
    }

    /// The class of each row, -1 if it is withheld.
    fn classes_of<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let rows = rows.as_slice()?;
        self.check(rows, true)?;
        let classes: Vec<i32> = rows.iter().map(|&r| self.0.class_of(r)).collect();
        Ok(classes.into_pyarray(py))
    }
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "evolving")?;
    m.add_class::<Change>()?;
    m.add_class::<Classes>()?;
    parent.add_submodule(&m)
}
