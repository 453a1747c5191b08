//! The Python interface of the verifier: arrays in, a violation out, without the interpreter's lock.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::support::{Matrix, Shares, Steps, Support};
use super::trajectories::{self, Batch};
use crate::py::refuse;

/// The persons of a veiled stream, each with the last record.
#[pyclass(module = "reticent._core.verify")]
pub struct TrajectoryVerifier(trajectories::Trajectories);

#[pymethods]
impl TrajectoryVerifier {
    /// `starts` and `targets` list the values that may follow each value; `flags` and `parents` say what each value may do in each
    /// stratum. Without them no value changes.
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
            return Err(refuse(
                "a domain and a prior must have at most 65,535 entries",
            ));
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

    /// Strata among these whose sets are not known yet.
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

    /// Teaches the ids of all sets that a stratum can give.
    fn learn_stratum(&mut self, stratum: usize, names: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let names = names.as_slice()?.iter().copied().collect();
        let sets = self.0.support.sets.get_mut(stratum);
        *sets.ok_or_else(|| refuse("the prior has no such stratum"))? = Some(names);
        Ok(())
    }

    /// The first violation of a batch, if any.
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

    /// The whole state, for a snapshot.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_bytes()))
    }

    /// Restores what `to_bytes` wrote.
    fn load(&mut self, data: &[u8]) -> PyResult<()> {
        let loaded = self.0.load(data);
        loaded.ok_or_else(|| refuse("the memory belongs to another stream, or is corrupt"))
    }
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "verify")?;
    m.add_class::<TrajectoryVerifier>()?;
    parent.add_submodule(&m)
}
