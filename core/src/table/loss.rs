//! The losses a search can minimise, each with a lower bound that is known before a node is checked.
//!
//! Scores are compared in a form that is monotone under rounding (the product for the geometric mean), and turned into
//! the published number at the end. Every per-attribute sum is a whole number until its one division.

use super::grouping::Grouping;
use super::space::Space;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Geometric mean of the share of leaves a value stands for.
    Loss,
    /// Arithmetic mean of the same share.
    Ncp,
    Discernibility,
    /// Sum of squared class sizes, suppression ignored.
    DiscernibilityStar,
    ClassSize,
    Precision,
    Height,
    /// Non-uniform entropy.
    Entropy,
}

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "loss" => Self::Loss,
            "ncp" => Self::Ncp,
            "discernibility" => Self::Discernibility,
            "discernibility-star" => Self::DiscernibilityStar,
            "average_class_size" => Self::ClassSize,
            "precision" => Self::Precision,
            "height" => Self::Height,
            "entropy" => Self::Entropy,
            _ => return None,
        })
    }
}

/// What one node's check counted.
#[derive(Default, Clone)]
pub struct Tally {
    pub suppressed: u64,
    /// Records that are lost here and at every finer node.
    pub lost: u64,
    pub classes: u64,
    pub all_classes: u64,
    pub squares: u128,
    pub all_squares: u128,
    /// `marginals[pack][code]`: suppressed records.
    pub marginals: Vec<Vec<u64>>,
}

/// One level of one attribute, summed over the table.
struct Column {
    /// Leaves below each record's value, summed.
    leaves: u64,
    entropy: f64,
    /// (cost of suppressing a record here, records), cheapest first.
    room: Vec<(u64, u64)>,
}

pub struct Scorer<'a> {
    pub kind: Kind,
    space: &'a Space,
    rows: u64,
    weights: Vec<f64>,
    columns: Vec<Vec<Column>>,
}

fn floor10(x: f64) -> f64 {
    (x * 1e10).floor() / 1e10
}

impl<'a> Scorer<'a> {
    pub fn new(kind: Kind, space: &'a Space, base: &Grouping, weights: &[f64]) -> Self {
        let rows = base.counts.iter().map(|&c| u64::from(c)).sum();
        let top = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let leaf_counts = leaf_counts(space, base);
        let columns = space
            .attributes
            .iter()
            .zip(&leaf_counts)
            .map(|(attribute, counts)| {
                (0..attribute.levels())
                    .map(|level| column(attribute, counts, level))
                    .collect()
            });
        Self {
            kind,
            space,
            rows,
            weights: weights.iter().map(|w| w / top).collect(),
            columns: columns.collect(),
        }
    }

    /// Score of a node when at least `suppressed` records are lost: never above the true one.
    pub fn bound(&self, levels: &[u8], suppressed: u64) -> f64 {
        let s = suppressed as f64;
        let n = self.rows as f64;
        match self.kind {
            Kind::Loss | Kind::Ncp => self.shares(|j| {
                let column = &self.columns[j][levels[j] as usize];
                column.leaves + cheapest(&column.room, suppressed)
            }),
            Kind::Precision => self.mean(|j| self.precision(j, levels, n, s)),
            Kind::Height => self.height(levels),
            Kind::Entropy => levels
                .iter()
                .enumerate()
                .map(|(j, &v)| self.weights[j] * floor10(self.columns[j][v as usize].entropy))
                .sum(),
            Kind::Discernibility => s * n,
            Kind::DiscernibilityStar | Kind::ClassSize => 0.0,
        }
    }

    /// Lower bound for every coarser node, from the classes of this one.
    pub fn bound_above(&self, tally: &Tally) -> f64 {
        match self.kind {
            Kind::Discernibility | Kind::DiscernibilityStar => tally.all_squares as f64,
            Kind::ClassSize => self.rows as f64 / (tally.all_classes + 1) as f64,
            _ => 0.0,
        }
    }

    pub fn score(&self, levels: &[u8], tally: &Tally) -> f64 {
        let (n, s) = (self.rows as f64, tally.suppressed as f64);
        match self.kind {
            Kind::Loss | Kind::Ncp => {
                let lost = self.suppressed_room(levels, tally);
                self.shares(|j| self.columns[j][levels[j] as usize].leaves + lost[j])
            }
            Kind::Precision => self.mean(|j| self.precision(j, levels, n, s)),
            Kind::Height => self.height(levels),
            Kind::Discernibility => {
                (tally.squares + u128::from(tally.suppressed) * u128::from(self.rows)) as f64
            }
            Kind::DiscernibilityStar => tally.all_squares as f64,
            Kind::ClassSize => n / (tally.classes + u64::from(tally.suppressed > 0)) as f64,
            Kind::Entropy => self.entropy(levels, tally),
        }
    }

    /// The number to publish for a score.
    pub fn publish(&self, score: f64) -> f64 {
        match self.kind {
            Kind::Loss => score.powf(1.0 / self.columns.len() as f64) - 1.0,
            _ => score,
        }
    }

