//! Mondrian as Python calls it.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::model::Model;
use super::{Codes, Sensitive, guarded, in_domain, tables};
use crate::py::refuse;
use crate::table::mondrian::Axis;

/// The class of each row, counted from 0, and whether the whole table satisfies the model (if not, nothing is cut).
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct Partition {
    classes: Py<PyArray1<i64>>,
    holds: bool,
}

/// Codes, their positions on a scale from 0 to 1, and the tables of a tree (none for an ordered attribute).
type GivenAxis<'py> = (Codes<'py>, PyReadonlyArray1<'py, f64>, Vec<Codes<'py>>);

fn axis<'a>((codes, scale, tree): &'a GivenAxis<'_>, rows: usize) -> PyResult<Axis<'a>> {
    let (codes, scale) = (codes.as_slice()?, scale.as_slice()?.to_vec());
    in_domain(codes, scale.len(), rows)?;
    let tree = tables(tree, scale.len())?;
    Ok(Axis { codes, scale, tree })
}

/// Cuts a table as long as every part satisfies the model.
#[pyfunction]
#[pyo3(signature = (axes, sensitive, model, *, relaxed))]
pub fn mondrian(
    py: Python<'_>,
    axes: Vec<GivenAxis<'_>>,
    sensitive: Vec<Sensitive<'_>>,
    model: &Model,
    relaxed: bool,
) -> PyResult<Partition> {
    let rows = axes
        .first()
        .map_or(Ok(0), |a| a.0.as_slice().map(<[i32]>::len))?;
    if rows == 0 {
        return Err(refuse("there must be a quasi-identifier and a row"));
    }
    let axes = axes
        .iter()
        .map(|a| axis(a, rows))
        .collect::<PyResult<_>>()?;
    let sensitive = guarded(&sensitive, rows)?;
    let (classes, holds) =
        py.detach(|| crate::table::mondrian::mondrian(axes, sensitive, &model.0, relaxed));
    Ok(Partition {
        classes: classes.into_pyarray(py).unbind(),
        holds,
    })
}
