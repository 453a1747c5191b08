//! `reticent._core.series`: the groups of the next release, the risk of all releases, and queries on them.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::assign::Table;
use super::buckets::Past;
use super::knowledge::Knowledge;
use super::publish::{First, Outcome, check};
use super::query;
use super::space::Space;
use super::sug::{self, Risk, Step, Versions};
use crate::py::refuse;

type Ints<'py> = PyReadonlyArray1<'py, i32>;
type Longs<'py> = PyReadonlyArray1<'py, i64>;
type Grid<'py> = PyReadonlyArray2<'py, i32>;
type Points<'py> = PyReadonlyArray2<'py, f32>;
/// Compressed rows: the start of each row, its columns, their weights.
type Matrix<'py> = (Longs<'py>, Ints<'py>, PyReadonlyArray1<'py, f64>);

/// Groups of a release: their starts; row, value and donor of each place; and why a row is withheld (0: it is not).
#[pyclass(frozen, get_all, module = "reticent._core.series")]
pub struct PublishedGroups {
    offsets: Py<PyArray1<i64>>,
    rows: Py<PyArray1<i32>>,
    values: Py<PyArray1<i32>>,
    donors: Py<PyArray1<i32>>,
    withheld: Py<PyArray1<u8>>,
}

impl PublishedGroups {
    fn new(py: Python<'_>, outcome: Outcome) -> Self {
        let mut offsets = vec![0i64];
        let (mut rows, mut values, mut donors) = (Vec::new(), Vec::new(), Vec::new());
        for group in &outcome.groups {
            for slot in group {
                rows.push(slot.row);
                values.push(slot.value as i32);
                donors.push(slot.donor as i32);
            }
            offsets.push(rows.len() as i64);
        }
        PublishedGroups {
            offsets: offsets.into_pyarray(py).unbind(),
            rows: rows.into_pyarray(py).unbind(),
            values: values.into_pyarray(py).unbind(),
            donors: donors.into_pyarray(py).unbind(),
            withheld: outcome.withheld.into_pyarray(py).unbind(),
        }
    }
}

/// The groups of the next release of a series; None if the domain has fewer than m colors for first groups.
#[pyfunction]
#[pyo3(signature = (values, previous, before, points, *, past, sets, colors, relax, m, key))]
#[allow(clippy::too_many_arguments)]
fn publish(
    py: Python<'_>,
    values: Ints<'_>,
    previous: Ints<'_>,
    before: Ints<'_>,
    points: Points<'_>,
    past: (Longs<'_>, Ints<'_>),
    sets: Matrix<'_>,
    colors: Ints<'_>,
    relax: bool,
    m: usize,
    key: [u8; 32],
) -> PyResult<Option<PublishedGroups>> {
    let (indptr, indices, weights) = (sets.0.as_slice()?, sets.1.as_slice()?, sets.2.as_slice()?);
    let table = Table {
        values: values.as_slice()?,
        previous: previous.as_slice()?,
        before: before.as_slice()?,
        space: Space {
            points: points.as_slice()?,
            axes: points.shape()[1],
        },
    };
    let past = Past {
        offsets: past.0.as_slice()?,
        values: past.1.as_slice()?,
    };
    let colors = colors.as_slice()?;
    check(&table, &past, colors.len(), indptr, m).map_err(refuse)?;
    let outcome = py.detach(|| {
        let knowledge = Knowledge::new(indptr, indices, weights);
        let first = First { m, colors, relax };
        super::publish::publish(&table, &past, knowledge, &first, key)
    });
    Ok(outcome.map(|outcome| PublishedGroups::new(py, outcome)))
}

/// Per record: worst posterior of any candidate, risk of the true values, versions with one feasible value, versions.
#[pyclass(frozen, get_all, module = "reticent._core.series")]
pub struct Risks {
    worst: Py<PyArray1<f64>>,
    true_value: Py<PyArray1<f64>>,
    disclosed: Py<PyArray1<i32>>,
    versions: Py<PyArray1<i32>>,
}

impl Risks {
    fn new(py: Python<'_>, risks: &[Risk]) -> Self {
        let floats = |of: fn(&Risk) -> f64| {
            let column: Vec<f64> = risks.iter().map(of).collect();
            column.into_pyarray(py).unbind()
        };
        let ints = |of: fn(&Risk) -> i32| {
            let column: Vec<i32> = risks.iter().map(of).collect();
            column.into_pyarray(py).unbind()
        };
        Risks {
            worst: floats(|r| r.worst),
            true_value: floats(|r| r.true_value),
            disclosed: ints(|r| r.disclosed),
            versions: ints(|r| r.versions),
        }
    }
}

