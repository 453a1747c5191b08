//! The judge as Python sees it: arrays in, a word out, the interpreter's lock released.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::followed::{self, Batch};
use super::possible::{Matrix, Possible, Shares, Steps};
use crate::py::refuse;

/// The persons of a veiled stream, each with her last record.
#[pyclass(module = "reticent._core.judge")]
pub struct Followed(followed::Followed);

#[pymethods]
impl Followed {
    /// `starts` and `targets` say which values may follow each, `marks` and `parents` what each may do in each row; without them
    /// nothing moves.
    #[new]
    #[pyo3(signature = (*, values, rows, factors, starts=None, targets=None, marks=None, parents=None))]
    fn new(
        values: usize,
        rows: usize,
        factors: PyReadonlyArray1<'_, u64>,
        starts: Option<Vec<usize>>,
        targets: Option<Vec<u16>>,
        marks: Option<PyReadonlyArray2<'_, u8>>,
        parents: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        if values > 65_535 || rows > 65_535 {
            return Err(refuse("a domain and a prior have at most 65,535"));
        }
        let steps = match (starts, targets, marks, parents) {
            (None, None, None, None) => Some(Steps::Still),
            (Some(starts), Some(targets), None, None) => {
                Matrix::new(values, starts, targets).map(Steps::Matrix)
            }
            (None, None, Some(marks), Some(parents)) if parents.len() == values => {
                Shares::new(rows, marks.as_slice()?.to_vec(), parents).map(Steps::Shares)
            }
            _ => None,
        };
        Ok(Followed(followed::Followed::new(Possible {
            values,
            factors: factors.as_slice()?.to_vec(),
            sets: vec![None; rows],
            steps: steps.ok_or_else(|| refuse("the kernel does not fit the domain"))?,
        })))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Rows among these whose sets were not taught yet.
    fn strange(&self, rows: PyReadonlyArray1<'_, u32>) -> PyResult<Vec<u32>> {
        let sets = &self.0.possible.sets;
        let unknown = |&&row: &&u32| sets.get(row as usize).is_some_and(Option::is_none);
        let mut strange: Vec<u32> = rows.as_slice()?.iter().filter(unknown).copied().collect();
        strange.sort_unstable();
        strange.dedup();
        Ok(strange)
    }

    /// The names of all sets that a row can give.
    fn learn(&mut self, row: usize, names: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let names = names.as_slice()?.iter().copied().collect();
        let sets = self.0.possible.sets.get_mut(row);
        *sets.ok_or_else(|| refuse("no such row"))? = Some(names);
        Ok(())
    }

    /// What is wrong with a batch, if anything.
    fn offence(
        &mut self,
        py: Python<'_>,
        persons: PyReadonlyArray1<'_, u64>,
        rows: PyReadonlyArray1<'_, u32>,
        events: PyReadonlyArray1<'_, u32>,
        candidates: PyReadonlyArray2<'_, u16>,
    ) -> PyResult<Option<&'static str>> {
        let whole = candidates.shape() == [persons.len(), self.0.possible.factors.len()];
        if !whole || rows.len() != persons.len() || events.len() != persons.len() {
            return Ok(Some("the batch is not whole"));
        }
        let batch = Batch {
            persons: persons.as_slice()?,
            rows: rows.as_slice()?,
            events: events.as_slice()?,
            candidates: candidates.as_slice()?,
        };
        let followed = &mut self.0;
        Ok(py.detach(|| followed.offence(&batch)))
    }

    /// Everything, for a snapshot.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_bytes()))
    }

    /// Takes up what `to_bytes` gave.
    fn load(&mut self, data: &[u8]) -> PyResult<()> {
        let loaded = self.0.load(data);
        loaded.ok_or_else(|| refuse("the memory of another stream, or a damaged one"))
    }
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "judge")?;
    m.add_class::<Followed>()?;
    parent.add_submodule(&m)
}
