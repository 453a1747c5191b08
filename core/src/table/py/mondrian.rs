//! The Python interface of Mondrian.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::cancellation::{CancellationToken, interruptible};
use super::model::Model;
use super::{Codes, Sensitive, check_sensitive, in_domain, tables};
use crate::py::refuse;
use crate::table::axis::{self, Level, Shape};

/// The class of each row, counted from 0, and whether the whole table satisfies the model (if not, nothing is cut).
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct Partition {
    classes: Py<PyArray1<i64>>,
    is_valid: bool,
}

/// A quasi-identifier, and how its values are published.
#[pyclass(frozen, module = "reticent._core.table")]
pub struct Axis(axis::Axis);

fn new_axis(
    codes: &Codes<'_>,
    domain: usize,
    shape: Shape,
    missing: bool,
    weight: f64,
) -> PyResult<Axis> {
    let codes = codes.as_slice()?;
    in_domain(codes, domain, codes.len())?;
    Ok(Axis(axis::Axis {
        codes: codes.iter().map(|&c| c as u32).collect(),
        domain,
        shape,
        missing,
        weight,
    }))
}

#[pymethods]
impl Axis {
    /// By intervals: codes in the order of the values, with their positions on a scale from 0 to 1. `missing`: code 0
    /// is the missing value.
    #[staticmethod]
    #[pyo3(signature = (codes, scale, *, missing, weight))]
    fn from_scale(
        codes: Codes<'_>,
        scale: PyReadonlyArray1<'_, f64>,
        missing: bool,
        weight: f64,
    ) -> PyResult<Self> {
        let scale = scale.as_slice()?.to_vec();
        new_axis(&codes, scale.len(), Shape::Ordered(scale), missing, weight)
    }

    /// By sets of values out of `size`.
    #[staticmethod]
    #[pyo3(signature = (codes, domain, size, *, missing, weight))]
    fn from_set(
        codes: Codes<'_>,
        domain: usize,
        size: usize,
        missing: bool,
        weight: f64,
    ) -> PyResult<Self> {
        let step = 1.0 / size.saturating_sub(1).max(1) as f64;
        new_axis(&codes, domain, Shape::Set(step), missing, weight)
    }

    /// By nodes of a tree: per level, the node above each code and the cost of each node.
    #[staticmethod]
    #[pyo3(signature = (codes, levels, *, weight))]
    fn from_tree(
        codes: Codes<'_>,
        levels: Vec<(Codes<'_>, PyReadonlyArray1<'_, f64>)>,
        weight: f64,
    ) -> PyResult<Self> {
        let domain = levels
            .first()
            .map_or(Ok(0), |l| l.0.as_slice().map(<[i32]>::len))?;
        let mut steps = Vec::with_capacity(levels.len());
        for (nodes, costs) in levels {
            let nodes = tables(&[nodes], domain)?.remove(0);
            let costs = costs.as_slice()?.to_vec();
            if nodes.iter().any(|&node| node as usize >= costs.len()) {
                return Err(refuse("a tree names a node without a cost"));
            }
            steps.push(Level { nodes, costs });
        }
        if steps.last().is_none_or(|top| top.costs.len() > 1) {
            return Err(refuse("a tree needs one root"));
        }
        new_axis(&codes, domain, Shape::Tree(steps), false, weight)
    }
}

/// Cuts a table, or the classes of `start`, as long as every part satisfies the model; a row may represent `times`
/// equal rows.
#[pyfunction]
#[pyo3(signature = (axes, sensitive, model, *, relaxed, times=None, start=None, linked_k=0, cancellation=None))]
#[allow(clippy::too_many_arguments)]
pub fn mondrian(
    py: Python<'_>,
    axes: Vec<PyRef<'_, Axis>>,
    sensitive: Vec<Sensitive<'_>>,
    model: &Model,
    relaxed: bool,
    times: Option<PyReadonlyArray1<'_, u32>>,
    start: Option<PyReadonlyArray1<'_, i64>>,
    linked_k: u32,
    cancellation: Option<&CancellationToken>,
) -> PyResult<Partition> {
    let axes: Vec<&axis::Axis> = axes.iter().map(|axis| &axis.0).collect();
    let rows = axes.first().map_or(0, |axis| axis.codes.len());
    if rows == 0 {
        return Err(refuse("there must be a quasi-identifier and a row"));
    }
    if axes.iter().any(|axis| axis.codes.len() != rows) {
        return Err(refuse("the columns differ in length"));
    }
    let start = start.as_ref().map(|s| s.as_slice()).transpose()?;
    if start.is_some_and(|classes| classes.len() != rows) {
        return Err(refuse("the columns differ in length"));
    }
    let times = times.as_ref().map(|t| t.as_slice()).transpose()?;
    if let Some(times) = times {
        let total: u64 = times.iter().map(|&n| u64::from(n)).sum();
        if times.len() != rows || times.contains(&0) || total > u64::from(u32::MAX) {
            return Err(refuse("the counts do not fit the columns"));
        }
        if relaxed || model.0.persons.is_some() {
            return Err(refuse(
                "relaxed cuts and models of persons need single rows, without counts",
            ));
        }
    }
    let sensitive = check_sensitive(&sensitive, rows)?;
    let unlimited = CancellationToken::default();
    let cancellation = &cancellation.unwrap_or(&unlimited).0;
    let (classes, is_valid) = interruptible(py, cancellation, || {
        crate::table::mondrian::mondrian(
            &axes,
            sensitive,
            &model.0,
            times,
            start,
            relaxed,
            linked_k,
            cancellation,
        )
    })?;
    Ok(Partition {
        classes: classes.into_pyarray(py).unbind(),
        is_valid,
    })
}
