//! Mondrian (LeFevre, DeWitt, Ramakrishnan, ICDE 2006): cut the table along one attribute after the other.
//!
//! An ordered attribute is cut in two next to the median, an attribute with a tree at the children of the lowest common
//! node. A cut is made if every part satisfies the model; the attribute with the widest range is tried first. Strict cuts
//! keep equal values together; relaxed ones share out the records at the median.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::binding::PyModel;
use super::grouping::Histogram;
use super::model::{Model, Sensitive};

/// One quasi-identifier: codes in the order of its values.
struct Axis {
    codes: Vec<u32>,
    /// Position of each code on a scale from 0 to 1.
    scale: Vec<f64>,
    /// `tree[level][code]`, empty for ordered attributes.
    tree: Vec<Vec<u32>>,
}

struct Cutter<'a> {
    axes: Vec<Axis>,
    values: Vec<&'a [i32]>,
    model: &'a Model,
    sensitive: Vec<Sensitive>,
    domain: usize,
    rows: u32,
    relaxed: bool,
}

/// Parts with more records than this are cut side by side.
const PARALLEL: usize = 4096;
/// Cuts tried per attribute, from the median outward.
const CUTS: usize = 8;

impl Cutter<'_> {
    /// Cuts until nothing can be cut; gives the finished parts.
    fn cut(&self, part: Vec<u32>) -> Vec<Vec<u32>> {
        let size = part.len();
        let parts = match self.split(&part) {
            None => return vec![part],
            Some(parts) => parts,
        };
        if size <= PARALLEL {
            return parts.into_iter().flat_map(|p| self.cut(p)).collect();
        }
        let mut parts = parts;
        let last = parts.pop().expect("a cut has two parts");
        let (mut done, rest) = rayon::join(
            || {
                parts
                    .into_iter()
                    .flat_map(|p| self.cut(p))
                    .collect::<Vec<_>>()
            },
            || self.cut(last),
        );
        done.extend(rest);
        done
    }

    fn split(&self, part: &[u32]) -> Option<Vec<Vec<u32>>> {
        if part.len() < 2 * self.model.smallest() as usize {
            return None;
        }
        let mut order: Vec<(f64, usize)> = (0..self.axes.len())
            .map(|j| (self.width(j, part), j))
            .collect();
        order.retain(|&(width, _)| width > 0.0);
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().find_map(
            |(_, j)| match (self.axes[j].tree.is_empty(), self.relaxed) {
                (false, _) => self.split_tree(j, part),
                (true, true) => self.split_relaxed(j, part),
                (true, false) => self.split_strict(j, part),
            },
        )
    }

    /// Share of its attribute that a part covers.
    fn width(&self, j: usize, part: &[u32]) -> f64 {
        let axis = &self.axes[j];
        let (low, high) = range(axis, part);
        if axis.tree.is_empty() {
            axis.scale[high as usize] - axis.scale[low as usize]
        } else if low == high {
            0.0
        } else {
            // The height of the common node; a leaf has none.
            common(axis, part) as f64 / (axis.tree.len() - 1) as f64
        }
    }

    fn split_strict(&self, j: usize, part: &[u32]) -> Option<Vec<Vec<u32>>> {
        let axis = &self.axes[j];
        let (low, high) = range(axis, part);
        let mut counts = vec![0usize; (high - low + 1) as usize];
        part.iter()
            .for_each(|&r| counts[(axis.codes[r as usize] - low) as usize] += 1);
        let mut cuts = Vec::new();
        let mut below = 0;
        for (at, &n) in counts.iter().enumerate() {
            below += n;
            if n > 0 && below.min(part.len() - below) >= self.model.smallest() as usize {
                cuts.push((below.abs_diff(part.len() - below), at as u32));
            }
        }
        cuts.sort_unstable();
        cuts.into_iter().take(CUTS).find_map(|(_, at)| {
            let (left, right) = part
                .iter()
                .partition(|&&r| axis.codes[r as usize] <= low + at);
            self.accept(vec![left, right])
        })
    }

    fn split_relaxed(&self, j: usize, part: &[u32]) -> Option<Vec<Vec<u32>>> {
        let mut sorted = part.to_vec();
        sorted.sort_by_key(|&r| (self.axes[j].codes[r as usize], r));
        let right = sorted.split_off(part.len() / 2);
        self.accept(vec![sorted, right])
    }

    fn split_tree(&self, j: usize, part: &[u32]) -> Option<Vec<Vec<u32>>> {
        let axis = &self.axes[j];
        let children = &axis.tree[common(axis, part) - 1];
        let width = children.iter().max().map_or(0, |&m| m as usize + 1);
        let mut parts = vec![Vec::new(); width];
        part.iter()
            .for_each(|&r| parts[children[axis.codes[r as usize] as usize] as usize].push(r));
        parts.retain(|p| !p.is_empty());
        self.accept(parts)
    }

    fn accept(&self, parts: Vec<Vec<u32>>) -> Option<Vec<Vec<u32>>> {
        parts
            .iter()
            .all(|part| self.satisfied(part))
            .then_some(parts)
    }

    fn satisfied(&self, part: &[u32]) -> bool {
        let n = part.len() as u32;
        if n < self.model.smallest() || self.model.counts_only() {
            return n >= self.model.smallest();
        }
        let mut class = Histogram::default();
        class.reset(self.domain);
        for (values, s) in self.values.iter().zip(&self.sensitive) {
            part.iter()
                .for_each(|&r| class.add(s.start as u32 + values[r as usize] as u32, 1));
        }
        self.model.plausible(&class, n, &self.sensitive)
            && self.model.holds(&class, n, self.rows, &self.sensitive)
    }
}