    fn shares(&self, total: impl Fn(usize) -> u64) -> f64 {
        let values = self.space.attributes.iter().enumerate().map(|(j, a)| {
            let (n, size) = (self.rows as f64, a.size as f64);
            let value = match self.kind {
                _ if a.size <= 1 => 0.0,
                Kind::Ncp => (total(j) - self.rows) as f64 / (n * (size - 1.0)),
                _ => floor10((total(j) - self.rows) as f64 / (n * (size - 1.0))),
            };
            self.weights[j] * value
        });
        match self.kind {
            Kind::Loss => values.fold(1.0, |product, v| product * (v + 1.0)),
            _ => values.sum::<f64>() / self.columns.len() as f64,
        }
    }

    fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        (0..self.columns.len()).map(value).sum::<f64>() / self.columns.len() as f64
    }

    fn precision(&self, j: usize, levels: &[u8], n: f64, s: f64) -> f64 {
        let steps = (self.columns[j].len() - 1) as f64;
        let share = if steps > 0.0 {
            f64::from(levels[j]) / steps
        } else {
            0.0
        };
        self.weights[j] * ((n - s) * share + s) / n
    }

    fn height(&self, levels: &[u8]) -> f64 {
        levels
            .iter()
            .zip(&self.weights)
            .map(|(&v, w)| f64::from(v) * w)
            .sum()
    }

    /// Per attribute: what its suppressed records lose beyond their generalised value.
    fn suppressed_room(&self, levels: &[u8], tally: &Tally) -> Vec<u64> {
        let mut lost = vec![0u64; levels.len()];
        for (pack, marginal) in self.space.packs.iter().zip(&tally.marginals) {
            for (code, &n) in marginal.iter().enumerate().filter(|&(_, &n)| n > 0) {
                for &member in &pack.members {
                    let (a, level) = (&self.space.attributes[member.0], levels[member.0] as usize);
                    let leaves =
                        a.leaves[level][a.tables[level][self.space.leaf(member, code)] as usize];
                    lost[member.0] += n * (a.size - leaves);
                }
            }
        }
        lost
    }

    fn entropy(&self, levels: &[u8], tally: &Tally) -> f64 {
        let mut values: Vec<f64> = levels
            .iter()
            .enumerate()
            .map(|(j, &v)| self.columns[j][v as usize].entropy)
            .collect();
        let s = tally.suppressed as f64;
        for (pack, marginal) in self.space.packs.iter().zip(&tally.marginals) {
            for &member in &pack.members {
                let (a, level) = (&self.space.attributes[member.0], levels[member.0] as usize);
                let mut nodes = vec![0u64; a.widths[level]];
                for (code, &n) in marginal.iter().enumerate() {
                    nodes[a.tables[level][self.space.leaf(member, code)] as usize] += n;
                }
                let parts = nodes
                    .iter()
                    .filter(|&&c| c > 0)
                    .map(|&c| c as f64 * (c as f64 / s).log2());
                values[member.0] -= parts.sum::<f64>();
            }
        }
        values
            .iter()
            .zip(&self.weights)
            .map(|(&v, w)| w * floor10(v))
            .sum()
    }
}

fn column(a: &super::space::Attribute, counts: &[u64], level: usize) -> Column {
    let mut nodes = vec![0u64; a.widths[level]];
    for (leaf, &n) in counts.iter().enumerate() {
        nodes[a.tables[level][leaf] as usize] += n;
    }
    let leaves = nodes
        .iter()
        .zip(&a.leaves[level])
        .map(|(&n, &l)| n * l)
        .sum();
    let parts = counts.iter().enumerate().filter(|&(_, &n)| n > 0);
    let bits = parts.map(|(leaf, &n)| {
        n as f64 * (n as f64 / nodes[a.tables[level][leaf] as usize] as f64).log2()
    });
    let entropy = -bits.sum::<f64>();
    let mut room: Vec<(u64, u64)> = nodes
        .iter()
        .zip(&a.leaves[level])
        .map(|(&n, &l)| (a.size - l, n))
        .collect();
    room.sort_unstable();
    Column {
        leaves,
        entropy: entropy.max(0.0),
        room,
    }
}

/// Cost of the cheapest `records` to suppress.
fn cheapest(room: &[(u64, u64)], mut records: u64) -> u64 {
    let mut cost = 0;
    for &(each, n) in room {
        let taken = n.min(records);
        cost += taken * each;
        records -= taken;
        if records == 0 {
            break;
        }
    }
    cost
}

fn leaf_counts(space: &Space, base: &Grouping) -> Vec<Vec<u64>> {
    let mut counts: Vec<Vec<u64>> = space
        .attributes
        .iter()
        .map(|a| vec![0; a.domain()])
        .collect();
    for (pack, column) in space.packs.iter().zip(&base.columns) {
        let mut codes = vec![0u64; pack.domain];
        for (&code, &n) in column.iter().zip(&base.counts) {
            codes[code as usize] += u64::from(n);
        }
        for (code, &n) in codes.iter().enumerate() {
            for &member in &pack.members {
                counts[member.0][space.leaf(member, code)] += n;
            }
        }
    }
    counts
}
