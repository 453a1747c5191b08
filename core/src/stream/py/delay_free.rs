//! The Python interface of delay-free anonymization.

use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::PlacedRecords;
use crate::py::refuse;
use crate::stream::delay_free::{self, Settings};
use crate::stream::pools::Kind;

/// Tuples, slots offered, groups opened, open and retired, and the tuples of the most frequent value.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
pub struct Totals {
    tuples: u64,
    offered: u64,
    groups: u64,
    open: u64,
    retired: u64,
    top: u64,
}

/// The state of one stream under `delay-free`.
#[pyclass(module = "reticent._core.stream")]
pub struct DelayFree(delay_free::DelayFree);

#[pymethods]
impl DelayFree {
    #[new]
    #[pyo3(signature = (*, key, shard, l, pool, weights, rank, retire_after, literal))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        key: [u8; 32],
        shard: u16,
        l: usize,
        pool: &str,
        weights: PyReadonlyArray1<'_, u64>,
        rank: PyReadonlyArray1<'_, u32>,
        retire_after: u64,
        literal: usize,
    ) -> PyResult<Self> {
        let stream = delay_free::DelayFree::new(Settings {
            key,
            shard: u64::from(shard),
            l,
            pool: Kind::parse(pool)
                .ok_or_else(|| refuse("unknown pool: expected uniform, empirical or matched"))?,
            weights: weights.as_slice()?.to_vec(),
            rank: rank.as_slice()?.to_vec(),
            retire_after,
            literal,
        });
        Ok(DelayFree(stream.map_err(refuse)?))
    }

    /// Extends the domain; `rank` is the published order of all values.
    fn grow(&mut self, rank: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        self.0.grow(rank.as_slice()?).map_err(refuse)
    }

    /// Draws candidates by other weights from now on.
    fn reweigh(&mut self, weights: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let weights = weights.as_slice()?.to_vec();
        self.0.reweigh(weights).map_err(refuse)
    }

    /// Releases every tuple at once: its group, and the groups opened for it.
    fn push(
        &mut self,
        py: Python<'_>,
        seqs: PyReadonlyArray1<'_, u64>,
        quasi: PyReadonlyArray1<'_, u64>,
        codes: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<PlacedRecords> {
        let (seqs, quasi, codes) = (seqs.as_slice()?, quasi.as_slice()?, codes.as_slice()?);
        let domain = self.0.domain();
        if seqs.len() != quasi.len() || seqs.len() != codes.len() {
            return Err(refuse("the columns differ in length"));
        }
        if codes.iter().any(|&c| c < 0 || c as usize >= domain) {
            return Err(refuse("a code lies outside the domain"));
        }
        let placed = py.detach(|| self.0.push(seqs, quasi, codes));
        let placed = placed.map_err(PyRuntimeError::new_err)?;
        Ok(PlacedRecords::new(py, placed))
    }

    fn totals(&self) -> Totals {
        let totals = self.0.totals();
        Totals {
            tuples: totals.tuples,
            offered: totals.offered,
            groups: totals.groups,
            open: totals.open,
            retired: totals.retired,
            top: totals.top,
        }
    }

    /// Tuples per code.
    fn value_counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.0.value_counts().to_pyarray(py)
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let state = py.detach(|| self.0.snapshot());
        PyBytes::new(py, &state)
    }

    /// Restores a snapshot of an engine with the same settings.
    fn restore(&mut self, state: &[u8]) -> PyResult<()> {
        self.0.restore(state).map_err(refuse)
    }
}
