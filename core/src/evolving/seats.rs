//! Seating of the sealed mode: which group of its class a record sits in.
//!
//! A class with n_v records of value v needs max n_v groups, each with one seat per value; seats without a record are the
//! counterfeits. A seated record stays where it is. Records without a seat take a random free seat of their own value. Groups
//! beyond the number needed are given up, the emptiest first, and their records seated again. Values are used for equality only,
//! so that permuting the seats of a class changes nothing that a reader can see.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::HashMap;

use crate::random::shuffle;

const STANDING: i32 = -1;

/// Seats the records of one class; `rows` index into `values` and `groups`.
fn seat_class(rows: &mut [u32], values: &[i32], groups: &mut [i32], rng: &mut ChaCha20Rng) {
    rows.sort_unstable_by_key(|&r| (values[r as usize], r));
    let runs: Vec<&[u32]> = rows
        .chunk_by(|&a, &b| values[a as usize] == values[b as usize])
        .collect();
    let needed = runs.iter().map(|run| run.len()).max().unwrap_or(0);
    let kept = keep(rows, groups, needed, rng);
    for run in runs {
        let taken: Vec<i32> = run
            .iter()
            .map(|&r| groups[r as usize])
            .filter(|&g| g != STANDING)
            .collect();
        let mut standing: Vec<u32> = run
            .iter()
            .copied()
            .filter(|&r| groups[r as usize] == STANDING)
            .collect();
        if standing.is_empty() {
            continue;
        }
        let mut taken = taken;
        taken.sort_unstable();
        let mut free: Vec<i32> = kept
            .iter()
            .copied()
            .filter(|g| taken.binary_search(g).is_err())
            .collect();
        shuffle(&mut free, rng);
        shuffle(&mut standing, rng);
        for (row, group) in standing.into_iter().zip(free) {
            groups[row as usize] = group;
        }
    }
}

/// The groups that stay or open: exactly `needed` of them. Rows of the others stand up.
fn keep(rows: &[u32], groups: &mut [i32], needed: usize, rng: &mut ChaCha20Rng) -> Vec<i32> {
    let mut sizes: HashMap<i32, usize> = HashMap::new();
    for &row in rows {
        if groups[row as usize] != STANDING {
            *sizes.entry(groups[row as usize]).or_default() += 1;
        }
    }
    let mut used: Vec<(usize, i32)> = sizes.into_iter().map(|(g, n)| (n, g)).collect();
    used.sort_unstable_by_key(|&(_, g)| g);
    shuffle(&mut used, rng);
    used.sort_by_key(|&(n, _)| std::cmp::Reverse(n));
    let next = used.iter().map(|&(_, g)| g + 1).max().unwrap_or(0);
    let mut kept: Vec<i32> = used.iter().take(needed).map(|&(_, g)| g).collect();
    kept.sort_unstable();
    for &row in rows {
        if groups[row as usize] != STANDING && kept.binary_search(&groups[row as usize]).is_err() {
            groups[row as usize] = STANDING;
        }
    }
    let missing = needed - kept.len();
    kept.extend((0..missing as i32).map(|i| next + i));
    kept
}

/// Seats every record: the number of its group within its class, unchanged where it had one and the group is kept.
#[pyfunction]
#[pyo3(signature = (classes, values, groups, *, key))]
pub fn seat<'py>(
    py: Python<'py>,
    classes: PyReadonlyArray1<'py, i32>,
    values: PyReadonlyArray1<'py, i32>,
    groups: PyReadonlyArray1<'py, i32>,
    key: [u8; 32],
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (classes, values) = (classes.as_slice()?, values.as_slice()?);
    let mut seated = groups.as_slice()?.to_vec();
    if classes.len() != values.len() || classes.len() != seated.len() {
        return Err(PyValueError::new_err(
            "classes, values and groups must be equally long",
        ));
    }
    if classes.iter().any(|&c| c < 0) {
        return Err(PyValueError::new_err("every record needs a class"));
    }
    py.detach(|| {
        let mut rng = ChaCha20Rng::from_seed(key);
        let number = classes.iter().map(|&c| c as usize + 1).max().unwrap_or(0);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); number];
        for (row, &class) in classes.iter().enumerate() {
            members[class as usize].push(row as u32);
        }
        for rows in &mut members {
            seat_class(rows, values, &mut seated, &mut rng);
        }
    });
    Ok(seated.into_pyarray(py))
}
