//! Range count queries on a release, thousands at once.
//!
//! A group contributes its record count (counterfeits excluded) times the chance that a record spread evenly over the
//! group's ranges and values falls into the query.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;

/// Integers of the range [low, high] that lie inside [from, to].
#[inline]
fn overlap(low: i32, high: i32, from: i32, to: i32) -> f64 {
    f64::from((high.min(to) - low.max(from) + 1).max(0))
}

struct Groups<'a> {
    axes: usize,
    low: &'a [i32],
    high: &'a [i32],
    /// Records of a group divided by the integers in its box: what one integer point of it stands for.
    density: Vec<f64>,
    offsets: &'a [i64],
    values: &'a [i32],
}

impl Groups<'_> {
    fn estimate(&self, from: &[i32], to: &[i32]) -> f64 {
        (0..self.density.len())
            .map(|g| self.share(g, from, to))
            .sum()
    }

    fn share(&self, group: usize, from: &[i32], to: &[i32]) -> f64 {
        let mut part = self.density[group];
        for axis in 0..self.axes {
            let at = group * self.axes + axis;
            part *= overlap(self.low[at], self.high[at], from[axis], to[axis]);
            if part == 0.0 {
                return 0.0;
            }
        }
        let values = &self.values[self.offsets[group] as usize..self.offsets[group + 1] as usize];
        let (first, last) = (from[self.axes], to[self.axes]);
        let hits = values.iter().filter(|&&v| v >= first && v <= last).count();
        part * hits as f64 / values.len() as f64
    }
}

fn densities(low: &[i32], high: &[i32], records: &[i32], axes: usize) -> Vec<f64> {
    let points = |g: usize| {
        (g * axes..(g + 1) * axes)
            .map(|at| f64::from(high[at] - low[at] + 1))
            .product::<f64>()
    };
    records
        .iter()
        .enumerate()
        .map(|(g, &n)| f64::from(n) / points(g))
        .collect()
}

type Grid<'py> = PyReadonlyArray2<'py, i32>;

/// Estimated count of each query; a query is one closed range per axis and one of sensitive codes, last.
#[pyfunction]
#[pyo3(signature = (from_, to, *, low, high, records, groups))]
pub fn estimate<'py>(
    py: Python<'py>,
    from_: Grid<'py>,
    to: Grid<'py>,
    low: Grid<'py>,
    high: Grid<'py>,
    records: PyReadonlyArray1<'py, i32>,
    groups: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i32>),
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let axes = low.shape()[1];
    if from_.shape()[1] != axes + 1 || from_.shape() != to.shape() || low.shape() != high.shape() {
        return Err(PyValueError::new_err(
            "queries and groups do not have the same axes",
        ));
    }
    let data = Groups {
        axes,
        low: low.as_slice()?,
        high: high.as_slice()?,
        density: densities(low.as_slice()?, high.as_slice()?, records.as_slice()?, axes),
        offsets: groups.0.as_slice()?,
        values: groups.1.as_slice()?,
    };
    let (from, to) = (from_.as_slice()?, to.as_slice()?);
    let found: Vec<f64> = py.detach(|| {
        from.par_chunks(axes + 1)
            .zip(to.par_chunks(axes + 1))
            .map(|(f, t)| data.estimate(f, t))
            .collect()
    });
    Ok(found.into_pyarray(py))
}

/// Exact count of each query on the records; the last column of `records` is the sensitive code.
#[pyfunction]
pub fn count<'py>(
    py: Python<'py>,
    from_: Grid<'py>,
    to: Grid<'py>,
    records: Grid<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let width = records.shape()[1];
    if from_.shape()[1] != width || from_.shape() != to.shape() {
        return Err(PyValueError::new_err(
            "queries and records do not have the same axes",
        ));
    }
    let (rows, from, to) = (records.as_slice()?, from_.as_slice()?, to.as_slice()?);
    let inside =
        |row: &[i32], f: &[i32], t: &[i32]| (0..width).all(|a| row[a] >= f[a] && row[a] <= t[a]);
    let found: Vec<i64> = py.detach(|| {
        from.par_chunks(width)
            .zip(to.par_chunks(width))
            .map(|(f, t)| rows.chunks(width).filter(|row| inside(row, f, t)).count() as i64)
            .collect()
    });
    Ok(found.into_pyarray(py))
}