fn range(axis: &Axis, part: &[u32]) -> (u32, u32) {
    let codes = part.iter().map(|&r| axis.codes[r as usize]);
    codes.fold((u32::MAX, 0), |(low, high), c| (low.min(c), high.max(c)))
}

/// Lowest level at which all values of a part share a node.
fn common(axis: &Axis, part: &[u32]) -> usize {
    let first = axis.codes[part[0] as usize] as usize;
    let together = |table: &Vec<u32>| {
        part.iter()
            .all(|&r| table[axis.codes[r as usize] as usize] == table[first])
    };
    axis.tree
        .iter()
        .position(together)
        .unwrap_or(axis.tree.len() - 1)
}

type Codes<'py> = PyReadonlyArray1<'py, i32>;

/// Part of each row, counted from 0; all in part 0 with `false` where the whole table fails the model.
#[pyfunction]
#[pyo3(signature = (axes, sensitive, model, *, relaxed))]
pub fn mondrian<'py>(
    py: Python<'py>,
    axes: Vec<(Codes<'py>, PyReadonlyArray1<'py, f64>, Vec<Codes<'py>>)>,
    sensitive: Vec<(Codes<'py>, usize, Vec<Codes<'py>>)>,
    model: &PyModel,
    relaxed: bool,
) -> PyResult<(Bound<'py, PyArray1<i64>>, bool)> {
    let natural = |codes: &Codes<'py>| {
        Ok::<_, PyErr>(
            codes
                .as_slice()?
                .iter()
                .map(|&c| c as u32)
                .collect::<Vec<u32>>(),
        )
    };
    let mut made = Vec::new();
    for (codes, scale, tree) in &axes {
        let tree = tree.iter().map(natural).collect::<PyResult<_>>()?;
        made.push(Axis {
            codes: natural(codes)?,
            scale: scale.as_slice()?.to_vec(),
            tree,
        });
    }
    let rows = made.first().map_or(0, |a| a.codes.len());
    let sound = |a: &Axis| {
        let fits = |width: usize| a.codes.iter().all(|&c| (c as usize) < width);
        a.codes.len() == rows && fits(a.scale.len()) && a.tree.iter().all(|t| fits(t.len()))
    };
    if rows == 0 || !made.iter().all(sound) {
        return Err(PyValueError::new_err(
            "the columns differ in length, or a code lies outside its domain",
        ));
    }
    let (mut guarded, mut values, mut start) = (Vec::new(), Vec::new(), 0);
    for (codes, domain, tree) in &sensitive {
        let codes = codes.as_slice()?;
        if codes.len() != rows || codes.iter().any(|&c| c < 0 || c as usize >= *domain) {
            return Err(PyValueError::new_err(
                "a sensitive code lies outside its domain",
            ));
        }
        let mut totals = vec![0u32; *domain];
        codes.iter().for_each(|&c| totals[c as usize] += 1);
        guarded.push(Sensitive {
            start,
            totals,
            tree: tree.iter().map(natural).collect::<PyResult<_>>()?,
        });
        values.push(codes);
        start += domain;
    }
    let cutter = Cutter {
        axes: made,
        values,
        model: model.inner(),
        sensitive: guarded,
        domain: start,
        rows: rows as u32,
        relaxed,
    };
    let (classes, holds) = py.detach(|| {
        let whole: Vec<u32> = (0..rows as u32).collect();
        let holds = cutter.satisfied(&whole);
        let mut classes = vec![0i64; rows];
        if holds {
            for (class, part) in cutter.cut(whole).iter().enumerate() {
                part.iter()
                    .for_each(|&r| classes[r as usize] = class as i64);
            }
        }
        (classes, holds)
    });
    Ok((classes.into_pyarray(py), holds))
}
