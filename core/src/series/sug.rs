//! Disclosure risk of every record of a series: forward-backward over its sensitive attribute update graph.
//!
//! Layer i of a record's graph has the values of its i-th group, weighted by their share in it; edges carry the
//! probability of the update. The share of path weight through a node is alpha * beta / Z, layer by layer.

use rayon::prelude::*;

/// Update probabilities after some number of releases, in compressed rows with sorted columns.
pub struct Step<'a> {
    pub indptr: &'a [i64],
    pub indices: &'a [i32],
    pub weights: &'a [f64],
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

/// All versions of all records, each with the version before it (-1: the first), its release, group and value; and the
/// groups.
pub struct Versions<'a> {
    pub previous: &'a [i32],
    pub release: &'a [i32],
    pub group: &'a [i32],
    pub value: &'a [i32],
    pub offsets: &'a [i64],
    pub candidates: &'a [i32],
    pub steps: Vec<Step<'a>>,
}

/// One layer: distinct values and their weights.
struct Layer {
    version: usize,
    values: Vec<i32>,
    weights: Vec<f64>,
}

impl Versions<'_> {
    /// Checks that every version names an earlier one, an existing group and a value, so that walking back ends.
    pub fn check(&self, heads: &[i32]) -> Result<(), &'static str> {
        let n = self.previous.len();
        let sized = self.release.len() == n && self.group.len() == n && self.value.len() == n;
        let groups = self.offsets.len().saturating_sub(1);
        let ends = self.offsets.last().copied().unwrap_or(0) as usize == self.candidates.len();
        let known = |&g: &i32| g >= 0 && (g as usize) < groups;
        let earlier = |(at, &before): (usize, &i32)| before >= -1 && before < at as i32;
        let fits = sized
            && ends
            && self.offsets.is_sorted()
            && self.group.iter().all(known)
            && self.previous.iter().enumerate().all(earlier)
            && heads.iter().all(|&h| h >= 0 && (h as usize) < n);
        let most = self.candidates.iter().copied().max().unwrap_or(-1);
        let least = self.candidates.iter().copied().min().unwrap_or(0);
        let domain = |step: &Step| least >= 0 && most + 1 < step.indptr.len() as i32;
        match fits && !self.steps.is_empty() && self.steps.iter().all(domain) {
            true => Ok(()),
            false => Err("the versions, groups and steps do not fit together"),
        }
    }

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

    /// Posterior of each candidate of each version of a record; None if no path is feasible.
    fn posteriors(&self, layers: &[Layer]) -> Option<Vec<Vec<f64>>> {
        let edges: Vec<Vec<f64>> = layers
            .windows(2)
            .map(|pair| self.edges(&pair[0], &pair[1]))
            .collect();
        let mut forward = vec![normalize(layers[0].weights.clone())?];
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
            forward.push(normalize(next)?);
        }
        let mut backward = vec![1.0; layers.last()?.values.len()];
        let mut out = vec![Vec::new(); layers.len()];
        for i in (0..layers.len()).rev() {
            out[i] = normalize(
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
                backward = normalize(next)?;
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
                true_value: 1.0,
                disclosed: layers.len() as i32,
                versions: layers.len() as i32,
            };
        };
        let mut risk = Risk {
            worst: 0.0,
            true_value: 0.0,
            disclosed: 0,
            versions: layers.len() as i32,
        };
        for (layer, posterior) in layers.iter().zip(&posteriors) {
            risk.worst = posterior.iter().copied().fold(risk.worst, f64::max);
            if let Ok(at) = layer.values.binary_search(&self.value[layer.version]) {
                risk.true_value = risk.true_value.max(posterior[at]);
            }
            risk.disclosed += i32::from(posterior.iter().filter(|&&p| p > 0.0).count() == 1);
        }
        risk
    }
}

/// Scales to sum one, so that long series do not underflow.
fn normalize(mut weights: Vec<f64>) -> Option<Vec<f64>> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return None;
    }
    weights.iter_mut().for_each(|w| *w /= sum);
    Some(weights)
}

/// Worst posterior of any candidate, risk of the true values, versions with one feasible value, versions.
pub struct Risk {
    pub worst: f64,
    pub true_value: f64,
    pub disclosed: i32,
    pub versions: i32,
}

/// The risk of every head (last version of a record).
pub fn risks(graph: &Versions, heads: &[i32]) -> Vec<Risk> {
    heads.par_iter().map(|&head| graph.measure(head)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: ([i64; 3], [i32; 4]) = ([0, 2, 4], [0, 1, 0, 2]);

    /// One record in a group of values 0 and 1, then in one of 0 and 2.
    fn graph<'a>(step: &'a (Vec<i64>, Vec<i32>, Vec<f64>)) -> Versions<'a> {
        Versions {
            previous: &[-1, 0],
            release: &[1, 2],
            group: &[0, 1],
            value: &[0, 0],
            offsets: &GROUPS.0,
            candidates: &GROUPS.1,
            steps: vec![Step {
                indptr: &step.0,
                indices: &step.1,
                weights: &step.2,
            }],
        }
    }

    #[test]
    fn constant_values_are_disclosed_by_intersection() {
        let step = (vec![0, 1, 2, 3], vec![0, 1, 2], vec![1.0; 3]);
        let risk = &risks(&graph(&step), &[1])[0];
        assert_eq!((risk.worst, risk.true_value), (1.0, 1.0));
        assert_eq!((risk.disclosed, risk.versions), (2, 2));
    }

    #[test]
    fn likely_updates_outweigh_unlikely_ones() {
        // 0 stays with 3/4 or becomes 2; 1 becomes 2 with 1/4: paths 0-0, 0-2, 1-2 weigh 3, 1, 1.
        let weights = vec![0.75, 0.25, 0.75, 0.25, 1.0];
        let step = (vec![0, 2, 4, 5], vec![0, 2, 1, 2, 2], weights);
        let risk = &risks(&graph(&step), &[1])[0];
        assert!((risk.true_value - 0.8).abs() < 1e-12, "{}", risk.true_value);
        assert_eq!(risk.disclosed, 0);
    }

    #[test]
    fn a_value_weighs_its_share_of_the_group() {
        // All updates are equally likely; the last group holds the value 2 twice and 0 once.
        let step = (vec![0, 2, 4, 5], vec![0, 2, 0, 2, 2], vec![0.5; 5]);
        let skewed = Versions {
            offsets: &[0, 2, 5],
            candidates: &[0, 1, 0, 2, 2],
            ..graph(&step)
        };
        let risk = &risks(&skewed, &[1])[0];
        assert!((risk.worst - 2.0 / 3.0).abs() < 1e-12);
        assert!((risk.true_value - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_version_that_names_itself_or_a_later_one_is_rejected() {
        let step = (vec![0, 1, 2, 3], vec![0, 1, 2], vec![1.0; 3]);
        assert!(graph(&step).check(&[1]).is_ok());
        assert!(graph(&step).check(&[2]).is_err());
        for previous in [&[0, 0], &[1, 0], &[-2, 0]] {
            let corrupt = Versions {
                previous,
                ..graph(&step)
            };
            assert!(corrupt.check(&[1]).is_err());
        }
    }
}
