//! The judge as Python sees it: arrays in, a word out, the interpreter's lock released.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::support::{Matrix, Shares, Steps, Support};
use super::trajectories::{self, Batch};
use crate::py::refuse;

/// The persons of a veiled stream, each with her last record.
#[pyclass(module = "reticent._core.verify")]
pub struct TrajectoryVerifier(trajectories::Trajectories);

#[pymethods]
impl TrajectoryVerifier {
    /// `starts` and `targets` say which values may follow each, `marks` and `parents` what each may do in each row; without them
    /// nothing moves.
    #[new]
    #[pyo3(signature = (*, values, strata, factors, starts=None, targets=None, flags=None, parents=None))]
    fn new(
        values: usize,
        strata: usize,
        factors: PyReadonlyArray1<'_, u64>,
        starts: Option<Vec<usize>>,
        targets: Option<Vec<u16>>,
        flags: Option<PyReadonlyArray2<'_, u8>>,
        parents: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        if values > 65_535 || strata > 65_535 {
            return Err(refuse("a domain and a prior have at most 65,535"));
        }
        let steps = match (starts, targets, flags, parents) {
            (None, None, None, None) => Some(Steps::Identity),
            (Some(starts), Some(targets), None, None) => {
                Matrix::new(values, starts, targets).map(Steps::Matrix)
            }
            (None, None, Some(flags), Some(parents)) if parents.len() == values => {
                Shares::new(strata, flags.as_slice()?.to_vec(), parents).map(Steps::Shares)
            }
            _ => None,
        };
        Ok(TrajectoryVerifier(trajectories::Trajectories::new(
            Support {
                values,
                factors: factors.as_slice()?.to_vec(),
                sets: vec![None; strata],
                steps: steps.ok_or_else(|| refuse("the kernel does not fit the domain"))?,
            },
        )))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Rows among these whose sets were not taught yet.
    fn unknown_strata(&self, strata: PyReadonlyArray1<'_, u32>) -> PyResult<Vec<u32>> {
        let sets = &self.0.support.sets;
        let is_unknown = |&&stratum: &&u32| sets.get(stratum as usize).is_some_and(Option::is_none);
        let mut unknown: Vec<u32> = strata
            .as_slice()?
            .iter()
            .filter(is_unknown)
            .copied()
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        Ok(unknown)
    }

    /// The names of all sets that a row can give.
    fn learn_stratum(&mut self, stratum: usize, names: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let names = names.as_slice()?.iter().copied().collect();
        let sets = self.0.support.sets.get_mut(stratum);
        *sets.ok_or_else(|| refuse("no such row"))? = Some(names);
        Ok(())
    }

    /// What is wrong with a batch, if anything.
    fn find_violation(
        &mut self,
        py: Python<'_>,
        persons: PyReadonlyArray1<'_, u64>,
        strata: PyReadonlyArray1<'_, u32>,
        events: PyReadonlyArray1<'_, u32>,
        candidates: PyReadonlyArray2<'_, u16>,
    ) -> PyResult<Option<&'static str>> {
        let whole = candidates.shape() == [persons.len(), self.0.support.factors.len()];
        if !whole || strata.len() != persons.len() || events.len() != persons.len() {
            return Ok(Some("the batch is not whole"));
        }
        let batch = Batch {
            persons: persons.as_slice()?,
            strata: strata.as_slice()?,
            events: events.as_slice()?,
            candidates: candidates.as_slice()?,
        };
        let trajectories = &mut self.0;
        Ok(py.detach(|| trajectories.find_violation(&batch)))
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
    let m = PyModule::new(parent.py(), "verify")?;
    m.add_class::<TrajectoryVerifier>()?;
    parent.add_submodule(&m)
}
