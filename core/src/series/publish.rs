//! One release of a series: the three phases of m-Distinct (Li and Zhou 2008), on codes.
//!
//! With candidate update sets of one value each this is m-Invariance (Xiao and Tao 2007).

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use super::assign::{Past, Table, assign, buckets, entries};
use super::bucket::Slot;
use super::fresh::{Plan, first_groups};
use super::knowledge::Knowledge;
use super::space::Space;
use super::split::split;
use crate::random::shuffle;

/// Groups of the next release, and for each row why it is held back (0: it is not).
pub struct Outcome {
    pub groups: Vec<Vec<Slot>>,
    pub held: Vec<u8>,
}

/// Publishes the table after the past; None when first groups need more colours than the domain has.
pub fn publish(
    table: &Table,
    past: &Past,
    plan: &Plan,
    relax: bool,
    key: [u8; 32],
) -> Option<Outcome> {
    let knowledge = plan.knowledge;
    let mut rng = ChaCha20Rng::from_seed(key);
    let mut held = vec![0u8; table.values.len()];
    let mut places = buckets(table, past, knowledge, &mut held);
    let (balances, left) = assign(table, &mut places, knowledge, &mut rng);
    let balanced: Vec<_> = places
        .iter()
        .zip(&balances)
        .map(|(bucket, state)| entries(table, bucket, state, &mut rng))
        .collect();
    let mut out: Vec<Vec<Slot>> = balanced
        .into_par_iter()
        .flat_map_iter(|bucket| {
            let mut groups = Vec::new();
            split(&table.space, bucket, &mut groups);
            groups
        })
        .collect();
    let first: Vec<Slot> = left
        .iter()
        .map(|&row| Slot {
            row: row as i32,
            value: table.values[row as usize] as u32,
            donor: row,
        })
        .collect();
    if !first_groups(plan, relax, &table.space, first, &mut rng, &mut out) {
        return None;
    }
    out.retain(|group| group.iter().any(|slot| slot.row >= 0));
    shuffle(&mut out, &mut rng);
    for group in &mut out {
        group.sort_unstable_by_key(|slot| slot.value);
    }
    Some(Outcome { groups: out, held })
}

/// Offsets of the groups, then row, value and donor of each place, then the reason each row is held back.
type Columns<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<u8>>,
);

fn columns<'py>(py: Python<'py>, outcome: Outcome) -> Columns<'py> {
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
    (
        offsets.into_pyarray(py),
        rows.into_pyarray(py),
        values.into_pyarray(py),
        donors.into_pyarray(py),
        outcome.held.into_pyarray(py),
    )
}

/// The groups of the next release of a series; None when the domain has fewer than m colours for first groups.
#[pyfunction]
#[pyo3(name = "publish", signature = (values, previous, before, points, *, past, sets, colours, relax, m, key))]
#[allow(clippy::too_many_arguments)]
pub fn publish_py<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, i32>,
    previous: PyReadonlyArray1<'py, i32>,
    before: PyReadonlyArray1<'py, i32>,
    points: PyReadonlyArray2<'py, f32>,
    past: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i32>),
    sets: (
        PyReadonlyArray1<'py, i64>,
        PyReadonlyArray1<'py, i32>,
        PyReadonlyArray1<'py, f64>,
    ),
    colours: PyReadonlyArray1<'py, i32>,
    relax: bool,
    m: usize,
    key: [u8; 32],
) -> PyResult<Option<Columns<'py>>> {
    let (indptr, indices, weights) = (sets.0.as_slice()?, sets.1.as_slice()?, sets.2.as_slice()?);
    let axes = points.shape()[1];
    let table = Table {
        values: values.as_slice()?,
        previous: previous.as_slice()?,
        before: before.as_slice()?,
        space: Space {
            points: points.as_slice()?,
            axes,
        },
    };
    let past = Past {
        offsets: past.0.as_slice()?,
        values: past.1.as_slice()?,
    };
    let colours = colours.as_slice()?;
    check(&table, &past, colours.len(), indptr, m)?;
    let outcome = py.detach(|| {
        let knowledge = Knowledge::new(indptr, indices, weights);
        let plan = Plan {
            m,
            colours,
            knowledge: &knowledge,
        };
        publish(&table, &past, &plan, relax, key)
    });
    Ok(outcome.map(|found| columns(py, found)))
}

fn check(table: &Table, past: &Past, domain: usize, indptr: &[i64], m: usize) -> PyResult<()> {
    let n = table.values.len();
    let inside = |codes: &[i32]| codes.iter().all(|&v| v >= 0 && (v as usize) < domain);
    let known = past.offsets.len() as i64 - 1;
    if m < 2 || indptr.len() != domain + 1 || table.previous.len() != n || table.before.len() != n {
        return Err(PyValueError::new_err("sizes do not agree, or m is below 2"));
    }
    if table.space.points.len() != n * table.space.axes
        || !inside(table.values)
        || !inside(past.values)
    {
        return Err(PyValueError::new_err(
            "a code lies outside the domain, or a point is missing",
        ));
    }
    let linked = (0..n).all(|r| {
        let group = i64::from(table.previous[r]);
        group < 0 || (group < known && inside(&table.before[r..=r]))
    });
    if linked {
        Ok(())
    } else {
        Err(PyValueError::new_err("a previous group is unknown"))
    }
}