/// The risk of the records with these heads (last versions).
#[pyfunction]
#[pyo3(signature = (heads, *, versions, groups, steps))]
fn risks(
    py: Python<'_>,
    heads: Ints<'_>,
    versions: (Ints<'_>, Ints<'_>, Ints<'_>, Ints<'_>),
    groups: (Longs<'_>, Ints<'_>),
    steps: Vec<Matrix<'_>>,
) -> PyResult<Risks> {
    let steps = steps
        .iter()
        .map(|(indptr, indices, weights)| {
            Ok(Step {
                indptr: indptr.as_slice()?,
                indices: indices.as_slice()?,
                weights: weights.as_slice()?,
            })
        })
        .collect::<PyResult<Vec<Step>>>()?;
    let graph = Versions {
        previous: versions.0.as_slice()?,
        release: versions.1.as_slice()?,
        group: versions.2.as_slice()?,
        value: versions.3.as_slice()?,
        offsets: groups.0.as_slice()?,
        candidates: groups.1.as_slice()?,
        steps,
    };
    let heads = heads.as_slice()?;
    graph.check(heads).map_err(refuse)?;
    let measured = py.detach(|| sug::risks(&graph, heads));
    Ok(Risks::new(py, &measured))
}

/// Estimated count of each query; a query is one closed range per axis and one of sensitive codes, last.
#[pyfunction]
#[pyo3(signature = (from_, to, *, low, high, records, groups))]
fn estimate<'py>(
    py: Python<'py>,
    from_: Grid<'py>,
    to: Grid<'py>,
    low: Grid<'py>,
    high: Grid<'py>,
    records: Ints<'py>,
    groups: (Longs<'py>, Ints<'py>),
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let axes = low.shape()[1];
    if from_.shape()[1] != axes + 1 || from_.shape() != to.shape() || low.shape() != high.shape() {
        return Err(refuse("queries and groups do not have the same axes"));
    }
    let boxes = (low.as_slice()?, high.as_slice()?);
    let values = (groups.0.as_slice()?, groups.1.as_slice()?);
    let data = query::Groups::new(axes, boxes, records.as_slice()?, values).map_err(refuse)?;
    let (from, to) = (from_.as_slice()?, to.as_slice()?);
    let counts = py.detach(|| query::estimate(&data, from, to));
    Ok(counts.into_pyarray(py))
}

/// Exact count of each query on the records; the last column of `records` is the sensitive code.
#[pyfunction]
fn count<'py>(
    py: Python<'py>,
    from_: Grid<'py>,
    to: Grid<'py>,
    records: Grid<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let width = records.shape()[1];
    if from_.shape()[1] != width || from_.shape() != to.shape() || width == 0 {
        return Err(refuse("queries and records do not have the same axes"));
    }
    let (rows, from, to) = (records.as_slice()?, from_.as_slice()?, to.as_slice()?);
    let counts = py.detach(|| query::count(rows, width, from, to));
    Ok(counts.into_pyarray(py))
}

/// The group of each row, and the number of groups; -1 everywhere if the table itself is not l-diverse.
#[pyclass(frozen, get_all, module = "reticent._core.series")]
pub struct Groups {
    groups: Py<PyArray1<i32>>,
    count: i32,
}

/// Mondrian cuts with at least l distinct values per part.
#[pyfunction]
#[pyo3(signature = (values, points, *, l))]
fn group_l_diverse(
    py: Python<'_>,
    values: Ints<'_>,
    points: Points<'_>,
    l: usize,
) -> PyResult<Groups> {
    let values = values.as_slice()?;
    let space = Space {
        points: points.as_slice()?,
        axes: points.shape()[1],
    };
    if l < 1 || space.points.len() != values.len() * space.axes {
        return Err(refuse("l must be at least 1 and every row needs a point"));
    }
    let (groups, count) = py.detach(|| super::l_diverse::l_diverse(values, &space, l));
    Ok(Groups {
        groups: groups.into_pyarray(py).unbind(),
        count,
    })
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "series")?;
    m.add_class::<Groups>()?;
    m.add_class::<PublishedGroups>()?;
    m.add_class::<Risks>()?;
    m.add_function(wrap_pyfunction!(publish, &m)?)?;
    m.add_function(wrap_pyfunction!(risks, &m)?)?;
    m.add_function(wrap_pyfunction!(estimate, &m)?)?;
    m.add_function(wrap_pyfunction!(count, &m)?)?;
    m.add_function(wrap_pyfunction!(group_l_diverse, &m)?)?;
    parent.add_submodule(&m)
}
