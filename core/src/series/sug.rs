//! Disclosure risk of every record of a series: forward-backward over its sensitive attribute update graph.
//!
//! Layer i of a record's graph holds the values of its i-th group, weighted by their share in it; edges carry the
//! probability of the update. The share of path weight through a node is alpha * beta / Z, layer by layer.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;

/// Update probabilities after some number of releases, rows compressed, columns sorted.
struct Step<'a> {
    indptr: &'a [i64],
    indices: &'a [i32],
    weights: &'a [f64],
}

impl Step<'_> {
    fn probability(&self, from: i32, to: i32) -> f64 {
        let (a, b) = (
            self.indptr[from as usize] as usize,
            self.indptr[from as usize + 1] as usize,
        );
        self.indices[a..b]
            .binary_search(&to)
            .map_or(0.0, |at| self.weights[a + at])
    }
}

struct Versions<'a> {
    previous: &'a [i32],
    release: &'a [i32],
    group: &'a [i32],
    value: &'a [i32],
    offsets: &'a [i64],
    candidates: &'a [i32],
    steps: Vec<Step<'a>>,
}

/// One layer: distinct values and their weights.
struct Layer {
    version: usize,
    values: Vec<i32>,
    weights: Vec<f64>,
}

impl Versions<'_> {
    fn layers(&self, head: i32) -> Vec<Layer> {
        let mut out = Vec::new();
        let mut at = head;
        while at >= 0 {
            let version = at as usize;
            let group = self.group[version] as usize;
            let (a, b) = (
                self.offsets[group] as usize,
                self.offsets[group + 1] as usize,
            );
            let mut members = self.candidates[a..b].to_vec();
            members.sort_unstable();
            let share = 1.0 / members.len() as f64;
            let (mut values, mut weights): (Vec<i32>, Vec<f64>) = (Vec::new(), Vec::new());
            for value in members {
                if values.last() == Some(&value) {
                    *weights.last_mut().expect("a value was pushed") += share;
                } else {
                    values.push(value);
                    weights.push(share);
                }
            }
            out.push(Layer {
                version,
                values,
                weights,
            });
            at = self.previous[version];
        }
        out.reverse();
        out
    }

    /// Posterior of each candidate of each version of a record; None when no path is feasible.
    fn posteriors(&self, layers: &[Layer]) -> Option<Vec<Vec<f64>>> {
        let edges: Vec<Vec<f64>> = layers
            .windows(2)
            .map(|pair| self.edges(&pair[0], &pair[1]))
            .collect();
        let mut forward = vec![normalised(layers[0].weights.clone())?];
        for (i, layer) in layers.iter().enumerate().skip(1) {
            let (before, width) = (&forward[i - 1], layer.values.len());
            let next = (0..width)
                .map(|v| {
                    let sum: f64 = before
                        .iter()
                        .enumerate()
                        .map(|(u, a)| a * edges[i - 1][u * width + v])
                        .sum();
                    sum * layer.weights[v]
                })
                .collect();
            forward.push(normalised(next)?);
        }
        let mut backward = vec![1.0; layers.last()?.values.len()];
        let mut out = vec![Vec::new(); layers.len()];
        for i in (0..layers.len()).rev() {
            out[i] = normalised(
                forward[i]
                    .iter()
                    .zip(&backward)
                    .map(|(a, b)| a * b)
                    .collect(),
            )?;
            if i > 0 {
                let (layer, width) = (&layers[i], layers[i].values.len());
                let next = (0..layers[i - 1].values.len())
                    .map(|u| {
                        (0..width)
                            .map(|v| edges[i - 1][u * width + v] * layer.weights[v] * backward[v])
                            .sum()
                    })
                    .collect();
                backward = normalised(next)?;
            }
        }
        Some(out)
    }

    fn edges(&self, from: &Layer, to: &Layer) -> Vec<f64> {
        let gap = (self.release[to.version] - self.release[from.version]).max(1) as usize;
        let step = &self.steps[gap.min(self.steps.len()) - 1];
        let pairs = from
            .values
            .iter()
            .flat_map(|&u| to.values.iter().map(move |&v| (u, v)));
        pairs.map(|(u, v)| step.probability(u, v)).collect()
    }

    fn measure(&self, head: i32) -> Risk {
        let layers = self.layers(head);
        let Some(posteriors) = self.posteriors(&layers) else {
            return Risk {
                worst: 1.0,
                own: 1.0,
                disclosed: layers.len() as i32,
                versions: layers.len() as i32,
            };
        };
        let mut risk = Risk {
            worst: 0.0,
            own: 0.0,
            disclosed: 0,
            versions: layers.len() as i32,
        };
        for (layer, posterior) in layers.iter().zip(&posteriors) {
            risk.worst = posterior.iter().copied().fold(risk.worst, f64::max);
            if let Ok(at) = layer.values.binary_search(&self.value[layer.version]) {
                risk.own = risk.own.max(posterior[at]);
            }
            risk.disclosed += i32::from(posterior.iter().filter(|&&p| p > 0.0).count() == 1);
        }
        risk
    }
}

/// Scales to sum one, so that long series do not underflow.
fn normalised(mut weights: Vec<f64>) -> Option<Vec<f64>> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return None;
    }
    weights.iter_mut().for_each(|w| *w /= sum);
    Some(weights)
}

struct Risk {
    worst: f64,
    own: f64,
    disclosed: i32,
    versions: i32,
}

type Matrix<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i32>,
    PyReadonlyArray1<'py, f64>,
);
type Ints<'py> = PyReadonlyArray1<'py, i32>;
type Measured<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
);

/// Per head (last version of a record): worst posterior of any candidate, risk of the true values,
/// versions with one feasible value, versions.
#[pyfunction]
#[pyo3(signature = (heads, *, versions, groups, steps))]
pub fn risks<'py>(
    py: Python<'py>,
    heads: Ints<'py>,
    versions: (Ints<'py>, Ints<'py>, Ints<'py>, Ints<'py>),
    groups: (PyReadonlyArray1<'py, i64>, Ints<'py>),
    steps: Vec<Matrix<'py>>,
) -> PyResult<Measured<'py>> {
    let steps: Vec<Step> = steps
        .iter()
        .map(|(p, i, w)| {
            Ok(Step {
                indptr: p.as_slice()?,
                indices: i.as_slice()?,
                weights: w.as_slice()?,
            })
        })
        .collect::<PyResult<_>>()?;
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
    let measured: Vec<Risk> =
        py.detach(|| heads.par_iter().map(|&head| graph.measure(head)).collect());
    Ok((
        measured
            .iter()
            .map(|r| r.worst)
            .collect::<Vec<_>>()
            .into_pyarray(py),
        measured
            .iter()
            .map(|r| r.own)
            .collect::<Vec<_>>()
            .into_pyarray(py),
        measured
            .iter()
            .map(|r| r.disclosed)
            .collect::<Vec<_>>()
            .into_pyarray(py),
        measured
            .iter()
            .map(|r| r.versions)
            .collect::<Vec<_>>()
            .into_pyarray(py),
    ))
}
