//! Checks given classes by their persons.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::model::Model;
use super::{Codes, in_domain};
use crate::py::refuse;
use crate::table::linked::{self, Column};
use crate::table::persons::count_pairs;

type Classes<'py> = PyReadonlyArray1<'py, i64>;

/// Whether each class (numbered from 0; -1: no class) satisfies a model of persons, given the pair of every row.
#[pyfunction]
pub fn check_classes<'py>(
    py: Python<'py>,
    model: &Model,
    classes: Classes<'_>,
    pairs: Codes<'_>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (classes, pairs) = (classes.as_slice()?, pairs.as_slice()?);
    let Some(persons) = &model.0.persons else {
        return Err(refuse("the model counts no persons"));
    };
    in_domain(pairs, persons.owner.len(), classes.len())?;
    let count = classes.iter().max().map_or(0, |&c| (c + 1).max(0) as usize);
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (&class, &pair) in classes.iter().zip(pairs).filter(|(class, _)| **class >= 0) {
        members[class as usize].push(pair as u32);
    }
    let holds = |pairs: Vec<u32>| {
        let class = count_pairs(pairs);
        persons.plausible(&model.0, &class) && persons.holds(&model.0, &class)
    };
    let results: Vec<bool> = py.detach(|| members.into_iter().map(holds).collect());
    Ok(results.into_pyarray(py))
}

/// The rows that would leave their person fewer than l values common to all his or her classes.
#[pyfunction]
pub fn find_violations<'py>(
    py: Python<'py>,
    classes: Classes<'_>,
    persons: PyReadonlyArray1<'_, u32>,
    columns: Vec<(Codes<'_>, usize)>,
    l: u32,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (classes, persons) = (classes.as_slice()?, persons.as_slice()?);
    if persons.len() != classes.len() {
        return Err(refuse("the columns differ in length"));
    }
    let column = |(codes, domain): &(Codes<'_>, usize)| {
        let codes = codes.as_slice()?;
        in_domain(codes, *domain, classes.len())?;
        Ok(codes.to_vec())
    };
    let codes = columns.iter().map(column).collect::<PyResult<Vec<_>>>()?;
    let views: Vec<Column<'_>> = codes
        .iter()
        .zip(&columns)
        .map(|(codes, (_, domain))| Column {
            codes,
            domain: *domain,
        })
        .collect();
    let rows = py.detach(|| linked::find_violations(classes, persons, &views, l));
    Ok(rows.into_pyarray(py))
}
