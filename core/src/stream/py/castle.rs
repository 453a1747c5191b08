//! The Python interface of CASTLE: columns in, released regions out, snapshots.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, ndarray::Array2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::py::refuse;
use crate::stream::bytes::{Reader, Writer};
use crate::stream::castle::{self, Batch, Output, Settings};
use crate::stream::castle_snapshot;
use crate::stream::cluster::Hierarchy;
use crate::stream::draw::Draw;

/// Tuples that left, in order: whether they are published or suppressed, and one row of leaves, levels and bounds each.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
pub struct ReleasedRecords {
    seqs: Py<PyArray1<u64>>,
    published: Py<PyArray1<bool>>,
    leaves: Py<PyArray2<u32>>,
    levels: Py<PyArray2<u32>>,
    low: Py<PyArray2<f64>>,
    high: Py<PyArray2<f64>>,
}

/// Tuples so far, pending tuples, live clusters, reusable regions.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
pub struct CastleTotals {
    tuples: u64,
    pending: usize,
    clusters: usize,
    reusable: usize,
}

/// Over the published tuples: their number, the loss of their quasi-identifiers, the spread of their values, their
/// waits.
#[pyclass(frozen, get_all, module = "reticent._core.stream")]
pub struct CastleLosses {
    tuples: u64,
    loss: f64,
    spread: f64,
    waited: u64,
}

/// The state of one stream under `castle`.
#[pyclass(module = "reticent._core.stream")]
pub struct Castle(castle::Castle);

#[pymethods]
impl Castle {
    #[new]
    #[pyo3(signature = (*, key, shard, k, l, delta, beta, mu, reuse, categories, numbers))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        key: [u8; 32],
        shard: u16,
        k: usize,
        l: usize,
        delta: usize,
        beta: usize,
        mu: usize,
        reuse: usize,
        categories: usize,
        numbers: usize,
    ) -> PyResult<Self> {
        if k == 0 || l == 0 || beta == 0 || mu == 0 {
            return Err(refuse("k, l, beta and mu must be at least 1"));
        }
        let settings = Settings {
            k,
            l,
            delta,
            beta,
            mu,
            reuse,
        };
        let draw = Draw::new(key, u64::from(shard));
        Ok(Castle(castle::Castle::new(
            settings, categories, numbers, draw,
        )))
    }

    /// Sets the hierarchy of one category: per level, the node of every leaf and the loss of every node.
    fn set_hierarchy(
        &mut self,
        attribute: usize,
        tables: Vec<Vec<u32>>,
        losses: Vec<Vec<f64>>,
    ) -> PyResult<()> {
        let hierarchy = Hierarchy { tables, losses };
        self.0.set_hierarchy(attribute, hierarchy).map_err(refuse)
    }

    /// Adds tuples; returns those that left, published or suppressed.
    fn push(
        &mut self,
        py: Python<'_>,
        seqs: PyReadonlyArray1<'_, u64>,
        persons: PyReadonlyArray1<'_, u64>,
        values: PyReadonlyArray1<'_, u32>,
        leaves: PyReadonlyArray2<'_, u32>,
        numbers: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<ReleasedRecords> {
        let batch = Batch {
            seqs: seqs.as_slice()?,
            persons: persons.as_slice()?,
            values: values.as_slice()?,
            leaves: leaves.as_slice()?,
            numbers: numbers.as_slice()?,
        };
        if !self.0.fits(&batch) {
            return Err(refuse(
                "the batch does not fit: check columns, leaves and numbers",
            ));
        }
        let out = py.detach(|| self.0.push(&batch));
        self.to_records(py, &out)
    }

    /// Releases or suppresses all pending tuples.
    fn close(&mut self, py: Python<'_>) -> PyResult<ReleasedRecords> {
        let mut out = Vec::new();
        py.detach(|| self.0.flush(&mut out));
        self.to_records(py, &out)
    }

    fn totals(&self) -> CastleTotals {
        CastleTotals {
            tuples: self.0.arrived,
            pending: self.0.pending_count(),
            clusters: self.0.live().count(),
            reusable: self.0.published.len(),
        }
    }

    fn losses(&self) -> CastleLosses {
        let (tuples, loss, spread) = self.0.published_sums;
        CastleLosses {
            tuples,
            loss,
            spread,
            waited: self.0.waited,
        }
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut out = Writer(Vec::new());
        castle_snapshot::write(&self.0, &mut out);
        PyBytes::new(py, &out.0)
    }

    /// Restores a snapshot of an engine with the same settings and hierarchies.
    fn restore(&mut self, state: &[u8]) -> PyResult<()> {
        castle_snapshot::read(&mut self.0, &mut Reader(state)).map_err(refuse)
    }
}

impl Castle {
    fn to_records(&self, py: Python<'_>, out: &[Output]) -> PyResult<ReleasedRecords> {
        let (c, n) = (self.0.space.hierarchies.len(), self.0.space.low.len());
        let (mut leaves, mut levels) = (Vec::new(), Vec::new());
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (row, tuple) in out.iter().enumerate() {
            if let Some(region) = &tuple.region {
                leaves.extend_from_slice(&region.leaves);
                levels.extend_from_slice(&region.levels);
                low.extend_from_slice(&region.low);
                high.extend_from_slice(&region.high);
            }
            // A suppressed tuple has no region; its row is zeros.
            leaves.resize((row + 1) * c, 0);
            levels.resize((row + 1) * c, 0);
            low.resize((row + 1) * n, 0.0);
            high.resize((row + 1) * n, 0.0);
        }
        let seqs: Vec<u64> = out.iter().map(|o| o.seq).collect();
        let published: Vec<bool> = out.iter().map(|o| o.region.is_some()).collect();
        Ok(ReleasedRecords {
            seqs: seqs.into_pyarray(py).unbind(),
            published: published.into_pyarray(py).unbind(),
            leaves: grid(py, leaves, c, out.len())?,
            levels: grid(py, levels, c, out.len())?,
            low: grid(py, low, n, out.len())?,
            high: grid(py, high, n, out.len())?,
        })
    }
}

fn grid<T: numpy::Element>(
    py: Python<'_>,
    flat: Vec<T>,
    columns: usize,
    rows: usize,
) -> PyResult<Py<PyArray2<T>>> {
    let grid = Array2::from_shape_vec((rows, columns), flat);
    let grid = grid.map_err(|e| refuse(&e.to_string()))?;
    Ok(grid.into_pyarray(py).unbind())
}
