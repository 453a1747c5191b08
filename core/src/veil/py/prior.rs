//! Priors and permutations, before there is a key.

use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;

use super::super::{cumulative_line, permutations};
use super::{check_size, demand, reject, to_array, to_rows};

/// Puts the weights of every stratum on a cumulative line of length l.
fn segments_of<'py>(
    py: Python<'py>,
    weights: Vec<Vec<u64>>,
    l: usize,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    demand((2..=254).contains(&l), "l must be between 2 and 254")?;
    let width = weights.first().map_or(0, Vec::len);
    let strata = py.detach(|| {
        let stratum = |weights: &Vec<u64>| cumulative_line::segments(weights, l);
        weights.iter().map(stratum).collect::<Option<Vec<_>>>()
    });
    match strata {
        Some(strata) => Ok(to_array(&strata, width).into_pyarray(py)),
        None => reject("a stratum of the prior has no count"),
    }
}

/// Segments of the counts of every stratum on a line of length l: exact sums, by largest remainder.
#[pyfunction]
#[pyo3(signature = (counts, *, l))]
pub fn segments_of_counts<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray2<'py, u64>,
    l: usize,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    segments_of(py, to_rows(counts.as_array()), l)
}

/// Random public permutations of a domain.
#[pyfunction]
#[pyo3(signature = (size, *, count, seed))]
pub fn random_permutations(
    py: Python<'_>,
    size: usize,
    count: usize,
    seed: [u8; 32],
) -> PyResult<Bound<'_, PyArray2<u16>>> {
    check_size(size)?;
    let permutations = py.detach(|| permutations::random(size, count, seed));
    Ok(to_array(&permutations, size).into_pyarray(py))
}

/// Depth-first public permutations of a hierarchy; `levels[d, v]` is the node of value v at level d, nearest parents
/// first.
#[pyfunction]
#[pyo3(signature = (levels, *, count, seed))]
pub fn hierarchy_permutations<'py>(
    py: Python<'py>,
    levels: PyReadonlyArray2<'py, u32>,
    count: usize,
    seed: [u8; 32],
) -> PyResult<Bound<'py, PyArray2<u16>>> {
    let size = levels.as_array().ncols();
    check_size(size)?;
    let levels = to_rows(levels.as_array());
    let dense = levels
        .iter()
        .all(|level| permutations::width(level) <= size);
    demand(
        dense,
        "the nodes of a level must be numbered from 0, without gaps",
    )?;
    demand(
        permutations::is_nested(&levels),
        "a node lies under two parents",
    )?;
    let permutations = py.detach(|| permutations::hierarchy(&levels, size, count, seed));
    Ok(to_array(&permutations, size).into_pyarray(py))
}
