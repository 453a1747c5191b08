//! Baseline: Mondrian cuts with at least l distinct values per part, anew for each release.

use std::collections::HashSet;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::bucket::Slot;
use super::space::Space;

fn diverse(part: &[Slot], l: usize) -> bool {
    let mut seen = HashSet::new();
    part.iter().any(|slot| {
        seen.insert(slot.value);
        seen.len() >= l
    })
}

fn halve(space: &Space, part: &mut [Slot], l: usize, out: &mut Vec<Vec<i32>>) {
    let whole = space.widths(part.iter());
    let mut axes: Vec<usize> = (0..space.axes).filter(|&a| whole[a] > 0.0).collect();
    axes.sort_by(|&a, &b| whole[b].total_cmp(&whole[a]));
    if part.len() >= 2 * l {
        for axis in axes {
            let mid = part.len() / 2;
            part.select_nth_unstable_by(mid, |a, b| {
                space.at(a, axis).total_cmp(&space.at(b, axis))
            });
            let (left, right) = part.split_at_mut(mid);
            if diverse(left, l) && diverse(right, l) {
                halve(space, left, l, out);
                halve(space, right, l, out);
                return;
            }
        }
    }
    out.push(part.iter().map(|slot| slot.row).collect());
}

/// Group of each row and the number of groups; -1 everywhere when the table itself is not l-diverse.
#[pyfunction]
#[pyo3(signature = (values, points, *, l))]
pub fn l_diverse<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, i32>,
    points: PyReadonlyArray2<'py, f32>,
    l: usize,
) -> PyResult<(Bound<'py, PyArray1<i32>>, i32)> {
    let (codes, axes) = (values.as_slice()?, points.shape()[1]);
    let space = Space {
        points: points.as_slice()?,
        axes,
    };
    if l < 1 || space.points.len() != codes.len() * axes {
        return Err(PyValueError::new_err(
            "l must be at least 1 and every row needs a point",
        ));
    }
    let (group, made) = py.detach(|| {
        let mut slots: Vec<Slot> = codes
            .iter()
            .enumerate()
            .map(|(row, &v)| Slot {
                row: row as i32,
                value: v as u32,
                donor: row as u32,
            })
            .collect();
        let mut group = vec![-1i32; codes.len()];
        let mut parts = Vec::new();
        if diverse(&slots, l) {
            halve(&space, &mut slots, l, &mut parts);
        }
        for (g, rows) in parts.iter().enumerate() {
            rows.iter().for_each(|&row| group[row as usize] = g as i32);
        }
        (group, parts.len() as i32)
    });
    Ok((group.into_pyarray(py), made))
}
